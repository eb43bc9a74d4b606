package access

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	policyAgent    = "kube-apiserver" // field manager of the default policy
	policyTries    = 5                // to write what others delete meanwhile
	policyWriters  = 16
	autoUpdate     = "rbac.authorization.kubernetes.io/autoupdate"
	bootstrapping  = "kubernetes.io/bootstrapping"
	rbacPath       = "/apis/rbac.authorization.k8s.io/v1/"
	jsonType       = "application/json"
	policyOrigin   = "rbac-defaults"
	autoUpdateYes  = "true"
	autoUpdateNone = "false"
)

//go:embed policy.json
var policyFile []byte

// Policy is the roles and bindings that each cluster has from its start. All servers of a
// process share one that have the same release and gates.
type Policy struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding

	whole sync.Map // sqlstore.Key -> the sum of a stored object that lacked nothing
}

// DefaultPolicy is the built-in, immutable policy of a release, where some gates are on; nil:
// none of those that bring roles or rules.
func DefaultPolicy(v release.Version, on kinds.Feature) (*Policy, error) {
	file, err := readPolicy()
	if err != nil {
		return nil, err
	}
	var enabled []string
	if on != nil {
		enabled = slices.DeleteFunc(slices.Clone(file.gates), func(gate string) bool { return !on(gate) })
	}
	return file.policy(v, enabled), nil
}

// policyDocument is policy.json: roles, rules and bindings are part of the policy of the releases that they
// name, where the gates are as they say.
type policyDocument struct {
	ClusterRoles        []gatedClusterRole   `json:"clusterRoles"`
	ClusterRoleBindings []gatedBinding       `json:"clusterRoleBindings"`
	Roles               []gatedRole          `json:"roles"`
	RoleBindings        []rbacv1.RoleBinding `json:"roleBindings"`

	gates []string // that bring something or take it away, sorted

	mu   sync.Mutex
	made map[string]*Policy // by release and gates that are on
}

// condition says when something is part of the policy.
type condition struct {
	release.Between

	// Gate names gates, separated by commas, all of which must be on, or off for a gate with the prefix "!".
	Gate string `json:"gate"`
}

type gatedClusterRole struct {
	condition
	rbacv1.ClusterRole

	Rules []gatedRule `json:"rules"`
}

type gatedRole struct {
	rbacv1.Role

	Rules []gatedRule `json:"rules"`
}

type gatedRule struct {
	condition
	rbacv1.PolicyRule
}

type gatedBinding struct {
	condition
	rbacv1.ClusterRoleBinding
}

var readPolicy = sync.OnceValues(func() (*policyDocument, error) {
	d := &policyDocument{made: map[string]*Policy{}}
	if err := json.Unmarshal(policyFile, d); err != nil {
		return nil, fmt.Errorf("default policy: %w", err)
	}
	d.gates = d.named()
	return d, nil
})

