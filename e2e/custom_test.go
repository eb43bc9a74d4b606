package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/rowlock/rowlock/e2e/harness"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// TestCustomResources works with custom resources as people and programs do.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	t.Run("kubectl", func(t *testing.T) { customKubectl(t, s.Kubectl(t)) })
	t.Run("informers", func(t *testing.T) { customInformer(t, dynamicClient(t, s)) })
	t.Run("conversion", func(t *testing.T) { customConversion(t, newAPI(t, s)) })
}

func customKubectl(t *testing.T, k *harness.Kubectl) {
	const definition, ship = "testdata/custom/definition.yaml", "testdata/custom/ship.yaml"
	k.Run("apply", "-f", definition)
	k.Run("wait", "--for=condition=Established", "--timeout=2m", "crd/ships.fleet.example.com")
	k.Want([]string{"ship.fleet.example.com/hope created"}, "apply", "-f", ship)
	k.Want([]string{"unchanged"}, "apply", "-f", ship)
	k.Want([]string{"serverside-applied"}, "apply", "--server-side", "--force-conflicts", "-f", ship)
	k.Want([]string{"NAME", "PORT", "BOATS", "hope", "Kiel", "2"}, "get", "sh")
	k.Want([]string{"CAPTAIN", "ann"}, "get", "ships.v1.fleet.example.com", "-o", "wide")
	k.Want([]string{"ship.fleet.example.com/hope"}, "get", "fleet", "-o", "name")
	k.Want([]string{"Where the ship is at home.", "-required-"}, "explain", "ship.spec")
	k.Want([]string{"A ship of the fleet.", "crew"}, "explain", "ships", "--recursive")
	k.Want([]string{"scaled"}, "scale", "ship/hope", "--replicas=5")
	k.Want([]string{"5"}, "get", "ship", "hope", "-o", "jsonpath={.spec.boats}")
	k.Run("patch", "ship", "hope", "--subresource=status", "--type=merge", "-p", `{"status":{"boats":5}}`)
	k.Want([]string{"5 2"}, "get", "ship", "hope", "-o", "jsonpath={.status.boats} {.metadata.generation}")
	if out, err := k.Try("", "patch", "ship", "hope", "--type=merge", "-p", `{"spec":{"port":"x"}}`); err == nil || !strings.Contains(out, "should be at least 2 chars long") {
		t.Errorf("a port that is too short: %v\n%s", err, out)
	}
	if out, err := k.Try("apiVersion: fleet.example.com/v1\nkind: Ship\nmetadata: {name: odd}\nspec: {port: Kiel, sails: 3}\n", "create", "-f", "-"); err == nil || !strings.Contains(out, `unknown field "spec.sails"`) {
		t.Errorf("an unknown field: %v\n%s", err, out)
	}
	k.Want([]string{"v1.fleet.example.com", "Local"}, "get", "apiservice", "v1.fleet.example.com")
	k.Run("create", "namespace", "dock")
	k.Want([]string{"ship.fleet.example.com/hope created"}, "apply", "-n", "dock", "-f", ship)
	k.Run("delete", "namespace", "dock", "--timeout=2m")
	if out, err := k.Try("", "get", "ships", "-A", "-o", "custom-columns=NS:.metadata.namespace"); err != nil || strings.Contains(out, "dock") {
		t.Errorf("ships of a namespace that is gone: %v\n%s", err, out)
	}
	k.Run("delete", "crd", "ships.fleet.example.com", "--timeout=2m")
	if out, err := k.Try("", "get", "ships"); err == nil {
		t.Errorf("ships after the end of their definition: %s", out)
	}
}

// defined makes a definition and waits until it is established.
func defined(t *testing.T, a *api, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	body, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	want(t, a, http.StatusCreated, http.MethodPost, definitionsPath, "application/json", string(body))
	eventually(t, crd.Name+" is established", func() bool {
		return strings.Contains(string(want(t, a, http.StatusOK, http.MethodGet, definitionsPath+"/"+crd.Name, "", "")), "InitialNamesAccepted")
	})
}

func definition(group, plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}},
		})
	}
	return crd
}

