package access

import (
	"log/slog"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Standard is the usual authorization by a cluster's objects: by roles and bindings, and for kubelets.
type Standard struct {
	Policy *Policy // the roles and bindings that every cluster has

	cache    *cache.Cache
	roles    *rbac.Rules
	follower *follow.Follower

	certificates bool // nodes request certificates of their pods

	accounts   bool   // nodes may get the service accounts of their pods
	noAccounts string // why they may not
}

// NewStandard follows the roles and bindings in a cache, for a server of a release. on reports whether a gate
// is on.
func NewStandard(c *cache.Cache, v release.Version, on kinds.Feature) (*Standard, error) {
	policy, err := DefaultPolicy(v, on)
	if err != nil {
		return nil, err
	}
	roles := rbac.New()
	s := &Standard{Policy: policy, cache: c, roles: roles, follower: FollowRules(roles, c)}
	if on != nil {
		s.certificates = on("PodCertificateRequest")
		s.accounts = on("KubeletServiceAccountTokenForCredentialProviders") || s.certificates
	}
	if v.Has(release.NodesReadAccounts) {
		s.noAccounts = "not allowed to get service accounts"
	}
	return s, nil
}

// RBAC authorizes by roles, and lists the rights of a user. It logs denials to a logger; nil: none.
func (s *Standard) RBAC(denials *slog.Logger) interface {
	authx.Authorizer
	authx.RuleResolver
} {
	return struct {
		authx.Authorizer
		authx.RuleResolver
	}{Synced{Follower: s.follower, Authorizer: s.roles, Denials: denials}, SyncedRules{Follower: s.follower, RuleResolver: s.roles}}
}

// Nodes authorizes requests of kubelets. selectors considers the selectors of the requests.
func (s *Standard) Nodes(selectors bool) Nodes {
	return NewNodes(node.Authorizer{
		Allows: rbac.RuleAllows, Rules: s.Policy.NodeRules(), Selectors: selectors, Accounts: s.accounts, NoAccounts: s.noAccounts, Certificates: s.certificates,
	}, s.cache)
}

// Guard returns the admission plugin that keeps users from granting rights that they lack. by authorizes all
// requests.
func (s *Standard) Guard(by authx.Authorizer) admission.Plugin {
	return Escalation{Rules: s.roles, Follower: s.follower, Authorizer: by}
}
