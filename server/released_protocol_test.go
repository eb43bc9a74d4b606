package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestProtocolOfReleases: requests that a stock server answers otherwise from one release on.
func TestProtocolOfReleases(t *testing.T) {
	const (
		maps   = "/api/v1/namespaces/default/configmaps"
		bad    = `resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax`
		closes = "&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
		tables = "application/json;as=Table;g=meta.k8s.io;v=v1"
	)
	type answer struct {
		code   int
		holds  string
		absent string
	}
	type row struct {
		name, method, path, body, accept string
		since                            release.Version
		before, after                    answer
	}
	rows := []row{
		{"list at no version", "GET", maps + "?resourceVersion=abc", "", "", release.V133, answer{500, `"` + bad, "reason"}, answer{400, `"invalid resource version: ` + bad, "\x00"}},
		{"list not older than none", "GET", maps + "?resourceVersion=abc&resourceVersionMatch=NotOlderThan", "", "", release.V133, answer{500, `"` + bad, "reason"}, answer{400, `"invalid resource version: ` + bad, "\x00"}},
		{"unknown component", "GET", "/api/v1/componentstatuses/nothing", "", "", release.V133, answer{500, "Component not found: nothing", "details"},
			answer{404, `componentstatus \"nothing\" not found","reason":"NotFound","details":{"name":"nothing","kind":"componentstatus"}`, "\x00"}},
		{"options that are none", "DELETE", maps + "/none", `{"gracePeriodSeconds":"a"}`, "", release.V133, answer{500, "cannot unmarshal", "reason"}, answer{400, `cannot unmarshal`, "\x00"}},
		{"options of another kind", "DELETE", maps + "/none", `{"kind":"Foo","apiVersion":"v1"}`, "", release.V133, answer{500, `register.go:27`, "reason"}, answer{400, `register.go:27`, "\x00"}},
		{"options for a collection", "DELETE", maps, `{"gracePeriodSeconds":"a"}`, "", release.V133, answer{500, "cannot unmarshal", "reason"}, answer{400, `cannot unmarshal`, "\x00"}},
		{"scale of an absent deployment", "GET", "/apis/apps/v1/namespaces/default/deployments/none/scale", "", "", release.V133, answer{404, `deployments/scale.apps \"none\"`, "\x00"}, answer{404, `"deployments.apps \"none\" not found"`, "scale"}},
		{"scale of an absent controller", "GET", "/api/v1/namespaces/default/replicationcontrollers/none/scale", "", "", release.V133, answer{404, `replicationcontrollers/scale.autoscaling \"none\"`, "\x00"}, answer{404, `"replicationcontrollers \"none\" not found"`, "scale"}},
		{"update of an absent object by UID", "PUT", maps + "/none", `{"metadata":{"name":"none","uid":"x"}}`, "", release.V133, answer{409, "Precondition failed", "\x00"}, answer{404, `configmaps \"none\" not found`, "Precondition"}},
		{"update that may create, by UID", "PUT", "/api/v1/namespaces/default/limitranges/none", `{"metadata":{"name":"none","uid":"x"}}`, "", release.V136 + 1, answer{409, "Precondition failed", "\x00"}, answer{}},
		{"rest of a list at any version", "GET", maps + "?limit=1&resourceVersion=0&continue=$continue", "", "", release.V134, answer{200, `"continue":"`, "\x00"}, answer{200, `"name":"c"`, `"continue":"`}},
		{"initial events", "GET", maps + "?" + closes, "", "", release.V134, answer{}, answer{200, `"k8s.io/initial-events-end":"true"}`, "blueprint"}},
		{"initial events as tables", "GET", maps + "?" + closes, "", tables, release.V134, answer{}, answer{200, `{"type":"BOOKMARK","object":{"kind":"Table"`, "blueprint"}},
		{"token of an account", "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", `{"metadata":{}}`, "", release.V133, answer{201, `"name":"robot"`, `"uid"`}, answer{201, `"uid":"$uid"`, "\x00"}},
		{"token of another account", "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", `{"metadata":{"uid":"x"}}`, "", release.V134, answer{201, `"uid":"x"`, "\x00"},
			answer{409, `the UID in the token request (x) does not match the UID of the service account ($uid)`, "\x00"}},
		{"token of another account with a long UID", "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", `{"metadata":{"uid":"` + strings.Repeat("x", 100_000) + `"}}`, "", release.V134, answer{201, `"name":"robot"`, "\x00"},
			answer{409, `x...) does not match the UID of the service account ($uid)`, strings.Repeat("x", 300)}},
		{"exec by GET without the right to create", "GET", "/api/v1/namespaces/default/pods/none/exec?command=ls", "", "watcher", release.V135, answer{404, `pods \"none\" not found`, "\x00"}, answer{403, `"pods \"none\" is forbidden: `, "\x00"}},
		{"aggregated discovery as v2beta1", "GET", "/apis", "", "application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList", release.V133, answer{200, "APIGroupDiscoveryList", "\x00"},
			answer{406, "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf", "\x00"}},
		{"aggregated discovery as v2beta1 or plainly", "GET", "/apis", "", "application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json", release.V133, answer{200, "APIGroupDiscoveryList", "\x00"},
			answer{200, `"kind":"APIGroupList"`, "\x00"}},
		{"manager of what the server writes", "GET", "/api/v1/namespaces/default", "", "", release.V133, answer{200, `"manager":"kube-apiserver"`, "\x00"}, answer{200, `"manager":"kube-apiserver-1.36"`, `"kube-apiserver"`}},
		{"metrics of the cache", "GET", "/metrics", "", "", release.V133, answer{200, `apiserver_watch_cache_resource_version{resource="configmaps"}`, "apiserver_resource_objects"},
			answer{200, `apiserver_watch_cache_resource_version{group="apps",resource="deployments"}`, "apiserver_watch_cache_resource_version{resource"}},
		{"metrics of objects", "GET", "/metrics", "", "", release.V133, answer{200, `apiserver_storage_objects{resource="configmaps"}`, "\x00"}, answer{200, `apiserver_resource_objects{group="",resource="configmaps"}`, "\x00"}},
		{"impersonation by nobody's name", "GET", maps, "", "dev", release.V133, answer{500, "requested [{Group  dev    }] without impersonating a user", "reason"}, answer{400, "without impersonating a user", "\x00"}},
	}
	for _, v := range release.All() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+v.String()))
			for _, name := range []string{"a", "b", "c"} {
				s.Must("POST", maps, `{"metadata":{"name":"`+name+`"}}`)
			}
			var account struct{ Metadata struct{ UID string } }
			if err := json.Unmarshal(s.Must("POST", "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"robot"}}`), &account); err != nil {
				t.Fatal(err)
			}
			var page struct{ Metadata struct{ Continue string } }
			if err := json.Unmarshal(s.Must("GET", maps+"?limit=1", ""), &page); err != nil {
				t.Fatal(err)
			}
			s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", `{"metadata":{"name":"watcher"},"rules":[{"apiGroups":[""],"resources":["pods/exec"],"verbs":["get"]}]}`)
			s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{"metadata":{"name":"watcher"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"watcher"},"subjects":[{"kind":"User","name":"watcher"}]}`)
			fill := strings.NewReplacer("$continue", page.Metadata.Continue, "$uid", account.Metadata.UID)
			for _, c := range rows {
				want := c.after
				if v < c.since {
					want = c.before
				}
				if want.code == 0 {
					continue
				}
				var headers []string
				switch c.accept {
				case "":
				case "watcher":
					headers = []string{"Impersonate-User", "watcher"}
				case "dev":
					headers = []string{"Impersonate-Group", "dev"}
				default:
					headers = []string{"Accept", c.accept}
				}
				w := s.Do(c.method, fill.Replace(c.path), c.body, headers...)
				body := w.Body.String()
				if w.Code != want.code || !strings.Contains(body, fill.Replace(want.holds)) || strings.Contains(body, want.absent) {
					t.Errorf("%s: %d %s\nwant %d with %s without %q", c.name, w.Code, body, want.code, fill.Replace(want.holds), want.absent)
				}
			}
			initial := s.Do("GET", maps+"?"+closes, "")
			if refused := v == release.V133; refused != (initial.Code == http.StatusUnprocessableEntity) {
				t.Errorf("initial events: %d", initial.Code)
			}
		})
	}
}

// TestImpersonationOfReleases: the releases that have constrained impersonation refuse in its words, and allow by its
// verbs; without the gate they do neither.
func TestImpersonationOfReleases(t *testing.T) {
	const maps = "/api/v1/namespaces/default/configmaps"
	for _, c := range []struct {
		flags       []string
		constrained bool
	}{
		{[]string{"--emulated-version=1.35"}, false},
		{[]string{"--emulated-version=1.36"}, true},
		{[]string{"--emulated-version=1.36", "--feature-gates=ConstrainedImpersonation=false"}, false},
		{[]string{"--emulated-version=1.35", "--feature-gates=ConstrainedImpersonation=true"}, true},
	} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, c.flags...))
			s.Must("POST", "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"robot"}}`)
			var issued struct{ Status struct{ Token string } }
			if err := json.Unmarshal(s.Must("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", `{}`), &issued); err != nil {
				t.Fatal(err)
			}
			for name, bound := range map[string][2]string{
				"who":  {`{"kind":"ServiceAccount","name":"robot","namespace":"default"}`, `{"apiGroups":["authentication.k8s.io"],"resources":["users"],"resourceNames":["bob"],"verbs":["impersonate:user-info"]}`},
				"what": {`{"kind":"ServiceAccount","name":"robot","namespace":"default"}`, `{"apiGroups":[""],"resources":["configmaps"],"verbs":["impersonate-on:user-info:list"]}`},
				"bob":  {`{"kind":"User","name":"bob"}`, `{"apiGroups":[""],"resources":["configmaps"],"verbs":["list","get"]}`},
			} {
				s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"`+name+`"},"rules":[`+bound[1]+`]}`)
				s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
					`{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"`+name+`"},"subjects":[`+bound[0]+`]}`)
			}
			as := func(path string) (int, string) {
				w := s.Do("GET", path, "", "Authorization", "Bearer "+issued.Status.Token, "Impersonate-User", "bob")
				return w.Code, w.Body.String()
			}
			list, text := as(maps)
			got, _ := as(maps + "/none")
			if c.constrained {
				if list != http.StatusOK || got != http.StatusForbidden { // not 404: the verb is another one
					t.Errorf("%d and %d: %s", list, got, text)
				}
			} else if list != http.StatusForbidden || !strings.Contains(text, `users \"bob\" is forbidden`) || got != http.StatusForbidden {
				t.Errorf("%d and %d: %s", list, got, text)
			}
		})
	}
}

