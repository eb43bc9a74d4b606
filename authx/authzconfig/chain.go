package authzconfig

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/authx/remote"
	"github.com/rowlock/rowlock/authx/webhook"
)

// pollEvery is the default interval between two checks of the file.
const pollEvery = 500 * time.Millisecond

// Builtin is an authorizer that is no webhook.
type Builtin interface {
	authx.Authorizer
	authx.RuleResolver
}

// Chain decides with the authorizers of a configuration, which may come from a file that changes. It allows
// everything to the group system:masters before it calls any of them.
type Chain struct {
	Path    string             // of the file; "" for a configuration that stays
	Every   time.Duration      // how often it is checked; 0: twice a second
	Again   time.Duration      // how soon a refused one is tried again; 0: after a minute
	Builtin map[string]Builtin // by type: Node, RBAC, ABAC where they are wanted at the start
	Rules   Rules              // of the file
	Metrics *Metrics           // nil: none
	Log     *slog.Logger
	Dial    remote.Dial // how webhooks are reached; nil: directly
	// Reloaded, if set, is called when the file is followed from now on, and at each
	// attempt to take over a changed one.
	Reloaded func(ok bool, at time.Time)
	// Using, if set, is called for each later configuration that takes effect.
	Using func(*Configuration)

	required []string // types that every later configuration must have
	current  atomic.Pointer[generation]
	seen     []byte
	used     string // the last configuration that could be read, in one spelling
}

// generation is the chain of one version of the configuration.
type generation struct {
	authorizers authx.AuthorizerChain
	rules       authx.Resolvers
	allowsAll   bool
}

// AllowsAll reports whether the current configuration allows every request: whether AlwaysAllow
// is one of its authorizers.
func (c *Chain) AllowsAll() bool { return c.current.Load().allowsAll }

// Start takes the first configuration. text is the content of its file, if it has one.
func (c *Chain) Start(cfg *Configuration, text []byte) error {
	g, err := c.generation(cfg)
	if err != nil {
		return err
	}
	for _, a := range cfg.Authorizers {
		if a.Type != TypeWebhook {
			c.required = append(c.required, a.Type)
		}
	}
	slices.Sort(c.required)
	c.seen, c.used = text, spelling(cfg)
	c.current.Store(g)
	return nil
}

func spelling(cfg *Configuration) string {
	text, _ := json.Marshal(cfg) // plain data
	return string(text)
}

// Authorize implements authx.Authorizer.
func (c *Chain) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	return c.current.Load().authorizers.Authorize(ctx, a)
}

// RulesFor implements authx.RuleResolver.
func (c *Chain) RulesFor(ctx context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	return c.current.Load().rules.RulesFor(ctx, user, namespace)
}

func (c *Chain) generation(cfg *Configuration) (*generation, error) {
	if len(cfg.Authorizers) == 0 {
		return nil, errors.New("at least one authorization mode must be passed")
	}
	g := &generation{authorizers: authx.AuthorizerChain{authx.SystemMasters{}}, allowsAll: cfg.Has(TypeAlwaysAllow)}
	for i := range cfg.Authorizers {
		a := &cfg.Authorizers[i]
		z, err := c.authorizer(a)
		if err != nil {
			return nil, err
		}
		g.authorizers = append(g.authorizers, c.Metrics.count(a, z))
		g.rules = append(g.rules, z)
	}
	return g, nil
}

func (c *Chain) authorizer(a *Authorizer) (Builtin, error) {
	switch a.Type {
	case TypeAlwaysAllow:
		return authx.AlwaysAllow{}, nil
	case TypeAlwaysDeny:
		return authx.AlwaysDeny{}, nil
	case TypeWebhook:
		return c.webhook(a)
	}
	z, ok := c.Builtin[a.Type]
	switch {
	case !slices.Contains(Types, a.Type):
		return nil, fmt.Errorf("unknown authorization mode %s specified", a.Type)
	case !ok:
		return nil, fmt.Errorf("authorizer type %s is not allowed if it was not enabled at initial server startup", a.Type)
	}
	return z, nil
}

func (c *Chain) webhook(a *Authorizer) (Builtin, error) {
	w := a.Webhook
	cfg := webhook.Config{
		Name: a.Name, Kubeconfig: *w.ConnectionInfo.KubeConfigFile, Version: w.SubjectAccessReviewVersion, Timeout: w.Timeout.Duration,
		AuthorizedTTL: w.AuthorizedTTL.Duration, UnauthorizedTTL: w.UnauthorizedTTL.Duration, Conditions: w.conditions, Log: c.Log, Dial: c.Dial,
	}
	if w.CacheAuthorizedRequests.off {
		cfg.AuthorizedTTL = 0
	}
	if w.CacheUnauthorizedRequests.off {
		cfg.UnauthorizedTTL = 0
	}
	if w.FailurePolicy == FailurePolicyDeny {
		cfg.OnError = authx.Deny
	}
	if c.Metrics != nil {
		cfg.Observer = c.Metrics
	}
	return webhook.New(cfg)
}

// Run follows the file until ctx ends.
func (c *Chain) Run(ctx context.Context) error {
	c.report(true)
	every := c.Every
	every = cmp.Or(every, pollEvery)
	file := &freshfile.Follower{
		Path: c.Path, Seen: c.seen, Every: every, Again: c.Again,
		Take: func(_ context.Context, text []byte) error { return c.replace(text) }, Took: c.took,
	}
	return file.Run(ctx)
}

// took reports how an attempt to apply a changed file ended.
func (c *Chain) took(err error, repeated bool) {
	switch {
	case err == nil:
		c.Log.Info("the changed authorization configuration is in use", "flag", "--authorization-config", "file", c.Path)
	case !repeated:
		c.Log.Error("the changed authorization configuration is not used, the last good one stays", "flag", "--authorization-config", "file", c.Path, "error", err)
	}
	c.report(err == nil)
}

func (c *Chain) report(ok bool) {
	if c.Reloaded != nil {
		c.Reloaded(ok, time.Now())
	}
}

// replace takes over a changed file.
func (c *Chain) replace(text []byte) error {
	cfg, err := c.Rules.Parse(text)
	if err != nil {
		return err
	}
	var missing []string
	for _, t := range c.required {
		if !cfg.Has(t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing required types: %v", missing)
	}
	written := spelling(cfg)
	if written == c.used {
		return freshfile.ErrSame
	}
	next, err := c.generation(cfg)
	if err != nil {
		return err
	}
	c.used = written
	c.current.Store(next)
	if c.Using != nil {
		c.Using(cfg)
	}
	return nil
}
