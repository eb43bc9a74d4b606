package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/kinds"
)

// comparePatch applies one patch both ways.
func comparePatch(t *testing.T, typ string, r *kinds.Resource, current kinds.Object, body []byte) (quick bool) {
	t.Helper()
	p := Patch{Type: typ, Body: body, Strictness: codecs.Warn, JSON: codecjson.Codec{}}
	current.GetObjectKind().SetGroupVersionKind(r.GVK())
	got, ok := p.quick(current)
	if !ok {
		return false
	}
	want, warnings, err := p.strategic(r.GVK(), current)
	if typ == codecs.PatchMerge {
		want, warnings, err = p.document(context.Background(), r.GVK(), current, nil)
	}
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v: quick way accepts what the long one does not: %v %v\n%s", r.GVK(), err, warnings, body)
	}
	got.GetObjectKind().SetGroupVersionKind(r.GVK())
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || !cmp.Equal(x, y) {
		old, _ := json.Marshal(current)
		t.Fatalf("%v: long way (-) and quick way (+) differ:\n%s\npatch %s\nof %s", r.GVK(), cmp.Diff(x, y), body, old)
	}
	return true
}

// twoWay makes the patch that a client would send for a random change.
func twoWay(t *testing.T, typ string, rnd *rand.Rand, r *kinds.Resource) (kinds.Object, []byte) {
	obj := r.New()
	sample.Fill(rnd, obj)
	if !settle(t, obj, nil, true) {
		return nil, nil
	}
	next := obj.DeepCopyObject().(kinds.Object)
	for range 1 + rnd.Intn(3) {
		mutate(rnd, reflect.ValueOf(next).Elem(), 0)
	}
	if !settle(t, next, nil, true) {
		return nil, nil
	}
	a, _ := json.Marshal(obj)
	b, _ := json.Marshal(next)
	patch, err := strategicpatch.CreateTwoWayMergePatch(a, b, r.New())
	if typ == codecs.PatchMerge {
		patch, err = jsonpatch.CreateMergePatch(a, b)
	}
	if err != nil {
		return nil, nil
	}
	return obj, patch
}

func TestPatchWaysAgree(t *testing.T) {
	quick, all := 0, 0
	for _, r := range stored() {
		for seed := range 40 {
			typ := []string{codecs.PatchStrategic, codecs.PatchMerge}[seed%2]
			obj, patch := twoWay(t, typ, rand.New(rand.NewSource(int64(seed))), r)
			if obj == nil {
				continue
			}
			all++
			if comparePatch(t, typ, r, obj, patch) {
				quick++
			}
		}
	}
	t.Logf("%d of %d patches took the quick way", quick, all)
	if quick < all/4 {
		t.Error("too few patches took the quick way")
	}
}

func FuzzPatchWaysAgree(f *testing.F) {
	for i, body := range []string{
		`{"status":{"conditions":[{"type":"Ready","status":"True"}],"$setElementOrder/conditions":[{"type":"Ready"}]}}`,
		`{"metadata":{"labels":{"a":null,"b":"c"},"finalizers":["x"],"$setElementOrder/finalizers":["x","y"]}}`,
		`{"spec":{"containers":[{"name":"web","image":"x","env":[{"name":"A","$patch":"delete"}]}]}}`,
		`{"spec":{"replicas":3,"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`,
	} {
		f.Add(int64(i), uint(i), body)
	}
	all := stored()
	f.Fuzz(func(t *testing.T, seed int64, kind uint, body string) {
		r := all[kind%uint(len(all))]
		obj := r.New()
		sample.Fill(rand.New(rand.NewSource(seed)), obj)
		if !settle(t, obj, nil, true) {
			return // random raw extensions have no JSON to patch
		}
		comparePatch(t, codecs.PatchStrategic, r, obj, []byte(body))
		comparePatch(t, codecs.PatchMerge, r, obj, []byte(body))
	})
}

func TestDecodeTree(t *testing.T) {
	for text, want := range map[string]any{
		`{"a":1,"b":1.5,"c":[true,null,"x"],"d":{}}`: map[string]any{"a": int64(1), "b": 1.5, "c": []any{true, nil, "x"}, "d": map[string]any{}},
		` {"a":9223372036854775808} `:                map[string]any{"a": float64(9223372036854775808)},
		`{"a":1,"a":2}`:                              nil,
		`{"a":1} x`:                                  nil,
		`{"a":1}{}`:                                  nil,
		`[]`:                                         nil,
		`{"a":`:                                      nil,
		``:                                           nil,
	} {
		got, ok := decodeTree([]byte(text))
		if ok != (want != nil) || ok && !cmp.Equal(any(got), want) {
			t.Errorf("%s: %s %v", text, fmt.Sprint(got), ok)
		}
	}
}
