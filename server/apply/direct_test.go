package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/apply/internal/applytest"
	"github.com/rowlock/rowlock/server/kinds"
)

// comparePatch applies a patch as Change does, and compares the result with that of the plain form and of
// the library. It reports whether that was done directly.
func comparePatch(t *testing.T, typ string, r *kinds.Resource, current kinds.Object, body []byte) (direct bool) {
	t.Helper()
	ctx := context.Background()
	p := &Patch{Type: typ, Body: body, Strictness: codecs.Warn, JSON: codecjson.Codec{}}
	current.GetObjectKind().SetGroupVersionKind(r.GVK())
	before, _ := json.Marshal(current)
	plain, wantWarnings, wantErr := changePlainly(ctx, p, r.GVK(), current)
	out, warnings, err := p.Change(ctx, r.GVK(), current, nil)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !cmp.Equal(wantWarnings, warnings) {
		t.Fatalf("%v: %v %v, the plain form: %v %v\npatch %s\nof %s", r.GVK(), err, warnings, wantErr, wantWarnings, body, before)
	}
	_, direct = changeDirectly(p, current)
	if after, _ := json.Marshal(current); !bytes.Equal(before, after) {
		t.Fatalf("%v: the current object was changed by %s", r.GVK(), body)
	}
	if err != nil {
		if direct {
			t.Fatalf("%v: patched directly, but %v\n%s", r.GVK(), err, body)
		}
		return false
	}
	if want, got := treeOf(t, plain), treeOf(t, out); !cmp.Equal(want, got) {
		t.Fatalf("%v: the plain form (-) and Change (+) differ: %s\npatch %s\nof %s", r.GVK(), cmp.Diff(want, got), body, before)
	}
	if direct && (len(warnings) > 0 || !cmp.Equal(plain, out, cmpopts.EquateEmpty(), sameQuantity)) {
		t.Fatalf("%v: %v; the plain form (-) and directly (+) differ: %s\npatch %s\nof %s", r.GVK(), warnings, cmp.Diff(plain, out, cmpopts.EquateEmpty(), sameQuantity), body, before)
	}
	if typ == codecs.PatchStrategic && len(warnings) == 0 {
		compareLibrary(t, r, before, body, out)
	}
	return direct
}

// changePlainly is Change without changeDirectly.
func changePlainly(ctx context.Context, p *Patch, kind schema.GroupVersionKind, current runtime.Object) (runtime.Object, []string, error) {
	if p.Type == codecs.PatchStrategic {
		return p.changeTree(ctx, kind, current)
	}
	return p.changeDocument(ctx, kind, current, nil)
}

// compareLibrary compares the result of a strategic merge patch with that of the library.
func compareLibrary(t *testing.T, r *kinds.Resource, current, body []byte, got runtime.Object) {
	t.Helper()
	var live, patch map[string]any
	for text, tree := range map[*[]byte]*map[string]any{&current: &live, &body: &patch} {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(*text, tree); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(live, patch, r.New())
	if err != nil {
		t.Fatalf("%v: the library fails with %v\npatch %s\nof %s", r.GVK(), err, body, current)
	}
	want := r.New()
	text, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(text, want)
	}
	if err != nil {
		t.Fatalf("%v: the library makes %s of %s\nof %s", r.GVK(), text, body, current)
	}
	want.GetObjectKind().SetGroupVersionKind(r.GVK())
	if want, got := treeOf(t, want), treeOf(t, got); !cmp.Equal(want, got) {
		t.Fatalf("%v: the library (-) differs: %s\npatch %s\nof %s", r.GVK(), cmp.Diff(want, got), body, current)
	}
}

// sameQuantity compares the encodings: a quantity may or may not cache its text.
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

// TestDirectEqualsPlain: random changes of objects of all kinds have the same result directly, by the
// plain form, and by the library.
func TestDirectEqualsPlain(t *testing.T) {
	direct, all := 0, 0
	for _, r := range applytest.Stored() {
		for seed := range 40 {
			typ := []string{codecs.PatchStrategic, codecs.PatchMerge}[seed%2]
			obj, patch := twoWay(t, typ, rand.New(rand.NewSource(int64(seed))), r)
			if obj == nil {
				continue
			}
			all++
			if comparePatch(t, typ, r, obj, patch) {
				direct++
			}
		}
	}
	t.Logf("%d of %d patches were done directly", direct, all)
	if direct < all/8 {
		t.Error("too few patches were done directly")
	}
}

