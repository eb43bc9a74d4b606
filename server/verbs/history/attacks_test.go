package history_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/servertest"
)

// grant gives a user rights in a namespace, in all of them if that is "*".
func grant(s *servertest.Server, user, namespace string, rules ...string) {
	role, binding, path, where := "Role", "RoleBinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/", namespace
	if namespace == "*" {
		role, binding, path, where = "ClusterRole", "ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/", ""
	}
	s.Must("POST", path+strings.ToLower(role)+"s", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},"rules":[%s]}`, user, where, strings.Join(rules, ",")))
	s.Must("POST", path+strings.ToLower(binding)+"s", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`, user, where, role, user, user))
}

// rule returns one of a role: "get,list group/resource,resource" and, behind a blank, names.
func rule(text string) string {
	f := strings.Fields(text)
	group, resources, _ := strings.Cut(f[1], "/")
	r := map[string]any{"verbs": strings.Split(f[0], ","), "apiGroups": []string{group}, "resources": strings.Split(resources, ",")}
	if len(f) > 2 {
		r["resourceNames"] = strings.Split(f[2], ",")
	}
	b, _ := json.Marshal(r) // it is all texts
	return string(b)
}

const (
	everyRevision = "get,list history.rowlock.dev/revisions,clusterrevisions,revisions/diff,clusterrevisions/diff,moments"
	item          = root + "/namespaces/shop/revisions/"
)

// TestWhoMayNot: without the right to get an object, no request shows its past, and the answer is
// the same whether the object exists, existed or never did.
func TestWhoMayNot(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle, served)
	for _, ns := range []string{"shop", "other"} {
		s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+ns+`"}}`)
		s.Must("POST", "/api/v1/namespaces/"+ns+"/secrets", `{"metadata":{"name":"key"},"stringData":{"k":"hidden"}}`)
	}
	s.Must("POST", deployments, deployment("web:1", 1))
	rights := map[string][]string{
		"lister":   {everyRevision},
		"deployer": {"get,list,watch apps/deployments"},
		"both":     {everyRevision, "get apps/deployments"},
		"keeper":   {everyRevision, "get /secrets"},
		"named":    {everyRevision, "get apps/deployments web"},
		"looker":   {everyRevision, "list,watch,create,update,patch,delete apps/deployments", "list /secrets"},
		"part":     {everyRevision, "get apps/deployments/status,deployments/scale", "get /pods/log"},
		"wide":     {"* history.rowlock.dev/*", "* extensions/deployments", "get /deployments"},
		"single":   {"get history.rowlock.dev/revisions", "get apps/deployments"},
	}
	for user, rules := range rights {
		for i := range rules {
			rules[i] = rule(rules[i])
		}
		grant(s, user, "shop", rules...)
	}
	grant(s, "elsewhere", "other", rule(everyRevision), rule("get apps/deployments"), rule("get /secrets"))
	grant(s, "over", "*", rule(everyRevision))
	web, gone := list("shop", "deployments.apps", "web", ""), list("shop", "deployments.apps", "never", "")
	key := list("shop", "secrets", "key", "&content=true")
	one := item + "deployments.apps:web:at-2006-01-02T15:04:05Z"
	head := s.Store.Applied()
	now := fmt.Sprintf("%sdeployments.apps:web:%d", item, head)
	secret := fmt.Sprintf("%ssecrets:key:%d", item, head)
	const yes, no = http.StatusOK, http.StatusForbidden
	for _, c := range []struct {
		user, path string
		code       int
	}{
		{"both", web, yes}, {"both", now, yes}, {"both", now + "/diff", yes}, {"both", gone, yes}, {"both", one, http.StatusGone},
		{"both", key, no}, {"both", secret, no}, {"both", secret + "/diff", no},
		{"both", list("other", "deployments.apps", "web", ""), no},
		{"lister", web, no}, {"lister", gone, no}, {"lister", now, no}, {"lister", one, no}, {"lister", now + "/diff", no}, {"lister", key, no},
		{"lister", list("shop", "deployments.extensions", "web", ""), no},
		{"deployer", web, no}, {"deployer", now, no},
		{"keeper", key, yes}, {"keeper", secret, yes}, {"keeper", web, no},
		{"named", web, yes}, {"named", now, yes}, {"named", gone, no},
		{"looker", web, no}, {"looker", now, no}, {"looker", key, no},
		{"part", web, no}, {"part", now, no}, {"part", list("shop", "pods", "web", ""), no},
		{"wide", web, no}, {"wide", now, no}, {"wide", now + "/diff", no},
		{"single", now, yes}, {"single", web, no}, {"single", now + "/diff", no},
		{"elsewhere", web, no}, {"elsewhere", key, no}, {"elsewhere", list("other", "secrets", "key", ""), yes},
		{"over", web, no}, {"over", key, no}, {"over", list("", "namespaces", "shop", ""), no}, {"over", list("", "clusterroles.rbac.authorization.k8s.io", "admin", ""), no},
		{"over", root + "/moments/now", yes}, {"both", root + "/moments/now", no}, {"stranger", web, no},
	} {
		w := s.Do("GET", c.path, "", "Impersonate-User", c.user)
		if w.Code != c.code {
			t.Errorf("%s GET %s: %d %s, want %d", c.user, c.path, w.Code, w.Body, c.code)
		}
		if hidden := "aGlkZGVu"; strings.Contains(w.Body.String(), hidden) != (c.user == "keeper" && c.code == yes) {
			t.Errorf("%s GET %s shows the Secret, or does not: %s", c.user, c.path, w.Body)
		}
	}
	for _, user := range []string{"lister", "over"} {
		there := s.Do("GET", web, "", "Impersonate-User", user).Body.String()
		never := s.Do("GET", gone, "", "Impersonate-User", user).Body.String()
		if want := `deployments.apps \"web\" is forbidden`; !strings.Contains(there, want) || strings.ReplaceAll(never, "never", "web") != there {
			t.Errorf("%s gets %s for existing objects, and %s for missing ones", user, there, never)
		}
	}
}

