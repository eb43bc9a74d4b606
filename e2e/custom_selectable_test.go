package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestSelectableFields selects custom objects by fields that another version has
// elsewhere than the stored one, or that have got a default since they were stored.
func TestSelectableFields(t *testing.T) {
	t.Parallel()
	a := newAPI(t, harness.StartT(t, harness.Options{}))
	t.Run("converted", func(t *testing.T) { selectConverted(t, a) })
	t.Run("defaulted", func(t *testing.T) { selectDefaulted(t, a) })
}

// selecting is a version whose objects may be selected by a path.
func selecting(t *testing.T, v *apiextensionsv1.CustomResourceDefinitionVersion, path, schema string) {
	t.Helper()
	v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(schema), v.Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	v.SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: path}}
}

func selectConverted(t *testing.T, a *api) {
	var asked atomic.Int64
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: labelled(moved(raw.Raw, review.Request.DesiredAPIVersion))})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(&review) // the server reports an answer that does not arrive
	}))
	defer hook.Close()
	crd := definition("selected.example.com", "trees", "Tree", "v1", "v2")
	selecting(t, &crd.Spec.Versions[0], ".meters", `{"type":"object","properties":{"meters":{"type":"integer"}}}`)
	selecting(t, &crd.Spec.Versions[1], ".size.meters", `{"type":"object","properties":{"size":{"type":"object","properties":{"meters":{"type":"integer"}}}}}`)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig: &apiextensionsv1.WebhookClientConfig{
			URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		},
	}}
	defined(t, a, crd)
	const v1, v2 = "/apis/selected.example.com/v1/namespaces/default/trees", "/apis/selected.example.com/v2/namespaces/default/trees"
	tree := func(name string, meters int) string {
		return fmt.Sprintf(`{"apiVersion":"selected.example.com/v1","kind":"Tree","metadata":{"name":%q},"meters":%d}`, name, meters)
	}
	for i, name := range []string{"alder", "birch", "cedar", "durian", "elm", "fir"} {
		want(t, a, http.StatusCreated, http.MethodPost, v1, "application/json", tree(name, 10+i%2*10))
	}
	const even, odd = "alder,cedar,elm", "birch,durian,fir"
	for _, c := range []struct{ path, selector, want string }{
		{v1, "fieldSelector=meters%3D10", even},
		{v1, "fieldSelector=meters!%3D10", odd},
		{v2, "fieldSelector=size.meters%3D10", even},
		{v2, "fieldSelector=size.meters%3D20", odd},
		{v2, "fieldSelector=size.meters!%3D20", even},
		{v2, "fieldSelector=size.meters%3D20,metadata.name%3Dfir", "fir"},
		{v2, "fieldSelector=size.meters%3D10,metadata.name%3Dfir", ""},
		{v2, "fieldSelector=size.meters%3D", ""},
		{v2, "labelSelector=height%3D20", odd}, // the decision of the webhook
		{v2, "labelSelector=height%3D20&fieldSelector=size.meters%3D10", ""},
	} {
		if got := strings.Join(listed(t, a, c.path+"?"+c.selector), ","); got != c.want {
			t.Errorf("%s?%s: %s, want %s", c.path, c.selector, got, c.want)
		}
		var paged []string
		for next := ""; ; {
			var page metav1.PartialObjectMetadataList
			unmarshal(t, want(t, a, http.StatusOK, http.MethodGet, c.path+"?limit=1&continue="+url.QueryEscape(next)+"&"+c.selector, "", ""), &page)
			for _, item := range page.Items {
				paged = append(paged, item.Name)
			}
			if next = page.Continue; next == "" {
				break
			}
		}
		if got := strings.Join(paged, ","); got != c.want {
			t.Errorf("%s?%s in pages: %s, want %s", c.path, c.selector, got, c.want)
		}
	}
	for _, path := range []string{v1 + "?fieldSelector=size.meters%3D10", v2 + "?fieldSelector=meters%3D10"} {
		want(t, a, http.StatusBadRequest, http.MethodGet, path, "", "")
	}
	list := struct {
		metav1.ListMeta `json:"metadata"`
	}{}
	unmarshal(t, want(t, a, http.StatusOK, http.MethodGet, v2, "", ""), &list)
	want(t, a, http.StatusCreated, http.MethodPost, v1, "application/json", tree("gum", 10))
	height := func(name string, meters int) {
		want(t, a, http.StatusOK, http.MethodPatch, v1+"/"+name, "application/merge-patch+json", fmt.Sprintf(`{"meters":%d}`, meters))
	}
	height("gum", 20)  // enters
	height("fir", 10)  // leaves
	height("fir", 20)  // comes back
	height("elm", 11)  // stays without
	height("birch", 9) // leaves
	want(t, a, http.StatusOK, http.MethodDelete, v1+"/gum", "", "")
	want(t, a, http.StatusOK, http.MethodDelete, v1+"/alder", "", "")
	want(t, a, http.StatusOK, http.MethodPatch, v1+"/durian", "application/merge-patch+json", `{"metadata":{"annotations":{"a":"b"}}}`)
	watched := []string{"ADDED gum 20", "DELETED fir 20", "ADDED fir 20", "DELETED birch 20", "DELETED gum 20", "MODIFIED durian 20"}
	for _, selector := range []string{"fieldSelector=size.meters%3D20", "labelSelector=height%3D20"} {
		got := seen(t, a, v2+"?watch=1&resourceVersion="+list.ResourceVersion+"&"+selector, len(watched))
		if !slices.Equal(got, watched) {
			t.Errorf("%s: a watch from a version: %q, want %q", selector, got, watched)
		}
		got = seen(t, a, v2+"?watch=1&"+selector, 2)
		if slices.Sort(got); !slices.Equal(got, []string{"ADDED durian 20", "ADDED fir 20"}) {
			t.Errorf("%s: a watch begins with %q", selector, got)
		}
	}
	want(t, a, http.StatusOK, http.MethodDelete, v2+"?fieldSelector=size.meters%3D20", "", "")
	if got, wanted := strings.Join(listed(t, a, v1), ","), "birch,cedar,elm"; got != wanted {
		t.Errorf("after a selection was deleted: %s, want %s", got, wanted)
	}
	if asked.Load() == 0 {
		t.Error("the webhook was never asked")
	}
}

