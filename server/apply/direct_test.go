package apply

import (
	"context"
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/apply/internal/applytest"
	"github.com/rowlock/rowlock/server/kinds"
)

const livePod = `{"metadata":{"name":"x","labels":{"a":"1"}},"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"j"}],"nodeSelector":{"z":"y"}},
"status":{"phase":"Pending","conditions":[{"type":"A","status":"True","lastProbeTime":null},{"type":"B","status":"True"},{"type":"C","status":"True"}]}}`

// TestDirectTakes: which patches are done directly, and that all ways make the same of them.
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
		{"other characters", `{"spec":{"nodeName":"ö"}}`, true, true},
	} {
		for typ, want := range map[string]bool{codecs.PatchStrategic: tc.strategic, codecs.PatchMerge: tc.merge} {
			obj := pods.New()
			if err := json.Unmarshal([]byte(livePod), obj); err != nil {
				t.Fatal(err)
			}
			if _, direct := comparePatch(t, typ, pods, obj, []byte(tc.body)); direct != want {
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
		if rnd.Intn(4) > 0 { // what is in the patch follows the order
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
		want, ok := New(Config{}).changeByTree(context.Background(), p, obj)
		if !ok || !cmp.Equal(want, out, cmpopts.EquateEmpty()) {
			t.Fatalf("%v %s\n%s", ok, cmp.Diff(want, out, cmpopts.EquateEmpty()), body)
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
