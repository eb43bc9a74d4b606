package rbac

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

// longRole is the number of rules from which an index of a role is worth its memory.
const longRole = 8

// resourceName is a resource as rules name it: "pods" is {pods}, "pods/log" is {pods log},
// "*/scale" is {* scale}, "*" is {*}. The name is "" for rules of all names.
type resourceName struct{ resource, sub, name string }

func aboutOf(text string) resourceName {
	resource, sub, _ := strings.Cut(text, "/")
	if sub == "" {
		return resourceName{resource: text}
	}
	return resourceName{resource: resource, sub: sub}
}

// ofPaths is the key of all rules about paths.
var ofPaths = resourceName{sub: "/"}

// hash is FNV-1a. Rules with equal hashes are compared, as those with equal keys are.
func (k resourceName) hash() uint32 {
	h := uint32(2166136261)
	for _, part := range [...]string{k.resource, k.sub} {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
		h = (h ^ 0xff) * 16777619 // no part has this byte
	}
	return named(h, k.name)
}

// named returns the hash of a key with a name, given that of the key without it.
func named(h uint32, name string) uint32 {
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// hashedRequest is a request whose keys are hashed once, for all roles.
type hashedRequest struct {
	*authx.Attributes
	n, named int       // how many of hashes there are: without names, and with the name of the object
	hashes   [6]uint32 // of the index keys of rules that may cover the request
}

// keys computes the hashes.
func (q *hashedRequest) keys() {
	if q.n > 0 {
		return
	}
	keys := [3]resourceName{{resource: q.Resource, sub: q.Subresource}, {resource: "*"}, {resource: "*", sub: q.Subresource}}
	if strings.Contains(q.Resource, "/") { // only access reviews have such requests
		keys[0] = aboutOf(strings.TrimSuffix(q.Resource+"/"+q.Subresource, "/"))
	}
	switch {
	case !q.ResourceRequest:
		keys[0], q.n = ofPaths, 1
	case q.Subresource == "":
		q.n = 2
	default:
		q.n = 3
	}
	for i := range q.n {
		q.hashes[i] = keys[i].hash()
	}
	if q.named = q.n; q.Name != "" {
		for i := range q.n {
			q.hashes[q.n+i] = named(q.hashes[i], q.Name)
		}
		q.named = 2 * q.n
	}
}

// signatureBits is the number of bits of a signature.
const signatureBits = 1024

// signature is a Bloom filter of resources with one bit for each.
type signature [signatureBits / 64]uint64

func (s *signature) add(hash uint32) { s[hash%signatureBits/64] |= 1 << (hash % 64) }

// entry is an index entry: the hash of a key, and the position of a rule with that key.
type entry struct {
	hash uint32
	rule int32
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.rule, b.rule))
}

// role is the rules of a role. An index takes at most 16 bytes for each of their strings.
type role struct {
	rules  []rbacv1.PolicyRule
	weight int // about how many bytes the rules take
	long   bool
	by     []entry // of long roles, sorted
	about  signature
	paths  []*rbacv1.PolicyRule
}

func newRole(rules []rbacv1.PolicyRule) *role {
	r := &role{rules: rules, long: len(rules) > longRole}
	for i := range rules {
		rule := &rules[i]
		r.weight += weightOf(rule)
		if len(rule.NonResourceURLs) > 0 {
			r.paths = append(r.paths, rule)
			r.about.add(ofPaths.hash())
		}
		names := rule.ResourceNames
		if n, m := len(names), len(rule.Resources); n == 0 || n*m > 2*(n+m) { // so that the index is no larger than the rules
			names = []string{""}
		}
		for _, text := range rule.Resources {
			k := aboutOf(text)
			r.about.add(k.hash())
			if !r.long {
				continue
			}
			for _, k.name = range names {
				r.by = append(r.by, entry{k.hash(), int32(i)})
			}
		}
	}
	slices.SortFunc(r.by, compareEntries)
	r.by = slices.Clip(slices.Compact(r.by))
	return r
}

// weightOf returns about how many bytes a rule takes.
func weightOf(r *rbacv1.PolicyRule) int {
	n := 120
	for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
		for _, s := range list {
			n += 16 + len(s)
		}
	}
	return n
}

// allows reports whether a rule covers a request. A nil role has no rules.
func (r *role) allows(q *hashedRequest) bool {
	switch {
	case r == nil:
		return false
	case !q.ResourceRequest:
		for _, rule := range r.paths {
			if RuleAllows(q.Attributes, rule) {
				return true
			}
		}
		return false
	case !r.long:
		for i := range r.rules {
			if RuleAllows(q.Attributes, &r.rules[i]) {
				return true
			}
		}
		return false
	}
	q.keys()
	for _, h := range q.hashes[:q.named] {
		at, _ := slices.BinarySearchFunc(r.by, h, func(e entry, h uint32) int { return cmp.Compare(e.hash, h) })
		for ; at < len(r.by) && r.by[at].hash == h; at++ {
			if RuleAllows(q.Attributes, &r.rules[r.by[at].rule]) {
				return true
			}
		}
	}
	return false
}