// named are the gates that the document names.
func (d *policyDocument) named() []string {
	var names []string
	add := func(c condition) {
		for gate := range strings.SplitSeq(c.Gate, ",") {
			if gate != "" {
				names = append(names, strings.TrimPrefix(gate, "!"))
			}
		}
	}
	for i := range d.ClusterRoles {
		add(d.ClusterRoles[i].condition)
		for j := range d.ClusterRoles[i].Rules {
			add(d.ClusterRoles[i].Rules[j].condition)
		}
	}
	for i := range d.ClusterRoleBindings {
		add(d.ClusterRoleBindings[i].condition)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// met reports whether a condition is met in a release where some gates are on.
func (c condition) met(v release.Version, on []string) bool {
	if !c.Has(v) {
		return false
	}
	for gate := range strings.SplitSeq(c.Gate, ",") {
		name, off := strings.CutPrefix(gate, "!")
		if name != "" && slices.Contains(on, name) == off {
			return false
		}
	}
	return true
}

// policy is what the document says for a release where some gates are on. It is made once.
func (d *policyDocument) policy(v release.Version, on []string) *Policy {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := v.String() + " " + strings.Join(on, ",")
	if d.made[key] == nil {
		d.made[key] = d.make(v, on)
	}
	return d.made[key]
}

func (d *policyDocument) make(v release.Version, on []string) *Policy {
	met := func(all []gatedRule) (list []rbacv1.PolicyRule) {
		for i := range all {
			if all[i].met(v, on) {
				list = append(list, *all[i].PolicyRule.DeepCopy())
			}
		}
		return list
	}
	p := &Policy{}
	for i := range d.ClusterRoles {
		if r := &d.ClusterRoles[i]; r.met(v, on) {
			role := r.DeepCopy()
			role.Rules = met(r.Rules)
			p.ClusterRoles = append(p.ClusterRoles, *role)
		}
	}
	for i := range d.ClusterRoleBindings {
		if b := &d.ClusterRoleBindings[i]; b.met(v, on) {
			p.ClusterRoleBindings = append(p.ClusterRoleBindings, *b.DeepCopy())
		}
	}
	for i := range d.Roles {
		role := d.Roles[i].DeepCopy()
		role.Rules = met(d.Roles[i].Rules)
		p.Roles = append(p.Roles, *role)
	}
	for i := range d.RoleBindings {
		p.RoleBindings = append(p.RoleBindings, *d.RoleBindings[i].DeepCopy())
	}
	for _, obj := range p.objects() {
		labels := obj.want.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[bootstrapping] = policyOrigin
		obj.want.SetLabels(labels)
		obj.want.SetAnnotations(map[string]string{autoUpdate: autoUpdateYes})
	}
	return p
}

// NodeRules are the rules of node agents, which hold for them whatever has become
// of the cluster's role of this name.
func (p *Policy) NodeRules() []rbacv1.PolicyRule {
	for i := range p.ClusterRoles {
		if p.ClusterRoles[i].Name == "system:node" {
			return p.ClusterRoles[i].Rules
		}
	}
	return nil
}

// standing is one object of the policy.
type standing struct {
	storage, collection string
	want                kinds.Object
	empty               func() kinds.Object
}

func (p *Policy) objects() []standing {
	var all []standing
	for i := range p.ClusterRoles {
		all = append(all, standing{clusterRolesKey, rbacPath + "clusterroles", &p.ClusterRoles[i], func() kinds.Object { return &rbacv1.ClusterRole{} }})
	}
	for i := range p.ClusterRoleBindings {
		all = append(all, standing{clusterRoleBindingsKey, rbacPath + "clusterrolebindings", &p.ClusterRoleBindings[i], func() kinds.Object { return &rbacv1.ClusterRoleBinding{} }})
	}
	for i := range p.Roles {
		path := rbacPath + "namespaces/" + p.Roles[i].Namespace + "/roles"
		all = append(all, standing{rolesKey, path, &p.Roles[i], func() kinds.Object { return &rbacv1.Role{} }})
	}
	for i := range p.RoleBindings {
		path := rbacPath + "namespaces/" + p.RoleBindings[i].Namespace + "/rolebindings"
		all = append(all, standing{roleBindingsKey, path, &p.RoleBindings[i], func() kinds.Object { return &rbacv1.RoleBinding{} }})
	}
	return all
}

// Keys are those of all objects of the policy.
func (p *Policy) Keys() []sqlstore.Key {
	var keys []sqlstore.Key
	for _, s := range p.objects() {
		keys = append(keys, s.key())
	}
	return keys
}

// Ensure brings back what is missing of the policy: objects, rules, subjects,
// selectors, labels. What others have added stays, and an object whose autoupdate
// annotation is "false", or that cannot be read, is left alone. Several servers may do
// so at once. An internal error of one object does not keep it from the others.
func (p *Policy) Ensure(ctx context.Context, api API, c *cache.Cache) error {
	var mu sync.Mutex
	var kept error
	var lacking []func(context.Context) error
	for _, s := range p.objects() {
		item := c.Get(s.storage, s.want.GetNamespace(), s.want.GetName())
		if item != nil && (item.Corrupt != nil || p.enough(s, item.JSON())) {
			continue
		}
		lacking = append(lacking, func(ctx context.Context) error {
			err := s.ensure(ctx, api, item != nil)
			if err == nil {
				return nil
			}
			err = fmt.Errorf("default policy: %s: %w", s.want.GetName(), err)
			if !apierrors.IsInternalError(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if kept == nil {
				kept = err
			}
			return nil
		})
	}
	if err := InParallel(ctx, policyWriters, lacking); err != nil {
		return err
	}
	return kept
}

// enough reports whether a stored object lacks nothing. The last that was so is remembered: the
// next server of the process often begins with the same bytes, and reading them all costs
// more than the rest of its start.
func (p *Policy) enough(s standing, stored []byte) bool {
	key, sum := s.key(), sha256.Sum256(stored)
	if last, ok := p.whole.Load(key); ok && last == sum {
		return true
	}
	have := s.empty()
	if json.Unmarshal(stored, have) != nil || restore(have, s.want) {
		return false
	}
	p.whole.Store(key, sum)
	return true
}

func (s standing) key() sqlstore.Key {
	return sqlstore.Key{Resource: s.storage, Namespace: s.want.GetNamespace(), Name: s.want.GetName()}
}

// ensure makes an object, or brings it back to what it should be. Of one that is not known
// without a read first: on the first start none of them exists.
func (s standing) ensure(ctx context.Context, api API, known bool) error {
	if !known {
		err := api.Call(ctx, policyAgent, http.MethodPost, s.collection, jsonType, s.want, nil)
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for try := 1; ; try++ {
		err := s.once(ctx, api)
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // other servers start, too
		case apierrors.IsNotFound(err) && try < policyTries:
		default:
			return err
		}
		if err := contention.Rest(ctx, try); err != nil {
			return err
		}
	}
}

func (s standing) once(ctx context.Context, api API) error {
	path := s.collection + "/" + s.want.GetName()
	have := s.empty()
	err := api.Call(ctx, policyAgent, http.MethodGet, path, "", nil, have)
	if apierrors.IsNotFound(err) {
		return api.Call(ctx, policyAgent, http.MethodPost, s.collection, jsonType, s.want, nil)
	}
	if err != nil || !restore(have, s.want) {
		return err
	}
	if refersElsewhere(have, s.want) {
		uid := have.GetUID()
		options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
		if err := api.Call(ctx, policyAgent, http.MethodDelete, path, jsonType, options, nil); err != nil {
			return err
		}
		return api.Call(ctx, policyAgent, http.MethodPost, s.collection, jsonType, s.want, nil)
	}
	return api.Call(ctx, policyAgent, http.MethodPut, path, jsonType, have, nil)
}

// refersElsewhere says that a binding is of another role, which no update can change.
func refersElsewhere(have, want kinds.Object) bool {
	switch h := have.(type) {
	case *rbacv1.ClusterRoleBinding:
		return h.RoleRef != want.(*rbacv1.ClusterRoleBinding).RoleRef
	case *rbacv1.RoleBinding:
		return h.RoleRef != want.(*rbacv1.RoleBinding).RoleRef
	}
	return false
}

// restore adds to have what it lacks of want, and reports whether there was anything.
func restore(have, want kinds.Object) bool {
	if have.GetAnnotations()[autoUpdate] == autoUpdateNone {
		return false
	}
	changed := refersElsewhere(have, want)
	labels, more := merged(have.GetLabels(), want.GetLabels())
	if more {
		have.SetLabels(labels)
		changed = true
	}
	annotations, more := merged(have.GetAnnotations(), want.GetAnnotations())
	if more {
		have.SetAnnotations(annotations)
		changed = true
	}
	switch h := have.(type) {
	case *rbacv1.ClusterRole:
		w := want.(*rbacv1.ClusterRole)
		changed = restoreSelectors(h, w) || changed
		if w.AggregationRule == nil {
			changed = restoreRules(&h.Rules, w.Rules) || changed
		}
	case *rbacv1.Role:
		changed = restoreRules(&h.Rules, want.(*rbacv1.Role).Rules) || changed
	case *rbacv1.ClusterRoleBinding:
		changed = restoreSubjects(&h.Subjects, want.(*rbacv1.ClusterRoleBinding).Subjects) || changed
	case *rbacv1.RoleBinding:
		changed = restoreSubjects(&h.Subjects, want.(*rbacv1.RoleBinding).Subjects) || changed
	}
	return changed
}

// merged adds the keys that have lacks.
func merged(have, want map[string]string) (map[string]string, bool) {
	more := false
	for k, v := range want {
		if _, ok := have[k]; ok {
			continue
		}
		if have == nil {
			have = map[string]string{}
		}
		have[k], more = v, true
	}
	return have, more
}

func restoreRules(have *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule) bool {
	changed := false
	for i := range want {
		if missing, err := rbac.Uncovered(*have, want[i:i+1]); len(missing) > 0 || err != nil {
			*have = append(*have, want[i])
			changed = true
		}
	}
	return changed
}

func restoreSubjects(have *[]rbacv1.Subject, want []rbacv1.Subject) bool {
	changed := false
	had := rules.In(slices.Clone(*have))
	for _, s := range want {
		if !had.Has(s) {
			*have = append(*have, s)
			changed = true
		}
	}
	return changed
}

func restoreSelectors(have, want *rbacv1.ClusterRole) bool {
	if want.AggregationRule == nil {
		return false
	}
	if have.AggregationRule == nil {
		have.AggregationRule = &rbacv1.AggregationRule{}
	}
	changed := false
	for _, s := range want.AggregationRule.ClusterRoleSelectors {
		same := func(other metav1.LabelSelector) bool { return equality.Semantic.DeepEqual(s, other) }
		if !slices.ContainsFunc(have.AggregationRule.ClusterRoleSelectors, same) {
			have.AggregationRule.ClusterRoleSelectors = append(have.AggregationRule.ClusterRoleSelectors, s)
			changed = true
		}
	}
	return changed
}
