package filters

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
)

// Constrained impersonation needs two permissions: to make the request while impersonating
// (impersonate-on:MODE:VERB on the request itself), and to impersonate the identity
// (impersonate:MODE on each part of it). The first mode in which the caller has both applies;
// the last mode is unconstrained impersonation, which needs only the second.

const (
	fewParts       = 4      // with at least this many groups, or keys or values of extra, permission for all ("*") is tried first
	maxRemembered  = 10_000 // callers whose last mode is remembered
	associatedNode = "associated-node"
	nodeKeys       = "authentication.kubernetes.io/associated-node-keys"
	nodeOfToken    = "authentication.kubernetes.io/node-name"
)

// impersonationMode is one way to impersonate: the name is "" for that without constraints.
type impersonationMode struct {
	name    string
	applies func(wanted, caller *authx.Identity) bool
}

var impersonationModes = []impersonationMode{
	{associatedNode, func(wanted, caller *authx.Identity) bool {
		node, ok := nodeName(wanted.Name)
		own := caller.Extra[nodeOfToken]
		return ok && nameAlone(wanted) && isServiceAccount(caller) && len(own) == 1 && own[0] == node
	}},
	{"arbitrary-node", func(wanted, _ *authx.Identity) bool {
		_, ok := nodeName(wanted.Name)
		return ok && nameAlone(wanted)
	}},
	{"serviceaccount", func(wanted, _ *authx.Identity) bool { return isServiceAccount(wanted) && nameAlone(wanted) }},
	{"user-info", func(wanted, _ *authx.Identity) bool {
		_, node := nodeName(wanted.Name)
		return !node && !isServiceAccount(wanted)
	}},
	{"", func(_, _ *authx.Identity) bool { return true }},
}

// constrained decides on impersonation in all modes.
type constrained struct {
	authorizer authx.Authorizer
	seed       maphash.Seed
	last       *lru.Cache // hash of a caller's name: the mode that allowed it last, which is tried first
}

func newConstrained(z authx.Authorizer) *constrained {
	return &constrained{authorizer: z, seed: maphash.MakeSeed(), last: lru.New(maxRemembered)}
}

// become returns the identity that the caller may act as, and the verb that allowed it, "" without
// constraints. Errors: the refusal of the first mode that was tried.
func (c *constrained) become(ctx context.Context, s *request.Scope, wanted *authx.Identity) (*authx.Identity, string, error) {
	caller := maphash.String(c.seed, s.User.Name)
	last, remembered := c.last.Get(caller)
	order := make([]int, 0, len(impersonationModes))
	if remembered {
		order = append(order, last.(int))
	}
	for i := range impersonationModes {
		if !remembered || i != last.(int) {
			order = append(order, i)
		}
	}
	var refused error
	for _, i := range order {
		mode := &impersonationModes[i]
		if !mode.applies(wanted, s.User) {
			continue
		}
		q := impersonationCheck{context: ctx, authorizer: c.authorizer, caller: s.User, mode: mode.name}
		who, err := q.become(s, wanted)
		if err == nil {
			c.last.Add(caller, i)
			return who, q.constraint(), nil
		}
		if refused == nil {
			refused = err
		}
	}
	return nil, "", refused
}

// impersonationCheck decides whether a caller may impersonate in one mode.
type impersonationCheck struct {
	context    context.Context
	authorizer authx.Authorizer
	caller     *authx.Identity
	mode       string
	failed     bool // the authorizer failed
}

// verb returns the verb of the permission to impersonate.
func (q *impersonationCheck) verb() string {
	if q.mode == "" {
		return "impersonate"
	}
	return "impersonate:" + q.mode
}

// constraint returns the mode as audit events have it.
func (q *impersonationCheck) constraint() string {
	if q.mode == "" {
		return ""
	}
	return q.verb()
}

func (q *impersonationCheck) become(s *request.Scope, wanted *authx.Identity) (*authx.Identity, error) {
	if q.mode != "" {
		if err := q.request(s); err != nil {
			return nil, err
		}
	}
	return q.identity(wanted)
}

// identity checks each part of the identity, and returns it.
func (q *impersonationCheck) identity(wanted *authx.Identity) (*authx.Identity, error) {
	groups, err := q.name(wanted)
	if err != nil {
		return nil, err
	}
	if wanted.UID != "" {
		if err := q.part(authx.Attributes{APIGroup: authenticationGroup, APIVersion: "v1", Resource: "uids", Name: wanted.UID}); err != nil {
			return nil, err
		}
	}
	if err := q.groups(wanted.Groups); err != nil {
		return nil, err
	}
	if err := q.extra(wanted.Extra); err != nil {
		return nil, err
	}
	return &authx.Identity{Name: wanted.Name, UID: wanted.UID, Groups: withAuthenticated(wanted.Name, groups), Extra: wanted.Extra}, nil
}

// stillMayImpersonate returns a function that reports whether the user of a request may still impersonate an identity under a constraint,
// for this request. It does as long as the authorizer fails.
func stillMayImpersonate(z authx.Authorizer, s *request.Scope, wanted *authx.Identity, constraint string) func(context.Context) bool {
	caller, info := s.User, s.Info
	return func(ctx context.Context) bool {
		q := impersonationCheck{context: ctx, authorizer: z, caller: caller, mode: strings.TrimPrefix(constraint, "impersonate:")}
		_, err := q.become(&request.Scope{Info: info.Fresh()}, wanted) // the request's goroutine uses its own
		return err == nil || q.failed
	}
}

