package node_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/authx/rbac"
)

func agent(name string) *authx.Identity {
	return &authx.Identity{Name: "system:node:" + name, Groups: []string{"system:nodes", "system:authenticated"}}
}

// authorizer has node n1 with pod ns/p, which uses one of each, and n2 with pod ns/q.
func authorizer() *node.Authorizer {
	g := &node.Graph{}
	in := func(k node.Kind, name string) node.Ref { return node.Ref{Kind: k, Namespace: "ns", Name: name} }
	g.SetReferences(in(node.Pod, "p"), "n1", []node.Ref{
		in(node.Secret, "s"), in(node.ConfigMap, "c"), in(node.Claim, "data"), in(node.Account, "app"), in(node.ResourceClaim, "gpu"),
	})
	g.SetReferences(in(node.Pod, "q"), "n2", []node.Ref{in(node.Secret, "other")})
	g.Bind("pv", in(node.Claim, "data"), []node.Ref{{Kind: node.Secret, Namespace: "storage", Name: "key"}})
	g.Bind("pv2", in(node.Claim, "elsewhere"), []node.Ref{{Kind: node.Secret, Namespace: "storage", Name: "key2"}})
	g.SetReferences(node.Ref{Kind: node.Attachment, Name: "va"}, "n1", nil)
	g.SetReferences(node.Ref{Kind: node.Slice, Name: "sl"}, "n1", nil)
	g.SetReferences(in(node.PodCertificate, "pc"), "n1", nil)
	g.SetReferences(in(node.PodCertificate, "other"), "n2", nil)
	return &node.Authorizer{
		Graph: g, Allows: rbac.RuleAllows, Selectors: true, Certificates: true,
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"services", "nodes", "pods"}},
			{Verbs: []string{"create", "get", "list", "watch"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"podcertificaterequests"}},
		},
	}
}

// ask is one question: verb, group/resource[/subresource], namespace, name.
type ask struct{ verb, group, resource, sub, ns, name, selector string }

func (q ask) attributes(t testing.TB, user *authx.Identity) *authx.Attributes {
	t.Helper()
	a := &authx.Attributes{
		User: user, Verb: q.verb, APIGroup: q.group, Resource: q.resource, Subresource: q.sub, Namespace: q.ns, Name: q.name,
		APIVersion: "v1", ResourceRequest: true,
	}
	if q.selector != "" {
		s, err := fields.ParseSelector(q.selector)
		if err != nil {
			t.Fatal(err)
		}
		a.FieldRequirements = s.Requirements()
	}
	return a
}

