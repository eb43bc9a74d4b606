package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// principal is a kind of client.
type principal struct {
	name    string
	user    string // for SubjectAccessReviews
	groups  []string
	headers []string // credentials
	code    int      // of a refusal
}

// cell is a verb on a resource or subresource.
type cell struct {
	group, version, resource, subresource, verb, namespace string
}

func (c cell) method() string {
	return map[string]string{"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}[c.verb]
}

func (c cell) path() string {
	p := "/apis/" + c.group + "/" + c.version
	if c.group == "" {
		p = "/api/" + c.version
	}
	if c.namespace != "" {
		p += "/namespaces/" + c.namespace
	}
	p += "/" + c.resource
	if !slices.Contains([]string{"list", "watch", "deletecollection"}, c.verb) && (c.verb != "create" || c.subresource != "") {
		p += "/x"
	}
	if c.subresource != "" {
		p += "/" + c.subresource
	}
	p += "?dryRun=All"
	if c.verb == "watch" {
		p += "&watch=1&timeoutSeconds=1"
	}
	return p
}

// TestPrincipals: every verb on every resource and subresource that discovery shows is refused to each kind of client as soon as the
// authorizer that SubjectAccessReviews ask does not allow it. TestEveryRight varies the rights of one user on the stored resources;
// this test varies the credentials.
func TestPrincipals(t *testing.T) {
	t.Parallel()
	a := open(t)
	for _, role := range []string{"view", "edit"} {
		a.admin(t, "POST", rbacPath+"/namespaces/mallory/rolebindings", fmt.Sprintf(
			`{"metadata":{"name":%[1]q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%[1]q}]}`, role))
	}
	as := func(user string, groups ...string) principal {
		p := principal{name: user, user: user, groups: append(groups, "system:authenticated"), code: 403,
			headers: []string{"Authorization", "Bearer " + harness.AdminToken, "Impersonate-User", user}}
		for _, g := range groups {
			p.headers = append(p.headers, "Impersonate-Group", g)
		}
		return p
	}
	cells := a.cells(t)
	for _, p := range []principal{
		{name: "a stranger", user: "system:anonymous", groups: []string{"system:unauthenticated"}, code: 403},
		{name: "a forger", headers: []string{"Authorization", "Bearer " + a.mallory + "x"}, code: 401},
		{name: "an account", user: "system:serviceaccount:other:nobody", groups: []string{"system:serviceaccounts", "system:serviceaccounts:other", "system:authenticated"},
			headers: []string{"Authorization", "Bearer " + a.nobody}, code: 403},
		as("view"), as("edit"), as("system:node:n", "system:nodes"), as("system:kube-scheduler"), as("system:kube-proxy"),
	} {
		t.Run(p.name, func(t *testing.T) { a.every(t, p, cells) })
	}
}

// cells lists the resources and verbs of discovery, in the namespace where users have rights.
func (a *arena) cells(t *testing.T) (list []cell) {
	t.Helper()
	var groups struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	if err := json.Unmarshal([]byte(a.Get(t, "/apis")), &groups); err != nil {
		t.Fatal(err)
	}
	paths := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			paths = append(paths, "/apis/"+v.GroupVersion)
		}
	}
	for _, path := range paths {
		var resources struct {
			GroupVersion string
			Resources    []struct {
				Name       string
				Namespaced bool
			}
		}
		if err := json.Unmarshal([]byte(a.Get(t, path)), &resources); err != nil {
			t.Fatal(err)
		}
		for _, r := range resources.Resources {
			c := cell{version: resources.GroupVersion}
			if group, version, found := strings.Cut(resources.GroupVersion, "/"); found {
				c.group, c.version = group, version
			}
			c.resource, c.subresource, _ = strings.Cut(r.Name, "/")
			if r.Namespaced {
				c.namespace = "mallory"
			}
			verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
			if c.subresource != "" {
				verbs = []string{"get", "create", "update", "patch", "delete"}
			}
			for _, c.verb = range verbs {
				list = append(list, c)
			}
		}
	}
	if len(list) < 700 {
		t.Fatalf("discovery shows %d verbs and resources", len(list))
	}
	return list
}

// every tries each cell as a principal.
func (a *arena) every(t *testing.T, p principal, cells []cell) {
	t.Helper()
	var refused, allowed atomic.Int32
	next := make(chan cell)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for c := range next {
				may := p.code != http.StatusUnauthorized && a.may(t, p, c)
				if may {
					allowed.Add(1)
					continue // other tests cover the consequences
				}
				code, answer := a.send(t, call{method: c.method(), path: c.path(), body: "{}", headers: p.headers})
				if code != p.code {
					t.Errorf("%s %s %s/%s: %d %.300s", p.name, c.verb, c.resource, c.subresource, code, answer)
				}
				refused.Add(1)
			}
		})
	}
	for _, c := range cells {
		next <- c
	}
	close(next)
	running.Wait()
	t.Logf("%d refused, %d allowed", refused.Load(), allowed.Load())
	if refused.Load() < 300 {
		t.Error("nearly everything is allowed")
	}
}

// may asks the server's authorizers, as an administrator.
func (a *arena) may(t *testing.T, p principal, c cell) bool {
	name := "x"
	if slices.Contains([]string{"list", "watch", "deletecollection"}, c.verb) || c.verb == "create" && c.subresource == "" {
		name = ""
	}
	review, err := json.Marshal(map[string]any{"spec": map[string]any{
		"user": p.user, "groups": p.groups, "resourceAttributes": map[string]string{
			"group": c.group, "version": c.version, "resource": c.resource, "subresource": c.subresource, "verb": c.verb, "namespace": c.namespace, "name": name,
		},
	}})
	if err != nil {
		t.Error(err)
	}
	code, answer := a.send(t, call{method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", token: harness.AdminToken, body: string(review)})
	var result struct{ Status struct{ Allowed bool } }
	if err := json.Unmarshal([]byte(answer), &result); err != nil || code != http.StatusCreated {
		t.Errorf("%d %s", code, answer)
	}
	return result.Status.Allowed
}