// request checks that the caller may make its request in this mode.
func (q *impersonationCheck) request(s *request.Scope) error {
	verbs := []string{s.Info.Verb}
	if getsFirst(s.Info) {
		verbs = []string{"get", s.Info.Verb}
	}
	for _, verb := range verbs {
		a := attributes(s, len(s.Info.FieldSelector)+len(s.Info.LabelSelector) < longSelector)
		a.Verb = "impersonate-on:" + q.mode + ":" + verb
		if err := q.authorize(a); err != nil {
			return err
		}
	}
	return nil
}

// name checks the name of the identity, and returns the groups that the identity gets.
func (q *impersonationCheck) name(wanted *authx.Identity) ([]string, error) {
	groups := wanted.Groups
	a := authx.Attributes{APIGroup: authenticationGroup, APIVersion: "v1", Resource: "users", Name: wanted.Name}
	if q.mode == "" {
		a.APIGroup = ""
	} else if node, ok := nodeName(wanted.Name); ok {
		a.Resource, a.Name = "nodes", node
		if q.mode == associatedNode {
			a.Name = "*"
		}
		groups = []string{authx.GroupNodes}
	}
	if ns, name, ok := authx.SplitServiceAccount(wanted.Name); ok {
		a.Resource, a.Namespace, a.Name = "serviceaccounts", ns, name
		if len(wanted.Groups) == 0 {
			groups = []string{authx.GroupServiceAccounts, authx.GroupServiceAccounts + ":" + ns}
		}
	}
	return groups, q.part(a)
}

func (q *impersonationCheck) groups(groups []string) error {
	a := authx.Attributes{APIGroup: authenticationGroup, APIVersion: "v1", Resource: "groups"}
	if q.mode == "" {
		a.APIGroup = ""
	} else {
		if slices.Contains(groups, "") {
			return q.refuse(a, "impersonating the empty string group is not allowed")
		}
		if slices.Contains(groups, authx.GroupMasters) {
			a.Name = authx.GroupMasters
			return q.refuse(a, "impersonating the system:masters group is not allowed")
		}
		if len(groups) >= fewParts {
			a.Name = "*"
			if q.part(a) == nil {
				return nil
			}
		}
	}
	for _, g := range groups {
		a.Name = g
		if err := q.part(a); err != nil {
			return err
		}
	}
	return nil
}

func (q *impersonationCheck) extra(extra map[string][]string) error {
	a := authx.Attributes{APIGroup: authenticationGroup, APIVersion: "v1", Resource: "userextras"}
	keys, values := slices.Sorted(maps.Keys(extra)), 0
	for _, k := range keys {
		values += len(extra[k])
		if q.mode != "" {
			if err := validExtra(k, extra[k]); err != nil {
				return q.refuse(a, err.Error())
			}
		}
	}
	if q.mode != "" && max(len(keys), values) >= fewParts {
		a.Subresource, a.Name = "*", "*"
		if q.part(a) == nil {
			return nil
		}
	}
	for _, k := range keys {
		a.Subresource = k
		for _, v := range extra[k] {
			a.Name = v
			if err := q.part(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func validExtra(key string, values []string) error {
	if key == "" {
		return errors.New("impersonating the empty string key in extra is not allowed")
	}
	if err := utilvalidation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key).ToAggregate(); err != nil {
		return fmt.Errorf("impersonating an invalid key in extra is not allowed: %w", err)
	}
	switch {
	case key != strings.ToLower(key):
		return fmt.Errorf("impersonating a non-lowercase key in extra is not allowed: %q", key)
	case len(values) == 0:
		return errors.New("impersonating empty values in extra is not allowed")
	case slices.Contains(values, ""):
		return errors.New("impersonating the empty string value in extra is not allowed")
	}
	return nil
}

// part checks one part of the identity.
func (q *impersonationCheck) part(a authx.Attributes) error {
	a.Verb, a.ResourceRequest = q.verb(), true
	return q.authorize(&a)
}

// authorize calls the authorizer. Errors: a refusal.
func (q *impersonationCheck) authorize(a *authx.Attributes) error {
	a.User = q.subject()
	decision, reason, err := q.authorizer.Authorize(q.context, a)
	q.failed = q.failed || err != nil
	switch {
	case decision == authx.Allow:
		return nil
	case err != nil && apierrors.IsForbidden(err):
		return err
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return permits.Forbidden(a, reason)
}

func (q *impersonationCheck) refuse(a authx.Attributes, reason string) error {
	a.User, a.Verb, a.ResourceRequest = q.subject(), q.verb(), true
	return permits.Forbidden(&a, reason)
}

// subject returns the caller as authorizers see it: for the node of its own, the keys of its extra
// values replace the values.
func (q *impersonationCheck) subject() *authx.Identity {
	if q.mode != associatedNode {
		return q.caller
	}
	who := *q.caller
	who.Extra = map[string][]string{nodeKeys: slices.Sorted(maps.Keys(q.caller.Extra))}
	return &who
}

// nameAlone reports whether the headers name a user, and nothing else.
func nameAlone(who *authx.Identity) bool {
	return who.UID == "" && len(who.Groups) == 0 && len(who.Extra) == 0
}

func isServiceAccount(who *authx.Identity) bool {
	_, _, ok := authx.SplitServiceAccount(who.Name)
	return ok
}

// nodeName returns the node whose user has a name.
func nodeName(user string) (string, bool) {
	name, ok := strings.CutPrefix(user, authx.NodePrefix)
	return name, ok && len(validation.NameIsDNSSubdomain(name, false)) == 0
}
