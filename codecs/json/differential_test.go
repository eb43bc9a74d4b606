package json_test

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	exact "sigs.k8s.io/json"

	"github.com/google/go-cmp/cmp"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/sample"
)

// sameDecode checks Decode against sigs.k8s.io/json for one input.
func sameDecode(t *testing.T, data []byte, newObject func() runtime.Object) {
	t.Helper()
	sameTree(t, data)
	for _, s := range []codecs.Strictness{codecs.Ignore, codecs.Warn} {
		got := newObject()
		gotProblems, gotErr := fast.Decode(data, got, s)
		want := newObject()
		var wantProblems []string
		var wantErr error
		if s == codecs.Ignore {
			wantErr = exact.UnmarshalCaseSensitivePreserveInts(data, want)
		} else {
			var strict []error
			strict, wantErr = exact.UnmarshalStrict(data, want)
			for _, e := range strict {
				wantProblems = append(wantProblems, e.Error())
			}
		}
		if diff := cmp.Diff(errText(wantErr), errText(gotErr)); diff != "" {
			t.Fatalf("%q into %T: error (-want +got)\n%s", data, got, diff)
		}
		if diff := cmp.Diff(wantProblems, gotProblems); diff != "" {
			t.Fatalf("%q into %T: problems (-want +got)\n%s", data, got, diff)
		}
		if wantErr == nil && !reflect.DeepEqual(want, got) {
			a, _ := stdjson.Marshal(want)
			b, _ := stdjson.Marshal(got)
			t.Fatalf("%q into %T:\nwant %s\ngot  %s\n%#v\n%#v", data, got, a, b, want, got)
		}
	}
}

// sameKind checks Kind against encoding/json.
func sameKind(t *testing.T, data []byte) {
	t.Helper()
	got, err := fast.Kind(data)
	if want, wantErr := standard.Kind(data); got != want || errText(err) != errText(wantErr) {
		t.Fatalf("%q is %v %v, want %v %v", data, got, err, want, wantErr)
	}
}

func TestKind(t *testing.T) {
	for _, text := range []string{
		`{"kind":"Pod","apiVersion":"v1"}`, ` { "apiVersion" : "apps/v1" , "spec" : { "kind" : "x" } , "kind" : "Deployment" } `, `{}`, `{"spec":[1,{"a":null}]}`,
		`{"KIND":"A","apiversion":"b"}`, `{"kind":"A","Kind":"B"}`, `{"kind":"A","kind":null}`, `{"kind":null}`, `{"kind":1}`, `{"apiVersion":{}}`, `{"\u006bind":"A"}`, "{\"\u212aind\":\"A\"}",
		`{"kind":"\u0041"}`, "{\"kind\":\"\xff\"}", `{"apiVersion":"a/b/c"}`, `{"apiVersion":"/"}`, `{"kind":"A"`, `{"kind":"A"}x`, `{"a":01}`, `{"a":[}`, `[]`, `null`, ``, ` `, `"kind"`,
		strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000), strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001),
	} {
		sameKind(t, []byte(text))
	}
}

// sameTree checks decoding into an Unstructured against the decoding of a map.
func sameTree(t *testing.T, data []byte) {
	t.Helper()
	sameKind(t, data)
	got := &unstructured.Unstructured{}
	gotProblems, gotErr := fast.Decode(data, got, codecs.Strict)
	want := map[string]any{}
	strict, wantErr := exact.UnmarshalStrict(data, &want)
	var wantProblems []string
	for _, e := range strict {
		wantProblems = append(wantProblems, e.Error())
	}
	if errText(wantErr) != errText(gotErr) || !reflect.DeepEqual(gotProblems, wantProblems) || wantErr == nil && !reflect.DeepEqual(got.Object, want) {
		t.Fatalf("%q: %v %v, want %v %v\n%#v\n%#v", data, gotErr, gotProblems, wantErr, wantProblems, got.Object, want)
	}
}