// customInformer keeps a dynamic informer through the life of objects, and through
// that of their definition.
func customInformer(t *testing.T, client dynamic.Interface) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition("informed.example.com", "birds", "Bird", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Create(ctx, &unstructured.Unstructured{Object: tree}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	birds := schema.GroupVersionResource{Group: "informed.example.com", Version: "v1", Resource: "birds"}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	store := factory.ForResource(birds).Informer().GetStore()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), factory.ForResource(birds).Informer().HasSynced) {
		t.Fatal("the informer never had a list")
	}
	color := func(name string) string {
		obj, ok, _ := store.GetByKey("default/" + name)
		if !ok {
			return ""
		}
		found, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "color")
		return found
	}
	bird := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "informed.example.com/v1", "kind": "Bird", "metadata": map[string]any{"name": "robin"}, "spec": map[string]any{"color": "red"},
	}}
	in := client.Resource(birds).Namespace("default")
	if _, err := in.Create(ctx, bird, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new bird is seen", func() bool { return color("robin") == "red" })
	// The watch ends as the definition changes; the informer goes on.
	patch := []byte(`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"},"song":{"type":"string","default":"la"}}}}}}}]}}`)
	if _, err := definitions.Patch(ctx, "birds.informed.example.com", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new schema fills in defaults", func() bool {
		obj, err := in.Get(ctx, "robin", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		song, _, _ := unstructured.NestedString(obj.Object, "spec", "song")
		return song == "la"
	})
	if _, err := in.Patch(ctx, "robin", types.MergePatchType, []byte(`{"spec":{"color":"blue"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a change is seen", func() bool { return color("robin") == "blue" })
	if err := definitions.Delete(ctx, "birds.informed.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "birds go with their definition", func() bool { return len(store.ListKeys()) == 0 })
}

// customConversion reads and writes objects in versions that a webhook converts.
func customConversion(t *testing.T, a *api) {
	var broken atomic.Bool
	crd := definition("converted.example.com", "trees", "Tree", "v1", "v2")
	crd.Spec.Conversion = treeConversion(t, &broken)
	defined(t, a, crd)
	const v1, v2 = "/apis/converted.example.com/v1/namespaces/default/trees", "/apis/converted.example.com/v2/namespaces/default/trees"
	want(t, a, http.StatusCreated, http.MethodPost, v1, "application/json", `{"apiVersion":"converted.example.com/v1","kind":"Tree","metadata":{"name":"oak"},"meters":20}`)
	made := want(t, a, http.StatusCreated, http.MethodPost, v2, "application/json", `{"apiVersion":"converted.example.com/v2","kind":"Tree","metadata":{"name":"elm"},"size":{"meters":30}}`)
	for path, texts := range map[string][]string{
		v1 + "/elm": {`"meters":30`, `"apiVersion":"converted.example.com/v1"`},
		v2 + "/oak": {`"size":{"meters":20}`, `"apiVersion":"converted.example.com/v2"`},
		v2:          {`"size":{"meters":20}`, `"size":{"meters":30}`},
		v1:          {`"meters":20`, `"meters":30`},
	} {
		answer := string(want(t, a, http.StatusOK, http.MethodGet, path, "", ""))
		for _, text := range texts {
			if !strings.Contains(answer, text) {
				t.Errorf("%s lacks %s: %s", path, text, answer)
			}
		}
	}
	if !strings.Contains(string(made), `"size":{"meters":30}`) {
		t.Errorf("what was made is %s", made)
	}
	changed := string(want(t, a, http.StatusOK, http.MethodPatch, v2+"/oak", "application/merge-patch+json", `{"size":{"meters":21}}`))
	if !strings.Contains(changed, `"generation":2`) || !strings.Contains(changed, `"meters":21`) {
		t.Errorf("a tree that has grown: %s", changed)
	}
	broken.Store(true)
	want(t, a, http.StatusCreated, http.MethodPost, v1, "application/json", `{"apiVersion":"converted.example.com/v1","kind":"Tree","metadata":{"name":"ash"},"meters":9}`)
	for _, path := range []string{v2 + "/ash", v2} {
		answer := string(want(t, a, http.StatusInternalServerError, http.MethodGet, path, "", ""))
		if !strings.Contains(answer, "conversion webhook for converted.example.com/v1, Kind=Tree failed: ") {
			t.Errorf("%s without a webhook: %s", path, answer)
		}
	}
	broken.Store(false) // no failure is remembered
	want(t, a, http.StatusOK, http.MethodGet, v2+"/ash", "", "")
	want(t, a, http.StatusOK, http.MethodGet, v2, "", "")
}

// treeConversion returns a webhook that converts trees, unless it is broken.
func treeConversion(t *testing.T, broken *atomic.Bool) *apiextensionsv1.CustomResourceConversion {
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || broken.Load() {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: moved(raw.Raw, review.Request.DesiredAPIVersion)})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(&review) // the server reports an answer that does not arrive
	}))
	t.Cleanup(hook.Close)
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig: &apiextensionsv1.WebhookClientConfig{
			URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		},
	}}
}

// moved puts the height of a tree where the version has it.
func moved(raw []byte, apiVersion string) []byte {
	var tree map[string]any
	if json.Unmarshal(raw, &tree) != nil {
		return nil
	}
	tree["apiVersion"] = apiVersion
	if size, ok := tree["size"].(map[string]any); ok && strings.HasSuffix(apiVersion, "/v1") {
		tree["meters"] = size["meters"]
		delete(tree, "size")
	} else if meters, ok := tree["meters"]; ok && strings.HasSuffix(apiVersion, "/v2") {
		tree["size"] = map[string]any{"meters": meters}
		delete(tree, "meters")
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	return out
}

// TestCustomResourcesOfTwoServers defines at one server what the other serves, and
// keeps it when servers are killed.
func TestCustomResourcesOfTwoServers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, newDatabase(t, sharedPostgres(t)), 2)
	a := clients(t, c)
	for i := range 4 {
		group := fmt.Sprintf("g%d.example.com", i)
		defined(t, a[i%2], definition(group, "stones", "Stone", "v1"))
		path := "/apis/" + group + "/v1/namespaces/default/stones"
		// At once: no server needs time to notice it.
		want(t, a[(i+1)%2], http.StatusCreated, http.MethodPost, path, "application/json", fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Stone","metadata":{"name":"flint"}}`, group))
		want(t, a[i%2], http.StatusOK, http.MethodGet, path+"/flint", "", "")
	}
	want(t, a[0], http.StatusOK, http.MethodDelete, definitionsPath+"/stones.g0.example.com", "", "")
	eventually(t, "a definition is gone at the other server", func() bool {
		code, _, err := a[1].do(t.Context(), http.MethodGet, "/apis/g0.example.com/v1/namespaces/default/stones", "", "")
		return err == nil && code == http.StatusNotFound
	})
	c.server(1).Kill()
	c.again(1)
	want(t, a[1], http.StatusOK, http.MethodGet, "/apis/g1.example.com/v1/namespaces/default/stones/flint", "", "")
	want(t, a[1], http.StatusNotFound, http.MethodGet, "/apis/g0.example.com/v1", "", "")
}