func FuzzDirectEqualsPlain(f *testing.F) {
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

const livePod = `{"metadata":{"name":"x","labels":{"a":"1"}},"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"j"}],"nodeSelector":{"z":"y"}},
"status":{"phase":"Pending","conditions":[{"type":"A","status":"True","lastProbeTime":null},{"type":"B","status":"True"},{"type":"C","status":"True"}]}}`

// TestDirectTakes: which patches are done directly, and that the plain form and the library make the same of them.
func TestDirectTakes(t *testing.T) {
	pods := applytest.Stored()[slices.IndexFunc(applytest.Stored(), func(r *kinds.Resource) bool { return r.Kind == "Pod" })]
	for _, tc := range []struct {
		name, body       string
		strategic, merge bool
	}{
		{"a value", `{"status":{"phase":"Running"}}`, true, true},
		{"nothing", ` {} `, true, true},
		{"a value goes", `{"status":{"phase":null,"conditions":null}}`, true, true},
		{"a struct that is not there", `{"spec":{"securityContext":{"runAsUser":1}}}`, true, true},
		{"an empty one", `{"spec":{"securityContext":{}}}`, true, true},
		{"times", `{"status":{"startTime":"2026-01-02T03:04:05Z"},"metadata":{"deletionTimestamp":null}}`, true, true},
		{"labels", `{"metadata":{"labels":{"a":null,"b":"2"},"annotations":{"c":"\n"}}}`, true, true},
		{"a label of none goes", `{"metadata":{"annotations":{"c":null}}}`, false, false},
		{"quantities", `{"spec":{"overhead":{"cpu":"1500m"}}}`, true, true},
		{"a quantity that is a number", `{"spec":{"overhead":{"cpu":1}}}`, true, true},
		{"one that is large", `{"spec":{"overhead":{"cpu":1e3}}}`, false, false},
		{"one in disguise", `{"spec":{"overhead":{"cpu":"1\/m"}}}`, false, false},
		{"a condition", `{"status":{"conditions":[{"type":"B","status":"False"}]}}`, true, true},
		{"two, in another order", `{"status":{"conditions":[{"type":"C","status":"False"},{"type":"A","message":"\"m\""}]}}`, true, true},
		{"a new one", `{"status":{"conditions":[{"type":"D","status":"False","lastProbeTime":null},{"type":"B"}]}}`, true, true},
		{"an order", `{"status":{"$setElementOrder/conditions":[{"type":"C"},{"type":"B"},{"type":"A"}]}}`, true, false},
		{"an order of some", `{"status":{"$setElementOrder/conditions":[{"type":"C"},{"type":"A"}],"conditions":[{"type":"A","status":"x"}]}}`, true, false},
		{"an order with new ones", `{"status":{"conditions":[{"type":"D"},{"type":"A","status":"x"}],"$setElementOrder/conditions":[{"type":"C"},{"type":"D"},{"type":"A"},{"type":"B"}]}}`, true, false},
		{"an order that is not followed", `{"status":{"conditions":[{"type":"A"},{"type":"B"}],"$setElementOrder/conditions":[{"type":"B"},{"type":"A"}]}}`, false, false},
		{"an order of what is no list", `{"spec":{"$setElementOrder/nodeName":[{"name":"a"}]}}`, false, false},
		{"an order of a list without keys", `{"spec":{"$setElementOrder/tolerations":[{"key":"a"}],"$setElementOrder/nodeSelector":[]}}`, false, false},
		{"an order with more in it", `{"status":{"$setElementOrder/conditions":[{"type":"C","type":"B"}]}}`, false, false},
		{"one that is there twice", `{"status":{"conditions":[{"type":"A"},{"type":"A"}]}}`, false, true},
		{"without its key", `{"status":{"conditions":[{"status":"A"}]}}`, false, true},
		{"containers", `{"spec":{"containers":[{"name":"b","env":[{"name":"E","value":"e"}],"ports":[{"containerPort":80}]},{"name":"a","image":null}]}}`, false, true},
		{"containers and variables", `{"spec":{"containers":[{"name":"b","env":[{"name":"E","value":"e"}]},{"name":"a","image":null}]}}`, true, true},
		{"a list that is replaced", `{"spec":{"tolerations":[{"key":"k","tolerationSeconds":3}]},"status":{"podIPs":[{"ip":"1"}]}}`, true, true},
		{"and emptied", `{"spec":{"tolerations":[]}}`, true, true},
		{"finalizers", `{"metadata":{"finalizers":["a/b"]}}`, false, true},
		{"owners", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true}]}}`, true, true},
		{"managed fields", `{"metadata":{"managedFields":[{}]}}`, false, false},
		{"kind and version", `{"kind":"Pod","apiVersion":"v1"}`, false, false},
		{"an unknown field", `{"spec":{"nodeSelectors":{}}}`, false, false},
		{"a field twice", `{"spec":{"nodeName":"a","nodeName":"b"}}`, false, false},
		{"a list twice", `{"status":{"conditions":[],"conditions":[]}}`, false, false},
		{"a list and nothing", `{"status":{"conditions":[{"type":"A"}],"conditions":null}}`, false, false},
		{"a label twice", `{"metadata":{"labels":{"a":"1","a":"2"}}}`, false, false},
		{"another type", `{"spec":{"nodeName":3}}`, false, false},
		{"a directive", `{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`, false, false},
		{"a directive in disguise", `{"metadata":{"labels":{"\u0024patch":"replace"}}}`, false, false},
		{"a fraction", `{"spec":{"priority":1.5}}`, false, false},
		{"below nothing", `{"spec":{"priority":-1}}`, false, false},
		{"a large number", `{"spec":{"priority":1000000000}}`, false, false},
		{"more behind it", `{"spec":{}}x`, false, false},
		{"cut off", `{"spec":{`, false, false},
		{"a list", `[]`, false, false},
		{"deep", `{"spec":{"volumes":` + strings.Repeat("[", 200) + `}}`, false, false},
		{"invalid text", "{\"spec\":{\"nodeName\":\"\xff\"}}", false, false},
		{"markup as Go writes it", `{"status":{"message":"a \u003c b \u0026\u003e c"},"metadata":{"annotations":{"a":"\u003e"}}}`, true, true},
		{"other escapes", `{"status":{"message":"\ud83d\ude00"}}`, false, false},
		{"other characters", `{"spec":{"nodeName":"ö"}}`, true, true},
	} {
		for typ, want := range map[string]bool{codecs.PatchStrategic: tc.strategic, codecs.PatchMerge: tc.merge} {
			obj := pods.New()
			if err := json.Unmarshal([]byte(livePod), obj); err != nil {
				t.Fatal(err)
			}
			if direct := comparePatch(t, typ, pods, obj, []byte(tc.body)); direct != want {
				t.Errorf("%s, %s: directly %v, not %v", tc.name, typ, direct, want)
			}
		}
	}
}

// TestRearrange: lists come out in the order of package strategic, whatever the order of the patch.
func TestRearrange(t *testing.T) {
	pods := applytest.Stored()[slices.IndexFunc(applytest.Stored(), func(r *kinds.Resource) bool { return r.Kind == "Pod" })]
	rnd := rand.New(rand.NewSource(1))
	some := func(of []string) []string {
		of = slices.Clone(of)
		rnd.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		return of[:rnd.Intn(len(of)+1)]
	}
	list := func(of []string) string {
		var out []string
		for _, k := range of {
			out = append(out, `{"type":"`+k+`"}`)
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	types, direct := []string{"A", "B", "C", "D", "E", "F"}, 0
	for range 2000 {
		obj := pods.New()
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"x"},"status":{"conditions":`+list(some(types))+`}}`), obj); err != nil {
			t.Fatal(err)
		}
		wanted := some(types)
		change := some(types)
		if rnd.Intn(4) > 0 { // the items of the patch follow the order
			change = slices.DeleteFunc(slices.Clone(wanted), func(string) bool { return rnd.Intn(2) == 0 })
		}
		body := `{"status":{"conditions":` + list(change) + `}}`
		if rnd.Intn(4) > 0 {
			body = `{"status":{"$setElementOrder/conditions":` + list(wanted) + `,"conditions":` + list(change) + `}}`
		}
		p := &Patch{Type: codecs.PatchStrategic, Body: []byte(body), JSON: codecjson.Codec{}}
		out, ok := changeDirectly(p, obj)
		if !ok {
			continue
		}
		direct++
		want, _, err := p.changeTree(context.Background(), pods.GVK(), obj)
		if out.GetObjectKind().SetGroupVersionKind(pods.GVK()); err != nil || !cmp.Equal(want, out, cmpopts.EquateEmpty()) {
			t.Fatalf("%v %s\n%s", err, cmp.Diff(want, out, cmpopts.EquateEmpty()), body)
		}
	}
	if direct < 500 {
		t.Errorf("%d of 2000 patches were done directly", direct)
	}
}

// TestDirectKeepsCurrent: a patch that is given up halfway has changed nothing.
func TestDirectKeepsCurrent(t *testing.T) {
	for _, r := range applytest.Stored() {
		obj := r.New()
		sample.Fill(rand.New(rand.NewSource(7)), obj)
		before := obj.DeepCopyObject()
		changeDirectly(&Patch{Type: codecs.PatchMerge, Body: []byte(`{"metadata":{"labels":{"a":"b"},"ownerReferences":[],"nothing":1}}`)}, obj)
		if !reflect.DeepEqual(before, obj) {
			t.Errorf("%v was changed", r.GVK())
		}
	}
}
