package custom_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds/custom"
)

var toV2 = schema.GroupVersion{Group: "example.com", Version: "v2"}

func thing(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": name, "uid": "u-" + name, "labels": map[string]any{"a": "b"}, "generation": int64(3)},
		"spec":     map[string]any{"n": int64(1)},
	}}
}

// answering returns a webhook that answers what edit makes of a good answer.
func answering(t *testing.T, edit func(r *apiextensionsv1.ConversionReview, objs []map[string]any)) *custom.Webhook {
	return &custom.Webhook{Versions: []string{"v9", "v1"}, Post: func(_ context.Context, body []byte) ([]byte, error) {
		r := &apiextensionsv1.ConversionReview{}
		if err := json.Unmarshal(body, r); err != nil {
			t.Fatal(err)
		}
		r.Response.UID, r.Response.Result.Status = r.Request.UID, "Success"
		var objs []map[string]any
		for _, raw := range r.Request.Objects {
			var obj map[string]any
			if err := json.Unmarshal(raw.Raw, &obj); err != nil {
				t.Fatal(err)
			}
			obj["apiVersion"] = r.Request.DesiredAPIVersion
			objs = append(objs, obj)
		}
		edit(r, objs)
		for _, obj := range objs {
			data, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			r.Response.ConvertedObjects = append(r.Response.ConvertedObjects, runtime.RawExtension{Raw: data})
		}
		return json.Marshal(r)
	}}
}

func TestWebhookConverts(t *testing.T) {
	w := answering(t, func(_ *apiextensionsv1.ConversionReview, objs []map[string]any) {
		for _, obj := range objs {
			obj["spec"] = map[string]any{"m": 1}
			meta := obj["metadata"].(map[string]any)
			meta["labels"], meta["annotations"], meta["generation"] = map[string]any{"c": "d"}, map[string]any{"kept": "n"}, 9
		}
	})
	out, err := w.Convert(t.Context(), toV2, []*unstructured.Unstructured{thing("x"), thing("y")})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"x", "y"} {
		u := out[i]
		if u.GetName() != name || u.GetAPIVersion() != "example.com/v2" || u.GetLabels()["c"] != "d" || u.GetLabels()["a"] != "" ||
			u.GetAnnotations()["kept"] != "n" || u.GetGeneration() != 3 {
			t.Errorf("converted: %v", u.Object)
		}
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "m"); n != 1 {
			t.Errorf("spec of the converted object: %v", u.Object["spec"])
		}
	}
}

func TestWebhookMistakes(t *testing.T) {
	type edit = func(r *apiextensionsv1.ConversionReview, objs []map[string]any)
	meta := func(obj map[string]any) map[string]any { return obj["metadata"].(map[string]any) }
	for want, e := range map[string]edit{
		`failed: expected response.uid=`: func(r *apiextensionsv1.ConversionReview, _ []map[string]any) { r.Response.UID = "other" },
		`failed: no response provided`:   nil,
		`failed: not today`: func(r *apiextensionsv1.ConversionReview, _ []map[string]any) {
			r.Response.Result.Status, r.Response.Result.Message = "Failure", "not today"
		},
		`failed: response.result.status was '', not 'Success'`:                                                                          func(r *apiextensionsv1.ConversionReview, _ []map[string]any) { r.Response.Result.Status = "" },
		`failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Review`: func(r *apiextensionsv1.ConversionReview, _ []map[string]any) { r.Kind = "Review" },
		`returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)`:                   func(_ *apiextensionsv1.ConversionReview, o []map[string]any) { o[0]["apiVersion"] = "example.com/v3" },
		`returned invalid object at index 0: invalid kind (expected Thing, received Thong)`:                                             func(_ *apiextensionsv1.ConversionReview, o []map[string]any) { o[0]["kind"] = "Thong" },
		`returned invalid object: must have the same name: x != z`:                                                                      func(_ *apiextensionsv1.ConversionReview, o []map[string]any) { meta(o[0])["name"] = "z" },
		`returned invalid object: must have the same UID: u-x != `:                                                                      func(_ *apiextensionsv1.ConversionReview, o []map[string]any) { delete(meta(o[0]), "uid") },
		`returned invalid metadata: metadata.labels[n] must be a string, but is int64 in converted object`: func(_ *apiextensionsv1.ConversionReview, o []map[string]any) {
			meta(o[0])["labels"] = map[string]any{"n": 1}
		},
		`returned invalid metadata: metadata.labels: Invalid value: "-"`: func(_ *apiextensionsv1.ConversionReview, o []map[string]any) {
			meta(o[0])["labels"] = map[string]any{"-": "x"}
		},
	} {
		w := answering(t, e)
		if e == nil {
			w.Post = func(context.Context, []byte) ([]byte, error) {
				return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`), nil
			}
		}
		_, err := w.Convert(t.Context(), toV2, []*unstructured.Unstructured{thing("x")})
		if err == nil || !strings.HasPrefix(err.Error(), "conversion webhook for example.com/v1, Kind=Thing ") || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	down := &custom.Webhook{Versions: []string{"v1"}, Post: func(context.Context, []byte) ([]byte, error) { return nil, errors.New("connection refused") }}
	if _, err := down.Convert(t.Context(), toV2, []*unstructured.Unstructured{thing("x")}); err == nil || err.Error() != "conversion webhook for example.com/v1, Kind=Thing failed: connection refused" {
		t.Errorf("a webhook that is down: %v", err)
	}
	none := &custom.Webhook{Versions: []string{"v2"}}
	if _, err := none.Convert(t.Context(), toV2, []*unstructured.Unstructured{thing("x")}); err == nil || err.Error() != "no supported conversion review versions" {
		t.Errorf("a webhook of the future: %v", err)
	}
}

func FuzzWebhookAnswer(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","response":{"uid":"","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"x","uid":"u-x","labels":{"a":"b"}}}]}}`))
	f.Add([]byte(`{"response":{"result":{"status":"Success"},"convertedObjects":[null]}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		w := &custom.Webhook{Versions: []string{"v1beta1"}, Post: func(context.Context, []byte) ([]byte, error) { return answer, nil }}
		out, err := w.Convert(t.Context(), toV2, []*unstructured.Unstructured{thing("x")})
		if err == nil && (out[0].GetName() != "x" || out[0].GetAPIVersion() != "example.com/v2" || out[0].GetGeneration() != 3) {
			t.Errorf("accepted %s as %v", answer, out[0].Object)
		}
	})
}
