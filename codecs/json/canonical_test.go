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

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/codecs/view"
)

// TestCanonicalIsStrict: data that the walk accepts is decoded without error or problem, to the identity that
// the walk returns; output of the encoder is accepted.
func TestCanonicalIsStrict(t *testing.T) {
	scheme := sample.Scheme()
	r := rand.New(rand.NewSource(3))
	written, accepted, damaged := 0, 0, 0
	for range 4 {
		for _, gvk := range sample.Kinds(scheme) {
			newObject := func() runtime.Object { return sample.New(scheme, gvk) }
			obj := newObject()
			if _, named := obj.(metav1.Object); !named {
				continue
			}
			sample.Fill(r, obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			data, err := fast.Append(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			if err := strictly(data, newObject()); err != nil {
				continue // a sample that cannot be read back proves nothing
			}
			written++
			id, ok := fast.Canonical(data, newObject())
			if ok {
				accepted++
				meta := obj.(metav1.Object)
				if want := (json.Identity{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String(), Name: meta.GetName(), Namespace: meta.GetNamespace()}); id != want {
					t.Fatalf("%v, want %v: %s", id, want, data)
				}
			} else if !strings.Contains(string(data), `\`) {
				t.Errorf("refused: %s", data)
			}
			for range 20 {
				bad := sample.Damage(r, data)
				if _, ok := fast.Canonical(bad, newObject()); !ok {
					continue
				}
				damaged++
				if err := strictly(bad, newObject()); err != nil {
					t.Fatalf("accepted though %v: %s", err, bad)
				}
			}
			tree := map[string]any{}
			if err := stdjson.Unmarshal(data, &tree); err != nil {
				t.Fatal(err)
			}
			data, err = stdjson.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			if id2, ok := fast.Canonical(data, &unstructured.Unstructured{}); ok && id.Name != "" && id2 != id {
				t.Fatalf("as a tree: %v, want %v: %s", id2, id, data)
			}
		}
	}
	if accepted*2 < written || damaged == 0 {
		t.Errorf("%d of %d accepted, %d damaged ones", accepted, written, damaged)
	}
}

type strictError struct{ problems []string }

func (e *strictError) Error() string { return strings.Join(e.problems, "; ") }

func strictly(data []byte, obj runtime.Object) error {
	problems, err := fast.Decode(data, obj, codecs.Strict)
	if err == nil && len(problems) > 0 {
		err = &strictError{problems}
	}
	return err
}

func TestCanonical(t *testing.T) {
	const head = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u"`
	for _, c := range []struct {
		data string
		want bool
	}{
		{head + `},"data":{"a":"5"}}`, true},
		{head + `,"resourceVersion":"4"},"data":{"a":"5","b":""},"binaryData":{"x":"AAE="}}`, true},
		{head + `},"data":null}`, true},
		{head + `},"data":{"a":5}}`, false},
		{head + `},"data":[]}`, false},
		{head + `},"data":{"b":"","a":""}}`, false},
		{head + `},"data":{"a":"","a":""}}`, false},
		{head + `},"dato":{"a":""}}`, false},
		{head + `},"binaryData":{"x":"AAE"}}`, false},
		{head + `},"data":{"a":"` + "\xff" + `"}}`, false},
		{head + `},"data":{"a":"\ud83d"}}`, false},
		{head + `}, "data":{"a":""}}`, false},
		{head + `},"data":{"a":""}}x`, false},
		{head + `},"data":{"a":""}`, false},
		{head + `,"labels":{},"resourceVersion":"4"}}`, false},
		{head + `,"creationTimestamp":"yesterday"}}`, false},
		{head + `,"generation":7,"creationTimestamp":null}}`, true},
		{head + `,"generation":"7"}}`, false},
		{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, false},
		{`null`, false}, {``, false}, {`{`, false}, {`{}`, true},
	} {
		if _, ok := fast.Canonical([]byte(c.data), &corev1.ConfigMap{}); ok != c.want {
			t.Errorf("%s: %v", c.data, ok)
		}
	}
	for _, c := range []struct {
		data string
		want bool
	}{
		{`{"apiVersion":"a/v1","kind":"K","metadata":{"labels":{"a":"b"},"name":"x"},"spec":{"a":[1,2.5,{"b":null}]}}`, true},
		{`{"apiVersion":"a/v1","kind":"K","metadata":{"labels":{"a":5},"name":"x"}}`, false},
		{`{"apiVersion":"a/v1","kind":"K","metadata":{"name":"x"},"spec":{"b":1,"a":2}}`, false},
		{`{"apiVersion":"a/v1","kind":7,"metadata":{"name":"x"}}`, false},
		{strings.Repeat(`{"a":`, 500) + `1` + strings.Repeat(`}`, 500), false},
	} {
		id, ok := fast.Canonical([]byte(c.data), nil)
		if ok != c.want {
			t.Errorf("%s: %v", c.data, ok)
		}
		if ok && !reflect.DeepEqual(id, json.Identity{Kind: "K", APIVersion: "a/v1", Name: "x"}) {
			t.Errorf("%s: %v", c.data, id)
		}
	}
}

// TestCanonicalNulls: with a view, an object has null in the places of the empty fields that the view wants to be written
// so, and nowhere else in the place of an optional field.
func TestCanonicalNulls(t *testing.T) {
	none := func(reflect.Type, string) bool { return false }
	nulls := func(t reflect.Type, field string) bool {
		return t == reflect.TypeFor[metav1.ObjectMeta]() && field == "creationTimestamp"
	}
	const head, tail = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"selector":null,"template":{"metadata":`, `,"spec":{"containers":null}},"strategy":{}},"status":{}}`
	for name, c := range map[string]struct {
		codec                 json.Codec
		null, absent, emptied bool
	}{
		"all fields":    {fast, true, true, true},
		"without nulls": {json.New(json.Settings{View: view.New(none, none, true)}), false, true, false},
		"with nulls":    {json.New(json.Settings{View: view.New(none, nulls, true)}), true, false, false},
	} {
		for text, want := range map[string]bool{
			head + `{"creationTimestamp":null}` + tail:               c.null,
			head + `{}` + tail:                                       c.absent,
			head + `{"creationTimestamp":null,"labels":null}` + tail: c.emptied,
		} {
			if _, ok := c.codec.Canonical([]byte(text), &appsv1.Deployment{}); ok != want {
				t.Errorf("%s: %t for %s", name, ok, text)
			}
		}
	}
}