// TestUsualRoles: the roles that every cluster has show no past.
func TestUsualRoles(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle, served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", deployments, deployment("web:1", 1))
	for role, code := range map[string]int{"view": 403, "edit": 403, "admin": 403, "cluster-admin": 200} {
		s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings", fmt.Sprintf(`{"metadata":{"name":%q},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`, role, role, role))
		w := s.Do("GET", list("shop", "deployments.apps", "web", ""), "", "Impersonate-User", role)
		if w.Code != code {
			t.Errorf("%s: %d %s, want %d", role, w.Code, w.Body, code)
		}
	}
}

// TestRightTakenAway: a user that has lost the right to an object sees nothing of its past, including the
// time of the right; nor does a continue token reveal anything.
func TestRightTakenAway(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle, served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", deployments, deployment("web:1", 1))
	for i := range 3 {
		s.Must("PUT", deployments+"/web", deployment("web:1", i+2))
	}
	grant(s, "u", "shop", rule(everyRevision), rule("get apps/deployments"))
	path := list("shop", "deployments.apps", "web", "&limit=1")
	page := read[history.RevisionList](t, s, path, "Impersonate-User", "u")
	if page.Continue == "" {
		t.Fatalf("%+v is no page", page)
	}
	s.Must("PUT", "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/u", `{"metadata":{"name":"u"},"rules":[`+rule(everyRevision)+`]}`)
	for _, path := range []string{path, path + "&continue=" + page.Continue, item + page.Items[0].Name, item + page.Items[0].Name + "/diff"} {
		if w := s.Do("GET", path, "", "Impersonate-User", "u"); w.Code != http.StatusForbidden {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{list("shop", "deployments.apps", "db", "&limit=1"), list("shop", "secrets", "web", "&limit=1"), list("default", "deployments.apps", "web", "&limit=1")} {
		refused(t, s, path+"&continue="+page.Continue, http.StatusBadRequest, "continue")
	}
	refused(t, s, path+"&continue=%21", http.StatusBadRequest, "continue")
}

// TestNamespaceGone: users that may still get the objects of a deleted namespace by name see their past;
// users whose role was deleted with the namespace do not.
func TestNamespaceGone(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", deployments, deployment("web:1", 1))
	grant(s, "u", "shop", rule(everyRevision), rule("get apps/deployments"))
	grant(s, "all", "*", rule(everyRevision), rule("get apps/deployments"))
	path := list("shop", "deployments.apps", "web", "")
	if w := s.Do("GET", path, "", "Impersonate-User", "u"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	s.Must("DELETE", "/api/v1/namespaces/shop", "")
	servertest.Eventually(t, func() bool { return s.Do("GET", "/api/v1/namespaces/shop", "").Code == http.StatusNotFound })
	if w := s.Do("GET", path, "", "Impersonate-User", "u"); w.Code != http.StatusForbidden {
		t.Errorf("with a role that is gone: %d %s", w.Code, w.Body)
	}
	got := read[history.RevisionList](t, s, path, "Impersonate-User", "all")
	if len(got.Items) == 0 || got.Items[0].Change != history.Deleted {
		t.Errorf("got %+v", got.Items)
	}
}

// TestOddRequests: nonsensical requests are refused with errors that name the problem.
func TestOddRequests(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", deployments, deployment("web:1", 1))
	head := s.Store.Applied()
	for _, c := range []struct {
		path string
		code int
		word string
	}{
		{item + "web", 400, "RESOURCE[.GROUP]:NAME:REVISION"},
		{item + "deployments.apps:web", 400, "RESOURCE"},
		{item + "deployments.apps:web:", 400, "is not a revision"},
		{item + "deployments.apps:web:-1", 400, "is not a revision"},
		{item + "deployments.apps:web:0", 400, "is not a revision"},
		{item + "deployments.apps:web:+5", 400, "is not a revision"},
		{item + "deployments.apps:web:99999999999999999999", 400, "is not a revision"},
		{item + "deployments.apps::5", 400, "no name"},
		{item + "deployments.apps:..:5", 400, "no name"},
		{item + "deployments.apps:.:5", 400, "no name"},
		{item + "deployments.apps:a%2525b:5", 400, "no name"},
		{item + "deployments.apps:web:at-yesterday", 400, "is not a time"},
		{item + "deployments.apps:web:at-2999-01-02T15:04:05Z", 400, "to come"},
		{item + fmt.Sprintf("deployments.apps:web:%d", head+1000), 504, "Too large resource version"},
		{item + "*:web:5", 400, "is not the name of a resource"},
		{item + "deployments.*:web:5", 400, "is not the name of a resource"},
		{item + "~claims:web:5", 400, "is not the name of a resource"},
		{item + "Deployments.apps:web:5", 400, "is not the name of a resource"},
		{item + "deployments.apps.:web:5", 400, "is not the name of a resource"},
		{item + "pods/log:web:5", 404, ""},
		{item + "pods%2Flog:web:5", 404, ""},
		{item + "unknown:web:5", 400, "neither stores nor serves"},
		{item + "unknown.apps:web:5", 400, "neither stores nor serves"},
		{item + "revisions.history.rowlock.dev:web:5", 400, "neither stores nor serves"},
		{item + "tokenreviews.authentication.k8s.io:web:5", 400, "neither stores nor serves"},
		{item + "nodes:web:5", 400, "clusterrevisions"},
		{root + "/clusterrevisions/deployments.apps:web:5", 400, "in namespaces"},
		{root + "/clusterrevisions/secrets:shop%2Fkey:5", 404, ""},
		{root + "/revisions/deployments.apps:web:5", 404, ""},
		{root + "/namespaces/shop/clusterrevisions/nodes:x:5", 404, ""},
		{item + "deployments.apps:web:5/status", 404, ""},
		{fmt.Sprintf("%sdeployments.apps:web:%d/diff?from=x", item, head), 400, "from"},
		{root + "/revisions?fieldSelector=object.resource%3Dpods,object.name%3Dx", 400, "namespace"},
		{root + "/namespaces/shop/revisions", 400, "object.resource"},
		{list("shop", "deployments.apps", "", ""), 400, "object.name"},
		{list("shop", "", "web", ""), 400, "object.resource"},
		{list("shop", "pods/log", "web", ""), 400, "is not the name of a resource"},
		{list("shop", "*", "web", ""), 400, "is not the name of a resource"},
		{list("shop", "deployments.apps", "..", ""), 400, "no name"},
		{list("shop", "deployments.apps", "a/b", ""), 400, "no name"},
		{list("shop", "deployments.apps", "web,metadata.name=web", ""), 400, "metadata.name"},
		{list("shop", "deployments.apps", "web,object.name!=db", ""), 400, "object.name"},
		{list("shop", "deployments.apps", "web", "&resourceVersion=5"), 400, "resourceVersion"},
		{list("shop", "deployments.apps", "web", "&labelSelector=a"), 400, "labelSelector"},
		{list("shop", "deployments.apps", "web", "&since=2h"), 400, "since"},
		{list("shop", "deployments.apps", "web", "&until=x"), 400, "until"},
		{list("shop", "deployments.apps", "web", "&watch=1"), 405, "watch"},
		{item + "deployments.apps:web:5?watch=1", 405, ""},
		{root + "/watch/namespaces/shop/revisions", 404, ""},
		{root + "/moments/yesterday", 400, "moment"},
		{root + "/moments/2999-01-02T15:04:05Z", 400, "to come"},
		{root + "/moments/2006-01-02T15:04:05Z", 410, "oldest"},
		{root + "/moments", 405, ""},
		{root + "/strange", 404, ""},
	} {
		refused(t, s, c.path, c.code, c.word)
	}
	for method, paths := range map[string][]string{
		"POST": {root + "/namespaces/shop/revisions", root + "/clusterrevisions", root + "/moments"}, "DELETE": {item + "deployments.apps:web:5", root + "/namespaces/shop/revisions", root + "/moments/now"},
		"PUT": {item + "deployments.apps:web:5", item + "deployments.apps:web:5/diff"}, "PATCH": {item + "deployments.apps:web:5"},
	} {
		for _, path := range paths {
			if w := s.Do(method, path, `{}`); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	w := s.Do("GET", item+fmt.Sprintf("deployments.apps:web:%d", head), "", "Accept", "application/vnd.kubernetes.protobuf")
	if w.Code != http.StatusNotAcceptable {
		t.Errorf("as Protobuf: %d", w.Code)
	}
}

// TestColons: names may hold what separates the parts of a revision's name.
func TestColons(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), served)
	for _, name := range []string{"system:my:role", "a:at-home:5", "x:at-2026-01-31T14:05:00Z"} {
		s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":[]}`, name))
		got := read[history.RevisionList](t, s, list("", "clusterroles.rbac.authorization.k8s.io", name, ""))
		if len(got.Items) != 1 {
			t.Fatalf("%s: %+v", name, got)
		}
		one := read[history.Revision](t, s, root+"/clusterrevisions/"+url.PathEscape(got.Items[0].Name))
		var of metav1.PartialObjectMetadata
		if err := json.Unmarshal(one.Content.Raw, &of); err != nil || of.Name != name || one.Object.Name != name || one.Kind != "ClusterRevision" {
			t.Errorf("%s: %+v %v", name, one, err)
		}
	}
}
