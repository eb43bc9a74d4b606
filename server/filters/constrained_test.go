package filters_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// TestConstrainedImpersonation: a caller needs impersonate-on:MODE:VERB on the request and impersonate:MODE on each
// part of the identity in one mode, or the right to impersonate without constraints; what it becomes follows from the mode.
func TestConstrainedImpersonation(t *testing.T) {
	onNode := &authx.Identity{Name: "system:serviceaccount:a:agent", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}, "x": {"y"}}}
	plain := &authx.Identity{Name: "actor"}
	bob := http.Header{"Impersonate-User": {"bob"}}
	node := http.Header{"Impersonate-User": {"system:node:n1"}}
	account := http.Header{"Impersonate-User": {"system:serviceaccount:a:b"}}
	with := func(h http.Header, name string, values ...string) http.Header {
		h = h.Clone()
		h[name] = values
		return h
	}
	for _, c := range []struct {
		name    string
		caller  *authx.Identity
		headers http.Header
		may     string // questions that are answered with yes
		who     string // name, groups and constraint; "" for a refusal
		refusal string
	}{
		{"user", plain, bob, "impersonate-on:user-info:list pods/|impersonate:user-info users.authentication.k8s.io/bob", "bob|system:authenticated|impersonate:user-info", ""},
		{"no right to the request", plain, bob, "impersonate:user-info users.authentication.k8s.io/bob", "", `pods is forbidden: User "actor" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"`},
		{"no right to the user", plain, bob, "impersonate-on:user-info:list pods/", "", `users.authentication.k8s.io "bob" is forbidden: User "actor" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope`},
		{"right to another verb", plain, bob, "impersonate-on:user-info:get pods/|impersonate:user-info users.authentication.k8s.io/bob", "", `pods is forbidden: User "actor" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"`},
		{"without constraints", plain, bob, "impersonate users/bob", "bob|system:authenticated|", ""},
		{"rights of two modes", plain, account, "impersonate-on:user-info:list pods/|impersonate:user-info serviceaccounts.authentication.k8s.io/b", "", `pods is forbidden: User "actor" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" in the namespace "ns"`},
		{"account", plain, account, "impersonate-on:serviceaccount:list pods/|impersonate:serviceaccount serviceaccounts.authentication.k8s.io/b", "system:serviceaccount:a:b|system:serviceaccounts,system:serviceaccounts:a,system:authenticated|impersonate:serviceaccount", ""},
		{"account with a group", plain, with(account, "Impersonate-Group", "g"), "impersonate-on:serviceaccount:list pods/|impersonate:serviceaccount serviceaccounts.authentication.k8s.io/b", "", `serviceaccounts "b" is forbidden: User "actor" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "a"`},
		{"node", plain, node, "impersonate-on:arbitrary-node:list pods/|impersonate:arbitrary-node nodes.authentication.k8s.io/n1", "system:node:n1|system:nodes,system:authenticated|impersonate:arbitrary-node", ""},
		{"node without constraints", plain, node, "impersonate users/system:node:n1", "system:node:n1|system:authenticated|", ""},
		{"own node", onNode, node, "impersonate-on:associated-node:list pods/|impersonate:associated-node nodes.authentication.k8s.io/*", "system:node:n1|system:nodes,system:authenticated|impersonate:associated-node", ""},
		{"node of another", onNode, http.Header{"Impersonate-User": {"system:node:n2"}}, "impersonate-on:associated-node:list pods/|impersonate:associated-node nodes.authentication.k8s.io/*", "", `pods is forbidden: User "system:serviceaccount:a:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "ns"`},
		{"own node of a user", &authx.Identity{Name: "actor", Extra: onNode.Extra}, node, "impersonate-on:associated-node:list pods/|impersonate:associated-node nodes.authentication.k8s.io/*", "", `pods is forbidden: User "actor" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "ns"`},
		{"administrators", plain, with(bob, "Impersonate-Group", "system:masters"), "impersonate-on:user-info:list pods/|impersonate:user-info users.authentication.k8s.io/bob|impersonate:user-info groups.authentication.k8s.io/system:masters", "", `groups.authentication.k8s.io "system:masters" is forbidden: User "actor" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed`},
		{"many groups by one right", plain, with(bob, "Impersonate-Group", "a", "b", "c", "d"), "impersonate-on:user-info:list pods/|impersonate:user-info users.authentication.k8s.io/bob|impersonate:user-info groups.authentication.k8s.io/*", "bob|a,b,c,d,system:authenticated|impersonate:user-info", ""},
		{"few groups by that right", plain, with(bob, "Impersonate-Group", "a", "b", "c"), "impersonate-on:user-info:list pods/|impersonate:user-info users.authentication.k8s.io/bob|impersonate:user-info groups.authentication.k8s.io/*", "", `groups.authentication.k8s.io "a" is forbidden: User "actor" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope`},
		{"extra that is no path", plain, with(bob, "Impersonate-Extra-Scopes", "x"), "impersonate-on:user-info:list pods/|impersonate:user-info users.authentication.k8s.io/bob|impersonate:user-info userextras.authentication.k8s.io/x", "", `userextras.authentication.k8s.io is forbidden: User "actor" cannot impersonate:user-info resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")`},
		{"uid", plain, with(bob, "Impersonate-Uid", "7"), "impersonate-on:user-info:list pods/|impersonate:user-info users.authentication.k8s.io/bob", "", `uids.authentication.k8s.io "7" is forbidden: User "actor" cannot impersonate:user-info resource "uids" in API group "authentication.k8s.io" at the cluster scope`},
	} {
		t.Run(c.name, func(t *testing.T) {
			may := strings.Split(c.may, "|")
			z := authorizer(func(a *authx.Attributes) (authx.Decision, string, error) {
				if a.User.Name != c.caller.Name {
					t.Errorf("asked as %v", a.User)
				}
				if strings.Contains(a.Verb, "associated-node") && (len(a.User.Extra) != 1 || !slices.Equal(a.User.Extra["authentication.kubernetes.io/associated-node-keys"], []string{"authentication.kubernetes.io/node-name", "x"})) {
					t.Errorf("asked with %v", a.User.Extra)
				}
				resource := a.Resource
				if a.APIGroup != "" {
					resource += "." + a.APIGroup
				}
				if slices.Contains(may, a.Verb+" "+resource+"/"+a.Name) {
					return authx.Allow, "", nil
				}
				return authx.NoOpinion, "", nil
			})
			filter := filters.Impersonate(z, filters.Impersonation{Constrained: true, Unnamed: true}, quiet, fail)
			for range 2 { // the second time the mode is known
				r := httptest.NewRequest("GET", "/api/v1/namespaces/ns/pods", nil)
				r.Header = c.headers.Clone()
				var got string
				w := serve(r, func(w http.ResponseWriter, r *http.Request) {
					s := request.From(r.Context())
					got = s.User.Name + "|" + strings.Join(s.User.Groups, ",") + "|" + s.Constraint
				}, as(c.caller), filter)
				if got != c.who {
					t.Errorf("became %q, want %q: %d %s", got, c.who, w.Code, w.Body)
				}
				if c.refusal != "" && (w.Code != http.StatusForbidden || message(t, w) != c.refusal) {
					t.Errorf("refused with %d %s\nwant %s", w.Code, message(t, w), c.refusal)
				}
			}
		})
	}
}

// TestImpersonationUnnamed: groups, extra or a UID without a user are a bad request, and quoted.
func TestImpersonationUnnamed(t *testing.T) {
	never := authorizer(func(*authx.Attributes) (authx.Decision, string, error) {
		t.Error("an authorizer was asked")
		return authx.Allow, "", nil
	})
	for _, c := range []struct {
		how  filters.Impersonation
		want string
	}{
		{filters.Impersonation{Unnamed: true}, `requested [{Group  dev    }] without impersonating a user`},
		{filters.Impersonation{Unnamed: true, Constrained: true}, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"}, Extra:map[string][]string(nil)} without impersonating a user name`},
	} {
		r := httptest.NewRequest("GET", "/version", nil)
		r.Header = http.Header{"Impersonate-Group": {"dev"}}
		w := serve(r, ok, as(&authx.Identity{Name: "actor"}), filters.Impersonate(never, c.how, quiet, fail))
		if w.Code != http.StatusBadRequest || message(t, w) != c.want {
			t.Errorf("%d %s, want %s", w.Code, w.Body, c.want)
		}
	}
}
