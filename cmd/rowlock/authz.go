package main

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/authx/rbac"
	apiaccess "github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
)

// The modes of --authorization-mode.
const (
	modeRBAC  = "RBAC"
	modeNode  = "Node"
	modeAllow = "AlwaysAllow"
	modeDeny  = "AlwaysDeny"
)

// authzOptions are the flags of authorization.
type authzOptions struct {
	modes []string
}

func (o *authzOptions) addTo(f *pflag.FlagSet) {
	f.StringSliceVar(&o.modes, "authorization-mode", []string{modeNode, modeRBAC}, "who decides on requests, asked in this order: AlwaysAllow, AlwaysDeny, Node, RBAC")
}

// authorization is what they make.
type authorization struct {
	authorizer authx.Authorizer
	rules      authx.RuleResolver
	feeds      []*apiaccess.Feed
	policy     *apiaccess.Policy
	plugins    []admission.Plugin
}

func (o *authzOptions) validate() error {
	for i, m := range o.modes {
		if !slices.Contains([]string{modeAllow, modeDeny, modeNode, modeRBAC}, m) {
			return fmt.Errorf("authorization-mode %q is not a valid mode", m)
		}
		if slices.Contains(o.modes[:i], m) {
			return fmt.Errorf("authorization-mode %q has mode specified more than once", o.modes)
		}
	}
	return nil
}

func (o *authzOptions) build(gate func(string) bool) (*authorization, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	policy, err := apiaccess.DefaultPolicy()
	if err != nil {
		return nil, err
	}
	roles := rbac.New()
	feed := apiaccess.FeedRules(roles)
	z := &authorization{policy: policy, feeds: []*apiaccess.Feed{feed}}
	chain := authx.AuthorizerChain{authx.Masters{}}
	var resolvers authx.Resolvers
	for _, m := range o.modes {
		switch m {
		case modeNode:
			agents := apiaccess.NewNodes(node.Authorizer{Allows: rbac.RuleAllows, Rules: policy.NodeRules(), Selectors: gate("AuthorizeNodeWithSelectors")})
			z.feeds = append(z.feeds, agents.Feed)
			chain, resolvers = append(chain, agents), append(resolvers, agents)
		case modeRBAC:
			chain = append(chain, apiaccess.Synced{Feed: feed, Authorizer: roles})
			resolvers = append(resolvers, apiaccess.SyncedRules{Feed: feed, RuleResolver: roles})
		case modeAllow:
			chain, resolvers = append(chain, authx.AlwaysAllow{}), append(resolvers, authx.AlwaysAllow{})
		case modeDeny:
			chain, resolvers = append(chain, authx.AlwaysDeny{}), append(resolvers, authx.AlwaysDeny{})
		}
	}
	z.authorizer, z.rules = chain, resolvers
	z.plugins = []admission.Plugin{apiaccess.Escalation{Rules: roles, Feed: feed, Authorizer: chain}}
	return z, nil
}