// TestCustomResourcesOfReleases: differences between releases in answers about custom resources.
func TestCustomResourcesOfReleases(t *testing.T) {
	const (
		definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		lamps      = "/apis/example.com/v1/namespaces/default/lamps"
	)
	for _, c := range []struct {
		release                     release.Version
		owned                       bool // labels that a write of the status names
		absent, late, applied, list int
	}{
		{release.V132, true, http.StatusConflict, http.StatusMethodNotAllowed, http.StatusCreated, http.StatusInternalServerError},
		{release.V133, false, http.StatusNotFound, http.StatusForbidden, http.StatusForbidden, http.StatusBadRequest},
		{release.V136, false, http.StatusNotFound, http.StatusForbidden, http.StatusForbidden, http.StatusBadRequest},
	} {
		t.Run(c.release.String(), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+c.release.String()))
			s.Must("POST", definition, `{"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"lamps","kind":"Lamp"},
				"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"subresources":{"status":{}}}]}}`)
			servertest.Eventually(t, func() bool { return s.Do("GET", lamps, "").Code == http.StatusOK })
			s.Must("POST", lamps, `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","finalizers":["example.com/stays"]}}`)
			patched := s.Must("PATCH", lamps+"/a/status?fieldManager=m", `{"metadata":{"labels":{"l":"m"}},"status":{"lit":true}}`, "Content-Type", "application/merge-patch+json")
			if owned := strings.Contains(string(patched), `"f:l"`); owned != c.owned {
				t.Errorf("labels are owned: %t: %s", owned, patched)
			}
			if w := s.Do("PUT", lamps+"/none", `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"none","uid":"x","resourceVersion":"1"}}`); w.Code != c.absent {
				t.Errorf("update of an absent object by UID: %d %s", w.Code, w.Body)
			}
			if w := s.Do("GET", lamps+"?resourceVersion=abc", ""); w.Code != c.list {
				t.Errorf("list at no version: %d %s", w.Code, w.Body)
			}
			s.Must("DELETE", definition+"/lamps.example.com", "")
			var w *httptest.ResponseRecorder
			servertest.Eventually(t, func() bool {
				w = s.Do("POST", lamps+"?dryRun=All", `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"late"}}`)
				return w.Code != http.StatusCreated
			})
			if w.Code != c.late || c.late == http.StatusForbidden && !strings.Contains(w.Body.String(), `lamps.example.com \"late\" is forbidden: create not allowed while custom resource definition is terminating`) {
				t.Errorf("create while the definition ends: %d %s", w.Code, w.Body)
			}
			applied := s.Do("PATCH", lamps+"/late?dryRun=All&fieldManager=m", `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"late"}}`, "Content-Type", "application/apply-patch+yaml")
			if applied.Code != c.applied || applied.Code == http.StatusForbidden && !strings.Contains(applied.Body.String(), "create not allowed while custom resource definition is terminating") {
				t.Errorf("apply that creates while the definition ends: %d %s", applied.Code, applied.Body)
			}
			s.Must("PATCH", lamps+"/a?fieldManager=m&force=true", `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","labels":{"l":"n"}}}`, "Content-Type", "application/apply-patch+yaml")
			s.Must("PATCH", lamps+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		})
	}
}