func TestAuthorize(t *testing.T) {
	const (
		unrelated = "no relationship found between node 'n1' and this object"
		noName    = "No Object name found"
		single    = "can only get individual resources of this type"
		readOnly  = "can only read resources of this type"
		yes       = "yes"
	)
	const coord, storage, dra, certificates = "coordination.k8s.io", "storage.k8s.io", "resource.k8s.io", "certificates.k8s.io"
	for _, c := range []struct {
		ask
		want string // "yes", or the reason
	}{
		{ask{"create", certificates, "podcertificaterequests", "", "ns", "", ""}, yes},
		{ask{"get", certificates, "podcertificaterequests", "", "ns", "pc", ""}, yes},
		{ask{"get", certificates, "podcertificaterequests", "", "ns", "other", ""}, unrelated},
		{ask{"get", certificates, "podcertificaterequests", "", "ns", "", ""}, noName},
		{ask{"list", certificates, "podcertificaterequests", "", "", "", "spec.nodeName=n1"}, yes},
		{ask{"list", certificates, "podcertificaterequests", "", "", "", "spec.nodeName=n2"}, "can only list/watch podcertificaterequests with nodeName field selector"},
		{ask{"watch", certificates, "podcertificaterequests", "", "ns", "", ""}, "can only list/watch podcertificaterequests with nodeName field selector"},
		{ask{"delete", certificates, "podcertificaterequests", "", "ns", "pc", ""}, "nodes may not delete podcertificaterequests"},
		{ask{"update", certificates, "podcertificaterequests", "status", "ns", "pc", ""}, "nodes may not access the status subresource of PodCertificateRequests"},
		{ask{"get", "", "secrets", "", "ns", "s", ""}, yes},
		{ask{"list", "", "secrets", "", "ns", "s", ""}, yes},
		{ask{"watch", "", "secrets", "", "ns", "s", ""}, yes},
		{ask{"get", "", "secrets", "", "ns", "other", ""}, unrelated},
		{ask{"get", "", "secrets", "", "other", "s", ""}, unrelated},
		{ask{"get", "", "secrets", "", "storage", "key", ""}, yes},
		{ask{"get", "", "secrets", "", "storage", "key2", ""}, unrelated},
		{ask{"list", "", "secrets", "", "ns", "", ""}, noName},
		{ask{"list", "", "secrets", "", "", "", ""}, "can only read namespaced object of this type"},
		{ask{"update", "", "secrets", "", "ns", "s", ""}, readOnly},
		{ask{"get", "", "secrets", "x", "ns", "s", ""}, "cannot read subresource"},
		{ask{"get", "", "configmaps", "", "ns", "c", ""}, yes},
		{ask{"get", "", "configmaps", "", "ns", "s", ""}, unrelated},
		{ask{"delete", "", "configmaps", "", "ns", "c", ""}, readOnly},
		{ask{"get", "", "persistentvolumeclaims", "", "ns", "data", ""}, yes},
		{ask{"list", "", "persistentvolumeclaims", "", "ns", "data", ""}, single},
		{ask{"get", "", "persistentvolumeclaims", "x", "ns", "data", ""}, "cannot get subresource"},
		{ask{"patch", "", "persistentvolumeclaims", "status", "ns", "data", ""}, yes},
		{ask{"update", "", "persistentvolumeclaims", "status", "ns", "other", ""}, unrelated},
		{ask{"get", "", "persistentvolumeclaims", "status", "ns", "data", ""}, "can only get/update/patch this type"},
		{ask{"get", "", "persistentvolumes", "", "", "pv", ""}, yes},
		{ask{"get", "", "persistentvolumes", "", "", "pv2", ""}, unrelated},
		{ask{"get", storage, "volumeattachments", "", "", "va", ""}, yes},
		{ask{"get", storage, "volumeattachments", "", "", "vb", ""}, unrelated},
		{ask{"get", dra, "resourceclaims", "", "ns", "gpu", ""}, yes},
		{ask{"create", "", "serviceaccounts", "token", "ns", "app", ""}, yes},
		{ask{"create", "", "serviceaccounts", "token", "ns", "default", ""}, unrelated},
		{ask{"create", "", "serviceaccounts", "", "ns", "app", ""}, "can only create token subresource of serviceaccount"},
		{ask{"get", "", "serviceaccounts", "", "ns", "app", ""}, "can only create tokens for individual service accounts"},
		{ask{"create", coord, "leases", "", "kube-node-lease", "", ""}, yes},
		{ask{"update", coord, "leases", "", "kube-node-lease", "n1", ""}, yes},
		{ask{"update", coord, "leases", "", "kube-node-lease", "n2", ""}, "can only access node lease with the same name as the requesting node"},
		{ask{"get", coord, "leases", "", "ns", "n1", ""}, `can only access leases in the "kube-node-lease" system namespace`},
		{ask{"list", coord, "leases", "", "kube-node-lease", "", ""}, "can only get, create, update, patch, or delete a node lease"},
		{ask{"create", storage, "csinodes", "", "", "", ""}, yes},
		{ask{"get", storage, "csinodes", "", "", "n2", ""}, "can only access CSINode with the same name as the requesting node"},
		{ask{"get", storage, "csinodes", "status", "", "n1", ""}, "cannot authorize CSINode subresources"},
		{ask{"watch", storage, "csinodes", "", "", "n1", ""}, "can only get, create, update, patch, or delete a CSINode"},
		{ask{"get", "", "nodes", "", "", "n1", ""}, yes},
		{ask{"watch", "", "nodes", "", "", "n1", ""}, yes},
		{ask{"list", "", "nodes", "", "", "", ""}, "node 'n1' cannot read all nodes, only its own Node object"},
		{ask{"get", "", "nodes", "", "", "n2", ""}, "node 'n1' cannot read 'n2', only its own Node object"},
		{ask{"update", "", "nodes", "", "", "n2", ""}, yes}, // admission sees to it
		{ask{"patch", "", "nodes", "status", "", "n1", ""}, yes},
		{ask{"delete", "", "nodes", "", "", "n1", ""}, ""},
		{ask{"get", "", "nodes", "proxy", "", "n1", ""}, ""},
		{ask{"get", "", "pods", "", "ns", "p", ""}, yes},
		{ask{"get", "", "pods", "", "ns", "q", ""}, unrelated},
		{ask{"get", "", "pods", "", "ns", "absent", ""}, unrelated},
		{ask{"list", "", "pods", "", "ns", "p", "metadata.name=p"}, yes},
		{ask{"list", "", "pods", "", "", "", "spec.nodeName=n1"}, yes},
		{ask{"watch", "", "pods", "", "", "", "spec.nodeName==n1,status.phase=Running"}, yes},
		{ask{"list", "", "pods", "", "", "", "spec.nodeName=n2"}, "can only list/watch pods with spec.nodeName field selector"},
		{ask{"list", "", "pods", "", "", "", "spec.nodeName!=n1"}, "can only list/watch pods with spec.nodeName field selector"},
		{ask{"list", "", "pods", "", "ns", "", ""}, "can only list/watch pods with spec.nodeName field selector"},
		{ask{"create", "", "pods", "", "ns", "", ""}, yes},
		{ask{"create", "", "pods", "eviction", "ns", "q", ""}, yes},
		{ask{"update", "", "pods", "status", "ns", "q", ""}, yes},
		{ask{"update", "", "pods", "", "ns", "p", ""}, ""},
		{ask{"get", "", "pods", "log", "ns", "p", ""}, ""},
		{ask{"create", "", "pods", "exec", "ns", "p", ""}, ""},
		{ask{"deletecollection", "", "pods", "", "ns", "", "spec.nodeName=n1"}, ""},
		{ask{"create", dra, "resourceslices", "", "", "", ""}, yes},
		{ask{"get", dra, "resourceslices", "", "", "sl", ""}, yes},
		{ask{"delete", dra, "resourceslices", "", "", "x", ""}, unrelated},
		{ask{"list", dra, "resourceslices", "", "", "", "spec.nodeName=n1"}, yes},
		{ask{"deletecollection", dra, "resourceslices", "", "", "", "spec.nodeName=n2"}, "can only list/watch/deletecollection resourceslices with nodeName field selector"},
		{ask{"get", "", "services", "", "ns", "x", ""}, yes},
		{ask{"list", "", "endpoints", "", "ns", "", ""}, ""},
		{ask{"get", "apps", "secrets", "", "ns", "s", ""}, ""}, // another group's secrets are no Secrets
	} {
		d, reason, err := authorizer().Authorize(t.Context(), c.attributes(t, agent("n1")))
		switch {
		case err != nil:
			t.Errorf("%+v: %v", c.ask, err)
		case c.want == yes && (d != authx.Allow || reason != ""):
			t.Errorf("%+v: refused: %q", c.ask, reason)
		case c.want != yes && (d != authx.NoOpinion || reason != c.want):
			t.Errorf("%+v: %v %q, want %q", c.ask, d, reason, c.want)
		}
	}
}

