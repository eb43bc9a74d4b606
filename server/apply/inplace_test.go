package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/apply/internal/applytest"
	"github.com/rowlock/rowlock/server/kinds"
)

// comparePatch applies one patch in place, as a whole with our merge, and the standard way.
func comparePatch(t *testing.T, typ string, r *kinds.Resource, current kinds.Object, body []byte) (quick, direct bool) {
	t.Helper()
	p := &Patch{Type: typ, Body: body, Strictness: codecs.Warn, JSON: codecjson.Codec{}}
	current.GetObjectKind().SetGroupVersionKind(r.GVK())
	before, _ := json.Marshal(current)
	change := func(cfg Config) (text any, warnings []string, err error) {
		out, warnings, err := New(cfg).Change(context.Background(), p, r.GVK(), current, nil)
		if err == nil {
			text = treeOf(t, out)
		}
		return text, warnings, err
	}
	want, wantWarnings, wantErr := change(Config{StandardOnly: true})
	got, warnings, err := change(Config{})
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !cmp.Equal(wantWarnings, warnings) || !cmp.Equal(want, got) {
		t.Fatalf("%v: the standard way (-) and ours (+) differ: %v %v, not %v %v\n%s\npatch %s\nof %s",
			r.GVK(), err, warnings, wantErr, wantWarnings, cmp.Diff(want, got), body, before)
	}
	out, quick := New(Config{}).changeInPlace(context.Background(), p, current)
	if !quick {
		return false, false
	}
	if len(warnings) > 0 || err != nil {
		t.Fatalf("%v: patched in place, but %v %v\n%s", r.GVK(), err, warnings, body)
	}
	out.GetObjectKind().SetGroupVersionKind(r.GVK())
	if diff := cmp.Diff(want, treeOf(t, out)); diff != "" {
		t.Fatalf("%v: the standard way (-) and in place (+) differ:\n%s\npatch %s\nof %s", r.GVK(), diff, body, before)
	}
	if after, _ := json.Marshal(current); !bytes.Equal(before, after) {
		t.Fatalf("%v: the current object was changed by %s", r.GVK(), body)
	}
	_, direct = changeDirectly(p, current)
	byTree, ok := New(Config{}).changeByTree(context.Background(), p, current)
	if !direct || !ok {
		return true, direct
	}
	byTree.GetObjectKind().SetGroupVersionKind(r.GVK())
	if !cmp.Equal(out, byTree, cmpopts.EquateEmpty(), sameQuantity) {
		t.Fatalf("%v: by tree (-) and directly (+) differ:\n%s\npatch %s\nof %s", r.GVK(), cmp.Diff(byTree, out, cmpopts.EquateEmpty(), sameQuantity), body, before)
	}
	return true, true
}

// sameQuantity compares what is encoded: a quantity remembers its text or not.
var sameQuantity = cmp.Comparer(func(a, b resource.Quantity) bool { return a.String() == b.String() })

func treeOf(t *testing.T, obj any) (tree any) {
	t.Helper()
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// twoWay makes the patch that a client would send for a random change.
func twoWay(t *testing.T, typ string, rnd *rand.Rand, r *kinds.Resource) (kinds.Object, []byte) {
	obj := r.New()
	sample.Fill(rnd, obj)
	if !applytest.Settle(t, obj, nil, true) {
		return nil, nil
	}
	next := obj.DeepCopyObject().(kinds.Object)
	for range 1 + rnd.Intn(3) {
		applytest.Mutate(rnd, reflect.ValueOf(next).Elem(), 0)
	}
	if !applytest.Settle(t, next, nil, true) {
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
	quick, direct, all := 0, 0, 0
	for _, r := range applytest.Stored() {
		for seed := range 40 {
			typ := []string{codecs.PatchStrategic, codecs.PatchMerge}[seed%2]
			obj, patch := twoWay(t, typ, rand.New(rand.NewSource(int64(seed))), r)
			if obj == nil {
				continue
			}
			all++
			inPlace, directly := comparePatch(t, typ, r, obj, patch)
			if inPlace {
				quick++
			}
			if directly {
				direct++
			}
		}
	}
	t.Logf("%d of %d patches were done in place, %d of them directly", quick, all, direct)
	if quick < all/4 || direct < all/8 {
		t.Error("too few patches were done in place")
	}
}

func FuzzPatchWaysAgree(f *testing.F) {
	for i, body := range []string{
		`{"status":{"conditions":[{"type":"Ready","status":"True"}],"$setElementOrder/conditions":[{"type":"Ready"}]}}`,
		`{"metadata":{"labels":{"a":null,"b":"c"},"finalizers":["x"],"$setElementOrder/finalizers":["x","y"]}}`,
		`{"spec":{"containers":[{"name":"web","image":"x","env":[{"name":"A","$patch":"delete"}]}]}}`,
		`{"spec":{"replicas":3,"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"y","ports":null},{"name":"a","env":[{"name":"E","value":"1"}]}],"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}}}}`,
		`{"status":{"capacity":{"cpu":"2","memory":null},"conditions":[{"type":"b","lastProbeTime":null}],"addresses":[{"type":"x","address":"\""}]}}`,
	} {
		f.Add(int64(i), uint(i), body)
	}
	all := applytest.Stored()
	f.Fuzz(func(t *testing.T, seed int64, kind uint, body string) {
		r := all[kind%uint(len(all))]
		obj := r.New()
		sample.Fill(rand.New(rand.NewSource(seed)), obj)
		if !applytest.Settle(t, obj, nil, true) {
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
