package json_test

import (
	stdjson "encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
)

// sameResults compares the results of both implementations: objects, problems, refusals of bodies, and bytes.
func sameResults(t *testing.T, data []byte, gvk schema.GroupVersionKind, newObject func() runtime.Object) {
	t.Helper()
	for _, s := range []codecs.Strictness{codecs.Ignore, codecs.Warn, codecs.Strict} {
		want, got := newObject(), newObject()
		_, wantProblems, wantErr := codecs.ReadBody(standard, data, codecs.Expected{GVK: gvk}, want, s)
		_, gotProblems, gotErr := codecs.ReadBody(fast, data, codecs.Expected{GVK: gvk}, got, s)
		if diff := cmp.Diff([]any{errText(wantErr), wantProblems}, []any{errText(gotErr), gotProblems}); diff != "" {
			t.Fatalf("%q into %T (-standard +fast)\n%s", data, got, diff)
		}
		if wantErr != nil {
			continue
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("%q into %T:\nstandard %#v\nown %#v", data, got, want, got)
		}
		sameBytes(t, got)
	}
}

func sameBytes(t *testing.T, obj runtime.Object) {
	t.Helper()
	want, wantErr := standard.Encode([]byte("x"), obj)
	got, gotErr := fast.Encode([]byte("x"), obj)
	if diff := cmp.Diff(errText(wantErr), errText(gotErr)); diff != "" || wantErr == nil && string(want) != string(got) {
		t.Fatalf("%T (-standard +fast)\n%s%s", obj, diff, cmp.Diff(string(want), string(got)))
	}
}

// TestImplementationsAreEqual: both implementations give the same for every built-in kind, whole and damaged.
func TestImplementationsAreEqual(t *testing.T) {
	scheme := sample.Scheme()
	r := rand.New(rand.NewSource(11))
	for range 2 {
		for _, gvk := range sample.Kinds(scheme) {
			newObject := func() runtime.Object { return sample.New(scheme, gvk) }
			obj := newObject()
			sample.Fill(r, obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			sameBytes(t, obj)
			data, err := fast.Encode(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			sameResults(t, data, gvk, newObject)
			sameResults(t, data, gvk, func() runtime.Object { return &unstructured.Unstructured{} })
			for range 3 {
				data = sample.Damage(r, data)
				sameResults(t, data, gvk, newObject)
			}
		}
	}
	for _, outcome := range []json.Outcome{json.Fast, json.Fallback, json.Panicked} {
		if n := standard.Count(json.Decode, outcome) + standard.Count(json.Encode, outcome); n != 0 {
			t.Errorf("%d operations were %v although only the standard packages were allowed", n, outcome)
		}
	}
	if n := fast.Count(json.Decode, json.Panicked) + fast.Count(json.Encode, json.Panicked); n != 0 {
		t.Errorf("the fast path panicked %d times", n)
	}
	if fast.Count(json.Decode, json.Fast) == 0 || fast.Count(json.Decode, json.Fallback) == 0 || standard.Count(json.Decode, json.Standard) == 0 {
		t.Error("an outcome did not occur")
	}
}

func FuzzFastPath(f *testing.F) {
	scheme := sample.Scheme()
	kinds := sample.Kinds(scheme)
	for i := range 10 {
		f.Add(int64(i), []byte(pod))
	}
	f.Add(int64(3), []byte(`{"kind":"ControllerRevision","apiVersion":"apps/v1","data":{ "a" : "<" },"revision":1}`))
	f.Fuzz(func(t *testing.T, seed int64, data []byte) {
		r := rand.New(rand.NewSource(seed))
		gvk := kinds[r.Intn(len(kinds))]
		newObject := func() runtime.Object { return sample.New(scheme, gvk) }
		sameResults(t, data, gvk, newObject)
		obj := newObject()
		sample.Fill(r, obj)
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		sameBytes(t, obj)
		text, err := stdjson.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		sameResults(t, sample.Damage(r, text), gvk, newObject)
	})
}

// TestExtensionsKeepTheirSpelling, by both implementations.
func TestExtensionsKeepTheirSpelling(t *testing.T) {
	const spelled = `{ "a" : "<b>", "c":[ 1.0, "&" ] }`
	for _, obj := range []runtime.Object{
		&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(spelled)}},
		&metav1.List{Items: []runtime.RawExtension{{Raw: []byte(`{"x":1}`)}, {Raw: []byte(spelled)}, {Raw: []byte(spelled)}}},
		&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte(spelled)}},
		&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte("{\n}")}},
		&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Object: &corev1.Pod{}}},
	} {
		sameBytes(t, obj)
		out, err := standard.Encode(nil, obj)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := stdjson.Marshal(obj); err == nil && strings.Contains(string(raw), `\u003cb`) && !strings.Contains(string(out), spelled) {
			t.Errorf("%T: %s", obj, out)
		}
	}
}

// TestBoundsHoldBothWays: data that exceeds the bounds of one implementation exceeds those of the other, before either
// has looked at it.
func TestBoundsHoldBothWays(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	crowd := `{"spec":{"containers":[` + strings.Repeat(`{},`, budget.Memory/budget.Largest(reflect.TypeFor[*corev1.Pod]())+1) + `{}]}}`
	for _, c := range []struct{ name, data string }{
		{"crowd", crowd},
		{"deep", `{"metadata":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000) + `}`},
	} {
		var texts []string
		for _, codec := range []json.Codec{fast, standard} {
			_, _, err := codecs.ReadBody(codec, []byte(c.data), codecs.Expected{GVK: gvk}, &corev1.Pod{}, codecs.Strict)
			if err == nil {
				t.Fatalf("%s: read", c.name)
			}
			texts = append(texts, err.Error())
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %q, %q", c.name, texts[0], texts[1])
		}
	}
}