func TestWhoIsANode(t *testing.T) {
	for _, c := range []struct {
		user   authx.Identity
		d      authx.Decision
		reason string
	}{
		{*agent("n1"), authx.Allow, ""},
		{authx.Identity{Name: "system:node:n1", Groups: []string{"system:authenticated"}}, authx.NoOpinion, ""},
		{authx.Identity{Name: "n1", Groups: []string{"system:nodes"}}, authx.NoOpinion, ""},
		{*agent(""), authx.NoOpinion, `unknown node for user "system:node:"`},
	} {
		d, reason, err := authorizer().Authorize(t.Context(), ask{"get", "", "secrets", "", "ns", "s", ""}.attributes(t, &c.user))
		if d != c.d || reason != c.reason || err != nil {
			t.Errorf("%+v: %v %q %v", c.user, d, reason, err)
		}
	}
	d, _, err := authorizer().Authorize(t.Context(), &authx.Attributes{User: agent("n1"), Verb: "get", Path: "/metrics"})
	if d != authx.NoOpinion || err != nil {
		t.Errorf("path: %v %v", d, err)
	}
	if _, _, incomplete, err := authorizer().RulesFor(t.Context(), agent("n1"), "ns"); !incomplete || err == nil {
		t.Error("rules of a node were listed")
	}
	if _, _, incomplete, err := authorizer().RulesFor(t.Context(), &authx.Identity{Name: "jan"}, "ns"); incomplete || err != nil {
		t.Errorf("rules of others: %v %v", incomplete, err)
	}
}

