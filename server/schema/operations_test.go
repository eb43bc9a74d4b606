package schema_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

// method is an operation of a document, path the parameters of its path.
type method struct {
	OperationID string `json:"operationId"`
	Description string
	Tags        []string
	Action      string            `json:"x-kubernetes-action"`
	Kind        map[string]string `json:"x-kubernetes-group-version-kind"`
	Consumes    []string
	Produces    []string
	Parameters  []described
	Responses   map[string]json.RawMessage
}

type described struct {
	Ref               string `json:"$ref"`
	Name, In          string
	Type, Description string
}

// swagger returns a document of version 2, with references to parameters followed.
func swagger(t *testing.T, d *schema.Documents) map[string]map[string]method {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Parameters map[string]described
	}
	if err := json.Unmarshal(get(t, d.ServeV2, "/openapi/v2").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	resolve := func(list []described) (out []described) {
		for _, p := range list {
			if name, is := strings.CutPrefix(p.Ref, "#/parameters/"); is {
				found, ok := doc.Parameters[name]
				if !ok {
					t.Errorf("no parameter %s", name)
				}
				p = found
			}
			out = append(out, p)
		}
		return out
	}
	paths := map[string]map[string]method{}
	for path, item := range doc.Paths {
		var common []described
		if raw, ok := item["parameters"]; ok {
			if err := json.Unmarshal(raw, &common); err != nil {
				t.Fatal(err)
			}
			delete(item, "parameters")
		}
		paths[path] = map[string]method{}
		for name, raw := range item {
			var m method
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			m.Parameters = resolve(append(m.Parameters, common...))
			paths[path][name] = m
		}
	}
	return paths
}

