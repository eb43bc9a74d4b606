package access

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	policyAgent    = "kube-apiserver" // field manager of the default policy
	policyTries    = 5                // attempts while other clients delete the object
	policyWriters  = 16
	autoUpdate     = "rbac.authorization.kubernetes.io/autoupdate"
	bootstrapping  = "kubernetes.io/bootstrapping"
	rbacPath       = "/apis/rbac.authorization.k8s.io/v1/"
	jsonType       = "application/json"
	policyOrigin   = "rbac-defaults"
	autoUpdateYes  = "true"
	autoUpdateNone = "false"
)

// policyFile is policy.json, compressed.
//
//go:generate gzip -9nkf policy.json
//go:embed policy.json.gz
var policyFile string

// Policy holds the roles and bindings that every cluster has. All servers of a process with the same release
// and gates share one.
type Policy struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding

	whole sync.Map // sqlstore.Key -> checksum of a stored object that lacked nothing
}

// DefaultPolicy returns the built-in, immutable policy of a release with the gates that are on; nil: none of the
// gates that add roles or rules.
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

// policyDocument is policy.json: roles, rules and bindings apply to the releases and the gates that they
// name.
type policyDocument struct {
	ClusterRoles        []gatedClusterRole   `json:"clusterRoles"`
	ClusterRoleBindings []gatedBinding       `json:"clusterRoleBindings"`
	Roles               []gatedRole          `json:"roles"`
	RoleBindings        []rbacv1.RoleBinding `json:"roleBindings"`

	gates []string // gates named in the document, sorted

	mu   sync.Mutex
	made map[string]*Policy // by release and enabled gates
}

// condition restricts an element of the policy.
type condition struct {
	release.Between

	// Gate names gates, separated by commas, which must all be on, or off for a gate with the prefix "!".
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
	zr, err := gzip.NewReader(strings.NewReader(policyFile))
	if err == nil {
		err = json.NewDecoder(zr).Decode(d)
	}
	if err != nil {
		return nil, fmt.Errorf("default policy: %w", err)
	}
	d.gates = d.named()
	return d, nil
})

// named returns the gates in the document.
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

// met reports whether a release with the gates that are on meets a condition.
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

// policy returns the policy for a release with the gates that are on. Each is made once.
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

// NodeRules returns the rules of kubelets, which apply even if the cluster's role of this name has changed.
func (p *Policy) NodeRules() []rbacv1.PolicyRule {
	for i := range p.ClusterRoles {
		if p.ClusterRoles[i].Name == "system:node" {
			return p.ClusterRoles[i].Rules
		}
	}
	return nil
}

// policyObject is an object of the policy.
type policyObject struct {
	storage, collection string
	want                kinds.Object
	empty               func() kinds.Object
}

func (p *Policy) objects() []policyObject {
	var all []policyObject
	for i := range p.ClusterRoles {
		all = append(all, policyObject{clusterRolesKey, rbacPath + "clusterroles", &p.ClusterRoles[i], func() kinds.Object { return &rbacv1.ClusterRole{} }})
	}
	for i := range p.ClusterRoleBindings {
		all = append(all, policyObject{clusterRoleBindingsKey, rbacPath + "clusterrolebindings", &p.ClusterRoleBindings[i], func() kinds.Object { return &rbacv1.ClusterRoleBinding{} }})
	}
	for i := range p.Roles {
		path := rbacPath + "namespaces/" + p.Roles[i].Namespace + "/roles"
		all = append(all, policyObject{rolesKey, path, &p.Roles[i], func() kinds.Object { return &rbacv1.Role{} }})
	}
	for i := range p.RoleBindings {
		path := rbacPath + "namespaces/" + p.RoleBindings[i].Namespace + "/rolebindings"
		all = append(all, policyObject{roleBindingsKey, path, &p.RoleBindings[i], func() kinds.Object { return &rbacv1.RoleBinding{} }})
	}
	return all
}

// Keys returns the keys of all objects of the policy.
func (p *Policy) Keys() []sqlstore.Key {
	var keys []sqlstore.Key
	for _, s := range p.objects() {
		keys = append(keys, s.key())
	}
	return keys
}

func (s policyObject) key() sqlstore.Key {
	return sqlstore.Key{Resource: s.storage, Namespace: s.want.GetNamespace(), Name: s.want.GetName()}
}