// labelled gives an object a label with its height.
func labelled(raw []byte) []byte {
	var tree map[string]any
	if json.Unmarshal(raw, &tree) != nil {
		return nil
	}
	meters := tree["meters"]
	if size, ok := tree["size"].(map[string]any); ok {
		meters = size["meters"]
	}
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	metadata["labels"] = map[string]any{"height": fmt.Sprint(meters)}
	out, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	return out
}

func selectDefaulted(t *testing.T, a *api) {
	crd := definition("later.example.com", "cups", "Cup", "v1")
	const schema = `{"type":"object","properties":{"color":{"type":"string"%s}}}`
	selecting(t, &crd.Spec.Versions[0], ".color", fmt.Sprintf(schema, ""))
	defined(t, a, crd)
	const cups = "/apis/later.example.com/v1/namespaces/default/cups"
	for _, name := range []string{"big", "small"} {
		want(t, a, http.StatusCreated, http.MethodPost, cups, "application/json", `{"apiVersion":"later.example.com/v1","kind":"Cup","metadata":{"name":"`+name+`"}}`)
	}
	if got := listed(t, a, cups+"?fieldSelector=color%3Dred"); len(got) > 0 {
		t.Errorf("%q are red before anything is", got)
	}
	patch := `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":` + fmt.Sprintf(schema, `,"default":"red"`) + `}]`
	want(t, a, http.StatusOK, http.MethodPatch, definitionsPath+"/cups.later.example.com", "application/json-patch+json", patch)
	eventually(t, "cups are red", func() bool { return len(listed(t, a, cups+"?fieldSelector=color%3Dred")) == 2 })
	list := struct {
		metav1.ListMeta `json:"metadata"`
	}{}
	unmarshal(t, want(t, a, http.StatusOK, http.MethodGet, cups, "", ""), &list)
	want(t, a, http.StatusOK, http.MethodPatch, cups+"/big", "application/merge-patch+json", `{"color":"blue"}`)
	want(t, a, http.StatusOK, http.MethodDelete, cups+"/small", "", "")
	got := seen(t, a, cups+"?watch=1&fieldSelector=color%3Dred&resourceVersion="+list.ResourceVersion, 2)
	if wanted := []string{"DELETED big red", "DELETED small red"}; !slices.Equal(got, wanted) {
		t.Errorf("a watch of what is red by default: %q, want %q", got, wanted)
	}
}

func unmarshal(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

// listed returns the names of a list.
func listed(t *testing.T, a *api, path string) (names []string) {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	unmarshal(t, want(t, a, http.StatusOK, http.MethodGet, path, "", ""), &list)
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

// seen returns the first events of a watch, as far as they come within two minutes: type,
// name, and size or color.
func seen(t *testing.T, a *api, path string, n int) (events []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := a.c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for len(events) < n && lines.Scan() {
		var e struct {
			Type   string
			Object struct {
				Metadata metav1.ObjectMeta
				Size     struct{ Meters int }
				Color    string
			}
		}
		unmarshal(t, lines.Bytes(), &e)
		what := e.Object.Color
		if what == "" {
			what = fmt.Sprint(e.Object.Size.Meters)
		}
		events = append(events, e.Type+" "+e.Object.Metadata.Name+" "+what)
	}
	return events
}