func (m method) names() string {
	var names []string
	for _, p := range m.Parameters {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestOperations(t *testing.T) {
	paths := swagger(t, documents())
	const (
		pod    = "/api/v1/namespaces/{namespace}/pods/{name}"
		plain  = "application/json application/yaml application/vnd.kubernetes.protobuf"
		listed = "allowWatchBookmarks continue fieldSelector labelSelector limit "
		later  = "resourceVersion resourceVersionMatch sendInitialEvents timeoutSeconds watch"
	)
	for _, c := range []struct{ path, method, id, action, kind, text, parameters, produces string }{
		{"/api/v1/namespaces/{namespace}/pods", "get", "listCoreV1NamespacedPod", "list", "/v1 Pod", "list or watch objects of kind Pod", listed + "namespace pretty " + later,
			plain + " application/json;stream=watch application/vnd.kubernetes.protobuf;stream=watch"},
		{"/api/v1/pods", "get", "listCoreV1PodForAllNamespaces", "list", "/v1 Pod", "list or watch objects of kind Pod", listed + "pretty " + later,
			plain + " application/json;stream=watch application/vnd.kubernetes.protobuf;stream=watch"},
		{"/api/v1/namespaces/{namespace}/pods", "post", "createCoreV1NamespacedPod", "post", "/v1 Pod", "create a Pod", "body dryRun fieldManager fieldValidation namespace pretty", plain},
		{"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses", "post", "createNetworkingV1NamespacedIngress", "post", "networking.k8s.io/v1 Ingress", "create an Ingress", "body dryRun fieldManager fieldValidation namespace pretty", plain},
		{"/api/v1/namespaces/{namespace}/pods", "delete", "deleteCoreV1CollectionNamespacedPod", "deletecollection", "/v1 Pod", "delete collection of Pod",
			"body continue dryRun fieldSelector gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential labelSelector limit namespace orphanDependents pretty propagationPolicy resourceVersion resourceVersionMatch sendInitialEvents timeoutSeconds", plain},
		{pod, "get", "readCoreV1NamespacedPod", "get", "/v1 Pod", "read the specified Pod", "name namespace pretty", plain},
		{pod, "put", "replaceCoreV1NamespacedPod", "put", "/v1 Pod", "replace the specified Pod", "body dryRun fieldManager fieldValidation name namespace pretty", plain},
		{pod, "patch", "patchCoreV1NamespacedPod", "patch", "/v1 Pod", "partially update the specified Pod", "body dryRun fieldManager fieldValidation force name namespace pretty", plain},
		{pod, "delete", "deleteCoreV1NamespacedPod", "delete", "/v1 Pod", "delete a Pod",
			"body dryRun gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential name namespace orphanDependents pretty propagationPolicy", plain},
		{pod + "/status", "patch", "patchCoreV1NamespacedPodStatus", "patch", "/v1 Pod", "partially update status of the specified Pod", "body dryRun fieldManager fieldValidation force name namespace pretty", plain},
		{pod + "/eviction", "post", "createCoreV1NamespacedPodEviction", "post", "policy/v1 Eviction", "create eviction of a Pod", "body dryRun fieldManager fieldValidation name namespace pretty", plain},
		{pod + "/log", "get", "readCoreV1NamespacedPodLog", "get", "/v1 Pod", "read log of the specified Pod",
			"container follow insecureSkipTLSVerifyBackend limitBytes name namespace pretty previous sinceSeconds stream tailLines timestamps", "text/plain " + plain},
		{pod + "/exec", "post", "connectCoreV1PostNamespacedPodExec", "connect", "/v1 PodExecOptions", "connect POST requests to exec of Pod", "command container name namespace stderr stdin stdout tty", "*/*"},
		{pod + "/proxy/{path}", "options", "connectCoreV1OptionsNamespacedPodProxyWithPath", "connect", "/v1 PodProxyOptions", "connect OPTIONS requests to proxy of Pod", "name namespace path path", "*/*"},
		{"/api/v1/watch/nodes", "get", "watchCoreV1NodeList", "watchlist", "/v1 Node", "watch individual changes to a list of Node. deprecated: use the 'watch' parameter with a list operation instead.", listed + "pretty " + later,
			plain + " application/json;stream=watch application/vnd.kubernetes.protobuf;stream=watch"},
		{"/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces", "watchlist", "/v1 Pod", "watch individual changes to a list of Pod. deprecated: use the 'watch' parameter with a list operation instead.", listed + "pretty " + later,
			plain + " application/json;stream=watch application/vnd.kubernetes.protobuf;stream=watch"},
		{"/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "watchCoreV1NamespacedPod", "watch", "/v1 Pod",
			"watch changes to an object of kind Pod. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter.", listed + "name namespace pretty " + later,
			plain + " application/json;stream=watch application/vnd.kubernetes.protobuf;stream=watch"},
		{"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "get", "readAppsV1NamespacedDeploymentScale", "get", "autoscaling/v1 Scale", "read scale of the specified Deployment", "name namespace pretty", plain},
	} {
		m, ok := paths[c.path][c.method]
		if !ok {
			t.Errorf("no %s %s", c.method, c.path)
			continue
		}
		got := []string{m.OperationID, m.Action, m.Kind["group"] + "/" + m.Kind["version"] + " " + m.Kind["kind"], m.Description, m.names(), strings.Join(m.Produces, " ")}
		if want := []string{c.id, c.action, c.kind, c.text, c.parameters, c.produces}; !slices.Equal(got, want) {
			t.Errorf("%s %s:\n got %q\nwant %q", c.method, c.path, got, want)
		}
		if _, ok := m.Responses["401"]; !ok {
			t.Errorf("%s %s: nobody is refused", c.method, c.path)
		}
	}
}

// TestOperationIDs: each operation has an identifier of its own, and each parameter a description; those of
// lists are in the words of the type.
func TestOperationIDs(t *testing.T) {
	documented := metav1.ListOptions{}.SwaggerDoc()
	ids := map[string]string{}
	custom := &kinds.Resource{
		Group: "example.com", Version: "v1", Plural: "pods", Kind: "Pod", ListKind: "PodList", Namespaced: true, Schema: kinds.AsStored{},
		Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}
	paths := swagger(t, schema.NewDocuments(kinds.NewCatalogue(append(builtin.Resources(), custom)), "v1.32.0"))
	for path, item := range paths {
		for name, m := range item {
			if ids[m.OperationID] != "" {
				t.Errorf("%s %s is called as %s is: %s", name, path, ids[m.OperationID], m.OperationID)
			}
			ids[m.OperationID] = path
			if m.Description == "" || len(m.Tags) != 1 || len(m.Consumes) == 0 && m.Tags[0] != "WellKnown" && m.Tags[0] != "openid" || len(m.Produces) == 0 {
				t.Errorf("%s %s is incomplete: %+v", name, path, m)
			}
			for _, p := range m.Parameters {
				if p.Description == "" && p.In != "body" {
					t.Errorf("%s %s does not say what %s is", name, path, p.Name)
				}
				if p.Name == "limit" && p.Description != documented["limit"] {
					t.Errorf("%s %s: limit is %q", name, path, p.Description)
				}
			}
		}
	}
	list := paths["/apis/example.com/v1/namespaces/{namespace}/pods"]["get"]
	if list.Description != "list objects of kind Pod" || !slices.Equal(list.Produces, []string{"application/json", "application/yaml"}) {
		t.Errorf("a custom resource: %+v", list)
	}
	if _, ok := paths["/apis/example.com/v1/watch/pods"]; ok {
		t.Error("a custom resource has a path to watch")
	}
}

// TestSelectableFields: the definitions of a custom kind and of its list name the selectable
// fields of its version, in both documents; others do not.
func TestSelectableFields(t *testing.T) {
	custom := &kinds.Resource{
		Group: "example.com", Version: "v1", Plural: "lamps", Kind: "Lamp", ListKind: "LampList", Schema: kinds.AsStored{}, Verbs: []string{"get", "list"},
		Storage: &kinds.Storage{Key: "example.com/lamps", Fields: []kinds.SelectableField{{Label: "spec.color"}, {Label: "spec.old"}, {Label: "spec.size"}}}, FieldLabels: map[string]string{"spec.color": "spec.color", "spec.size": "spec.size"},
	}
	d := schema.NewDocuments(kinds.NewCatalogue(append(builtin.Resources(), custom)), "v1.32.0")
	const want = `"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"},{"fieldPath":"spec.size"}]`
	for path, serve := range map[string]http.HandlerFunc{"/openapi/v2": d.ServeV2, "/openapi/v3/apis/example.com/v1": d.ServeV3} {
		body := get(t, serve, path, "Accept", "application/json").Body.String()
		if n := strings.Count(body, want); n != 2 {
			t.Errorf("%s: described %d times: %.600s", path, n, body)
		}
		if n := strings.Count(body, "selectable-fields"); n != 2 {
			t.Errorf("%s: %d definitions", path, n)
		}
	}
	for v, mentioned := range map[release.Version]int{release.V132: 2, release.V133: 0, release.V136: 0} {
		plain := *custom
		plain.Release, plain.FieldLabels = v, nil
		d := schema.NewDocuments(kinds.NewCatalogue(append(builtin.Resources(), &plain)), "v1.32.0")
		body := get(t, d.ServeV3, "/openapi/v3/apis/example.com/v1", "Accept", "application/json").Body.String()
		if n := strings.Count(body, `"x-kubernetes-selectable-fields":[]`); n != mentioned || strings.Count(body, "selectable-fields") != n {
			t.Errorf("%v: %d definitions mention that there are no selectable fields, want %d", v, n, mentioned)
		}
	}
}

// TestNamesakes: a custom kind whose group reads backwards as the package of a built-in one replaces no
// definition of it.
func TestNamesakes(t *testing.T) {
	custom := &kinds.Resource{
		Group: "core.api.k8s.io", Version: "v1", Plural: "pods", Kind: "Pod", ListKind: "PodList", Namespaced: true, Schema: kinds.AsStored{}, Verbs: []string{"get", "list"},
	}
	d := schema.NewDocuments(kinds.NewCatalogue(append(builtin.Resources(), custom)), "v1.32.0")
	d.CustomSchema = func(*kinds.Resource) json.RawMessage {
		return json.RawMessage(`{"type":"object","description":"another"}`)
	}
	var doc struct {
		Definitions map[string]struct{ Description string }
	}
	if err := json.Unmarshal(get(t, d.ServeV2, "/openapi/v2").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	paths := swagger(t, d)
	for path, want := range map[string]bool{"/api/v1/namespaces/{namespace}/pods/{name}": false, "/apis/core.api.k8s.io/v1/namespaces/{namespace}/pods/{name}": true} {
		var answer struct{ Schema described }
		if err := json.Unmarshal(paths[path]["get"].Responses["200"], &answer); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(answer.Schema.Ref, "#/definitions/")
		if got := doc.Definitions[name].Description == "another"; got != want {
			t.Errorf("%s is described as %s: %q", path, name, doc.Definitions[name].Description)
		}
	}
}

// TestNamespaceDeletionAnswersAStatus: as in the documents of a stock server, and only for namespaces among the kinds
// whose deletion answers the object.
func TestNamespaceDeletionAnswersAStatus(t *testing.T) {
	paths := swagger(t, documents())
	for path, want := range map[string]string{
		"/api/v1/namespaces/{name}":                        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Status",
		"/api/v1/namespaces/{namespace}/services/{name}":   "#/definitions/io.k8s.api.core.v1.Service",
		"/api/v1/namespaces/{namespace}/configmaps/{name}": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Status",
	} {
		if got := string(paths[path]["delete"].Responses["200"]); !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestListsOfResourcesInCBOR: where bodies may be CBOR, so may be the list of a version's resources, and no
// other list of discovery.
func TestListsOfResourcesInCBOR(t *testing.T) {
	d := documents()
	d.CBOR = true
	paths := swagger(t, d)
	for path, want := range map[string]bool{"/apis/apps/v1/": true, "/api/v1/": true, "/apis/apps/": false, "/api/": false, "/apis/": false} {
		if got := slices.Contains(paths[path]["get"].Produces, "application/cbor"); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