func TestUnmarshal(t *testing.T) {
	var tree map[string]any
	if _, err := fast.Unmarshal([]byte(`{"a":1,"b":1e2}`), &tree, codecs.Strict); err != nil || !reflect.DeepEqual(tree, map[string]any{"a": int64(1), "b": 100.0}) {
		t.Error(tree, err)
	}
	// Existing values stay, as with encoding/json.
	if _, err := fast.Unmarshal([]byte(`{"c":null}`), &tree, codecs.Strict); err != nil || len(tree) != 3 {
		t.Error(tree, err)
	}
	meta := metav1.ObjectMeta{Name: "x"}
	if _, err := fast.Unmarshal([]byte(`{"namespace":"y"}`), &meta, codecs.Strict); err != nil || meta.Name != "x" || meta.Namespace != "y" {
		t.Error(meta, err)
	}
	meta = metav1.ObjectMeta{}
	problems, err := fast.Unmarshal([]byte(`{"name":"y","name":"z","nam":1}`), &meta, codecs.Strict)
	if err != nil || meta.Name != "z" || !reflect.DeepEqual(problems, []string{`duplicate field "name"`, `unknown field "nam"`}) {
		t.Error(meta, problems, err)
	}
	var list []any
	if _, err := fast.Unmarshal([]byte(`[1]`), &list, codecs.Strict); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}

// errText returns the text of an error.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDecodeEqualsExact(t *testing.T) {
	scheme := sample.Scheme()
	kinds := sample.Kinds(scheme)
	r := rand.New(rand.NewSource(1))
	for round := range 3 {
		for _, gvk := range kinds {
			newObject := func() runtime.Object { return sample.New(scheme, gvk) }
			obj := newObject()
			sample.Fill(r, obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			data, err := stdjson.Marshal(obj)
			if err != nil {
				t.Fatalf("%v: %v", gvk, err)
			}
			sameDecode(t, data, newObject)
			for range 2 + round {
				data = sample.Damage(r, data)
				sameDecode(t, data, newObject)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	scheme := sample.Scheme()
	kinds := sample.Kinds(scheme)
	for i := range 20 {
		f.Add(int64(i), []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"spec":{"containers":[{"name":"c"}]}}`))
	}
	f.Fuzz(func(t *testing.T, seed int64, data []byte) {
		r := rand.New(rand.NewSource(seed))
		gvk := kinds[r.Intn(len(kinds))]
		newObject := func() runtime.Object { return sample.New(scheme, gvk) }
		sameDecode(t, data, newObject)
		obj := newObject()
		sample.Fill(r, obj)
		sameEncode(t, obj)
		damaged, err := stdjson.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			damaged = sample.Damage(r, damaged)
			sameDecode(t, damaged, newObject)
			if again := newObject(); stdjson.Unmarshal(damaged, again) == nil {
				sameEncode(t, again)
			}
		}
	})
}

// sameEncode checks Append against encoding/json, but for the spelling of extensions,
// which Append keeps.
func sameEncode(t *testing.T, obj any) {
	t.Helper()
	want, wantErr := stdjson.Marshal(obj)
	got, gotErr := fast.Append([]byte("x"), obj)
	if (wantErr == nil) != (gotErr == nil) || string(got) != "x"+string(want) && !bytes.Equal(respelled(got[1:]), want) {
		t.Fatalf("%T: %v, want %v\n%s", obj, gotErr, wantErr, cmp.Diff(string(want), string(got[1:])))
	}
}

// respelled is data as encoding/json spells it.
func respelled(data []byte) []byte {
	var compact, out bytes.Buffer
	if stdjson.Compact(&compact, data) != nil {
		return nil
	}
	stdjson.HTMLEscape(&out, compact.Bytes())
	return out.Bytes()
}

func TestEncodeEqualsStandard(t *testing.T) {
	scheme := sample.Scheme()
	r := rand.New(rand.NewSource(7))
	for range 4 {
		for _, gvk := range sample.Kinds(scheme) {
			obj, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			sameEncode(t, obj)
			sample.Fill(r, obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			sameEncode(t, obj)
		}
	}
}