// Without selectors nodes and pods follow the fixed rules.
func TestWithoutSelectors(t *testing.T) {
	z := authorizer()
	z.Selectors = false
	for _, q := range []ask{
		{"list", "", "nodes", "", "", "", ""}, {"get", "", "nodes", "", "", "n2", ""}, {"list", "", "pods", "", "", "", ""},
		{"list", "resource.k8s.io", "resourceslices", "", "", "", ""},
	} {
		if d, reason, _ := z.Authorize(t.Context(), q.attributes(t, agent("n1"))); d != authx.Allow {
			t.Errorf("%+v: %q", q, reason)
		}
	}
	certificate := ask{"get", "certificates.k8s.io", "podcertificaterequests", "", "ns", "pc", ""}
	if d, _, _ := z.Authorize(t.Context(), certificate.attributes(t, agent("n1"))); d == authx.Allow {
		t.Errorf("%+v: allowed", certificate)
	}
}

func TestGraph(t *testing.T) {
	g := &node.Graph{}
	pod := func(name string) node.Ref { return node.Ref{Kind: node.Pod, Namespace: "ns", Name: name} }
	secret := node.Ref{Kind: node.Secret, Namespace: "ns", Name: "s"}
	claim := node.Ref{Kind: node.Claim, Namespace: "ns", Name: "c"}
	volume := node.Ref{Kind: node.Volume, Name: "pv"}
	key := node.Ref{Kind: node.Secret, Namespace: "keys", Name: "k"}
	want := func(step string, reached ...node.Ref) {
		t.Helper()
		for _, r := range []node.Ref{pod("a"), pod("b"), secret, claim, volume, key} {
			expect := false
			for _, other := range reached {
				expect = expect || other == r
			}
			if got := g.Reaches("n", r); got != expect {
				t.Errorf("%s: n reaches %+v: %v", step, r, got)
			}
		}
	}
	want("empty")
	g.SetReferences(pod("a"), "n", []node.Ref{secret})
	want("one pod", pod("a"), secret)
	g.SetReferences(pod("b"), "n", []node.Ref{secret, claim})
	want("two pods", pod("a"), pod("b"), secret, claim)
	g.Bind("pv", claim, []node.Ref{key})
	want("volume", pod("a"), pod("b"), secret, claim, volume, key)
	g.Release(pod("a"))
	want("the other still uses it", pod("b"), secret, claim, volume, key)
	g.Bind("pv", node.Ref{Kind: node.Claim, Namespace: "ns", Name: "another"}, []node.Ref{key})
	want("volume of another claim", pod("b"), secret, claim)
	g.Bind("pv", claim, []node.Ref{key})
	g.SetReferences(pod("b"), "elsewhere", []node.Ref{secret, claim})
	want("pod of another node")
	if !g.Reaches("elsewhere", key) {
		t.Error("the other node does not reach it")
	}
	g.SetReferences(pod("b"), "n", []node.Ref{claim})
	want("back, with less", pod("b"), claim, volume, key)
	g.Unbind("pv")
	want("volume gone", pod("b"), claim)
	g.SetReferences(pod("b"), "", nil)
	want("not bound")
	g.SetReferences(pod("b"), "n", []node.Ref{claim})
	g.Bind("pv", claim, []node.Ref{key})
	g.Reset()
	want("forgotten")
	g.Release(pod("b"))
	g.Unbind("pv")
}

// BenchmarkAuthorize decides on a secret among 1,000 nodes with 30 pods each, all of
// which use one shared config map.
func BenchmarkAuthorize(b *testing.B) {
	z := authorizer()
	for n := range 1000 {
		for p := range 30 {
			z.Graph.SetReferences(node.Ref{Kind: node.Pod, Namespace: "ns", Name: fmt.Sprintf("p%d-%d", n, p)}, fmt.Sprintf("n%d", n), []node.Ref{
				{Kind: node.Secret, Namespace: "ns", Name: fmt.Sprintf("s%d-%d", n, p)}, {Kind: node.ConfigMap, Namespace: "ns", Name: "shared"},
				{Kind: node.Account, Namespace: "ns", Name: "default"},
			})
		}
	}
	for name, c := range map[string]struct {
		ask
		d authx.Decision
	}{
		"own secret":       {ask{"get", "", "secrets", "", "ns", "s77-1", ""}, authx.Allow},
		"shared config":    {ask{"get", "", "configmaps", "", "ns", "shared", ""}, authx.Allow},
		"other's secret":   {ask{"get", "", "secrets", "", "ns", "s78-1", ""}, authx.NoOpinion},
		"fixed rule":       {ask{"get", "", "services", "", "ns", "x", ""}, authx.Allow},
		"pods by selector": {ask{"watch", "", "pods", "", "", "", "spec.nodeName=n77"}, authx.Allow},
	} {
		a := c.attributes(b, agent("n77"))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d, _, _ := z.Authorize(b.Context(), a); d != c.d {
					b.Fatal(d)
				}
			}
		})
	}
}
