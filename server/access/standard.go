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

// Standard is authorization by the objects of a cluster as a server usually has it: by
// roles and bindings, and the rights of node agents.
type Standard struct {
	Policy *Policy // the roles and bindings that there are from the start

	cache    *cache.Cache
	roles    *rbac.Rules
	follower *follow.Follower

	certificates bool // nodes ask for certificates of their pods

	accounts   bool   // nodes get the service accounts of their pods
	noAccounts string // why they do not
}

// NewStandard follows the roles and bindings of a cache, of a server that is a release. on says which gates
// are on.
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

// RBAC decides by roles, and lists by them what a user may do. Denials are logged; nil: none.
func (s *Standard) RBAC(denials *slog.Logger) interface {
	authx.Authorizer
	authx.RuleResolver
} {
	return struct {
		authx.Authorizer
		authx.RuleResolver
	}{Synced{Follower: s.follower, Authorizer: s.roles, Denials: denials}, SyncedRules{Follower: s.follower, RuleResolver: s.roles}}
}

// Nodes authorizes the requests of node agents. selectors says whether it takes their selectors into
// account.
func (s *Standard) Nodes(selectors bool) Nodes {
	return NewNodes(node.Authorizer{
		Allows: rbac.RuleAllows, Rules: s.Policy.NodeRules(), Selectors: selectors, Accounts: s.accounts, NoAccounts: s.noAccounts, Certificates: s.certificates,
	}, s.cache)
}

// Guard is the admission plugin that keeps people from granting what they do not hold.
// by is the authorizer of all requests.
func (s *Standard) Guard(by authx.Authorizer) admission.Plugin {
	return Escalation{Rules: s.roles, Follower: s.follower, Authorizer: by}
}
