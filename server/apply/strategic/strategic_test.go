package strategic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/apply/strategic"
)

func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func work(ctx context.Context) *budget.Budget { return budget.New(ctx, "the patch") }

var pod = reflect.TypeFor[corev1.Pod]()

// library returns the merge of apimachinery. Merge promises an error where it panics: on keys and items of
// lists that cannot be compared, and on null among items of one type.
func library(live, patch map[string]any) (out map[string]any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			switch text := fmt.Sprint(reason); {
			case strings.Contains(text, "uncomparable"), strings.Contains(text, "unhashable"):
				err = strategic.ErrNoScalar
			case strings.Contains(text, "nil pointer"):
				err = errors.New("list element types are not identical")
			default:
				panic(reason)
			}
		}
	}()
	return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(live, patch, strategicpatch.PatchMetaFromStruct{T: pod})
}

// compare merges with Merge and with the library.
func compare(t *testing.T, live, patch string) {
	t.Helper()
	want, wantErr := library(tree(t, live), tree(t, patch))
	got, err := strategic.Merge(nil, tree(t, live), tree(t, patch), pod)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("error %v, the library's %v\nof   %s\nwith %s", err, wantErr, live, patch)
	}
	if err == nil && !cmp.Equal(want, got) {
		t.Fatalf("differs (-library):\n%s\nof   %s\nwith %s", cmp.Diff(want, got), live, patch)
	}
}

func TestStrategic(t *testing.T) {
	const live = `{"kind":"Pod","metadata":{"name":"p","labels":{"a":"1","b":"2"},"finalizers":["x/a","x/b","x/c"],"ownerReferences":[{"uid":"1","name":"n"}]},
		"spec":{"containers":[{"name":"a","image":"i","env":[{"name":"A","value":"1"},{"name":"B"}]},{"name":"b"},{"name":"c","ports":[{"containerPort":80,"protocol":"TCP"}]}],
		"volumes":[{"name":"v","emptyDir":{}},{"name":"w","secret":{"secretName":"s"}}],"tolerations":[{"key":"a"}],"nodeSelector":{"n":"1"},"replicas":null},
		"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Initialized","status":"True"}],"podIPs":[{"ip":"1"},{"ip":"2"}]}}`
	for _, patch := range []string{
		`{}`, `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"a":null,"c":"3"}}}`, `{"metadata":{"labels":{"$patch":"replace","z":"1"}}}`, `{"metadata":{"labels":{"$patch":"delete"}}}`,
		`{"$patch":"nonsense"}`, `{"metadata":{"labels":{"$patch":{"a":1}}}}`, `{"metadata":5}`, `{"metadata":[1]}`, `{"unknown":{"a":null,"b":[{"$patch":"delete"},{"x":null}]}}`, `{"unknown":[1]}`,
		`{"metadata":{"finalizers":["x/d","x/a"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/b"],"finalizers":["x/d"],"$setElementOrder/finalizers":["x/d","x/c"]}}`,
		`{"metadata":{"$deleteFromPrimitiveList":["x/b"]}}`, `{"metadata":{"$deleteFromPrimitiveListfinalizers/":["x/b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/none":["x/b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":null}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":[{"a":1}]}}`, `{"metadata":{"$deleteFromPrimitiveList/name":"q"}}`, `{"metadata":{"$deleteFromPrimitiveList/ownerReferences":[{"uid":"1"}]}}`,
		`{"metadata":{"$setElementOrder/finalizers":["x/c","x/a"]}}`, `{"metadata":{"$setElementOrder/finalizers":["x/c"],"finalizers":["x/a"]}}`, `{"metadata":{"$setElementOrder/finalizers":"x"}}`, `{"metadata":{"$setElementOrder":[]}}`,
		`{"metadata":{"$setElementOrder/labels":[]}}`, `{"metadata":{"$setElementOrder/managedFields":[]}}`, `{"metadata":{"$setElementOrder/finalizers":[{"a":1}]}}`, `{"metadata":{"finalizers":[1]}}`, `{"metadata":{"finalizers":[null]}}`, `{"metadata":{"finalizers":[["a"]]}}`, `{"metadata":{"finalizers":[]}}`,
		`{"spec":{"containers":[{"name":"b","image":"x"},{"name":"z"}]}}`, `{"spec":{"containers":[{"image":"x"}]}}`, `{"spec":{"containers":[{"name":{"a":1}}]}}`, `{"spec":{"containers":["a"]}}`,
		`{"spec":{"containers":[{"name":"b","$patch":"delete"}]}}`, `{"spec":{"containers":[{"name":"q","$patch":"delete"}]}}`, `{"spec":{"containers":[{"$patch":"delete"}]}}`, `{"spec":{"containers":[{"$patch":"merge"}]}}`, `{"spec":{"containers":[{"$patch":"x"}]}}`,
		`{"spec":{"containers":[{"$patch":"replace"},{"name":"z"}]}}`, `{"spec":{"containers":[{"name":"z"},{"$patch":"replace"}],"$setElementOrder/containers":[{"name":"z"}]}}`, `{"spec":{"containers":[{"$patch":"replace"},{"name":"z"}],"$setElementOrder/containers":[{"name":"z"}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"b"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"new"},{"name":"a"}],"containers":[{"name":"new","image":"n"},{"name":"b","$patch":"delete"}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"image":"c"}]}}`, `{"spec":{"$setElementOrder/containers":["c"]}}`, `{"spec":{"$setElementOrder/initContainers":[{"name":"c"}],"initContainers":[{"name":"c","$retainKeys":["name"]}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a","env":[{"name":"B","value":"2"},{"name":"C"}],"$setElementOrder/env":[{"name":"C"},{"name":"B"}]}]}}`,
		`{"spec":{"volumes":[{"name":"v","$retainKeys":["name","secret"],"secret":{"secretName":"t"}}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":["name"],"secret":{}}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":"name"}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":[1,"name"]}]}}`,
		`{"spec":{"$retainKeys":["containers"],"containers":[]}}`, `{"spec":{"tolerations":[{"key":"b"}]}}`, `{"spec":{"$setElementOrder/tolerations":[{"key":"b"}]}}`, `{"spec":{"tolerations":[{"key":"b","$patch":"delete"}]}}`, `{"spec":{"nodeSelector":{"n":{"a":null}}}}`, `{"spec":{"Containers":[{"name":"a"}]}}`,
		`{"status":{"conditions":[{"type":"Initialized","status":"False"},{"type":"Ready","status":"True"}],"$setElementOrder/conditions":[{"type":"Initialized"},{"type":"Ready"}]}}`, `{"status":{"podIPs":[{"ip":"2"},{"ip":"3"}],"$setElementOrder/podIPs":[{"ip":"3"},{"ip":"2"}]}}`,
		`{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80,"name":"x"},{"containerPort":81}]}]}}`, `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80.5}]}]}}`, `{"spec":{"replicas":1}}`,
	} {
		compare(t, live, patch)
	}
}

// TestRandom merges random trees that share few names.
func TestRandom(t *testing.T) {
	for seed := range 4_000 {
		rnd := rand.New(rand.NewSource(int64(seed)))
		compare(t, randomPod(rnd, false), randomPod(rnd, true))
	}
}

func randomPod(rnd *rand.Rand, patch bool) string {
	spec, meta, status := map[string]any{}, map[string]any{}, map[string]any{}
	random := func(into map[string]any, name, key string) {
		if rnd.Intn(3) == 0 {
			return
		}
		words := strings.Split("a b c d e f g", " ")
		if !patch {
			words = append(words, "h", "i") // for the patch to delete
		}
		rnd.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		words = words[:rnd.Intn(len(words))]
		items, order, deleted := []any{}, []any{}, map[string]bool{}
		for _, w := range words {
			if key == "" {
				items, order = append(items, w), append(order, w)
				continue
			}
			item := map[string]any{key: w, "image": fmt.Sprint(rnd.Intn(3))}
			if patch && rnd.Intn(4) == 0 {
				item, deleted[w] = map[string]any{key: w, "$patch": "delete"}, true
			} else {
				order = append(order, map[string]any{key: w})
			}
			items = append(items, item)
		}
		into[name] = items
		if patch && rnd.Intn(2) == 0 && len(order) > 0 {
			for _, w := range strings.Split("a b c d e f g", " ") {
				if rnd.Intn(3) == 0 && !deleted[w] {
					var more any = w
					if key != "" {
						more = map[string]any{key: w}
					}
					if !strings.Contains(fmt.Sprint(order), fmt.Sprint(more)) {
						i := rnd.Intn(len(order) + 1)
						order = append(order[:i:i], append([]any{more}, order[i:]...)...)
					}
				}
			}
			into["$setElementOrder/"+name] = order
			if rnd.Intn(3) == 0 {
				delete(into, name)
			}
		}
		if patch && key == "" && rnd.Intn(3) == 0 {
			into["$deleteFromPrimitiveList/"+name] = []any{"h", "i"}
		}
	}
	random(spec, "containers", "name")
	random(spec, "tolerations", "")
	random(meta, "finalizers", "")
	random(status, "conditions", "type")
	text, err := json.Marshal(map[string]any{"metadata": meta, "spec": spec, "status": status})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestLongLists takes lists through every way at a length at which comparing each item
// with each would take minutes.
func TestLongLists(t *testing.T) {
	const n = 100_000
	env, back, names, order := make([]any, n), make([]any, n), make([]any, n), make([]any, n)
	for i := range n {
		env[i] = map[string]any{"name": fmt.Sprint(i), "value": "1"}
		back[i] = map[string]any{"name": fmt.Sprint(n - 1 - i), "value": "2"}
		order[i] = map[string]any{"name": fmt.Sprint(n - 1 - i)}
		names[i] = fmt.Sprint(n - 1 - i)
	}
	live := map[string]any{"metadata": map[string]any{"finalizers": append([]any{}, names...)}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "env": env}}}}
	patch := map[string]any{
		"metadata": map[string]any{"finalizers": append([]any{}, names...), "$setElementOrder/finalizers": names, "$deleteFromPrimitiveList/finalizers": names[1:]},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "env": back, "$setElementOrder/env": order}}},
	}
	got, err := strategic.Merge(work(context.Background()), live, patch, pod)
	if err != nil {
		t.Fatal(err)
	}
	if f := got["metadata"].(map[string]any)["finalizers"].([]any); len(f) != 1 || f[0] != names[0] {
		t.Errorf("%d finalizers are left", len(f))
	}
	out := got["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["env"].([]any)
	if len(out) != n || !cmp.Equal(out[0], any(map[string]any{"name": fmt.Sprint(n - 1), "value": "2"})) {
		t.Errorf("%d items, first %v", len(out), out[0])
	}
}

// FuzzStrategic: whatever a patch is, the merge ends, with a result or an error.
func FuzzStrategic(f *testing.F) {
	f.Add(`{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":["c"],"$setElementOrder/finalizers":["c","a"]}}`)
	f.Add(`{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"b","$patch":"delete"},{"$patch":"replace"}]}}`)
	f.Fuzz(func(t *testing.T, live, patch string) {
		var a, b map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(live), &a) != nil || kjson.UnmarshalCaseSensitivePreserveInts([]byte(patch), &b) != nil || a == nil || b == nil {
			return
		}
		if out, err := strategic.Merge(nil, a, b, pod); (out == nil) == (err == nil) {
			t.Errorf("%v, %v", out, err)
		}
	})
}

// FuzzEqualsLibrary: random objects and patches without surprises come out as from the library.
func FuzzEqualsLibrary(f *testing.F) {
	f.Add(int64(4001))
	f.Fuzz(func(t *testing.T, seed int64) {
		rnd := rand.New(rand.NewSource(seed))
		compare(t, randomPod(rnd, false), randomPod(rnd, true))
	})
}

// TestWork: the merge refuses patches that would take minutes, while it runs, and accepts long lists.
func TestWork(t *testing.T) {
	env := func(n int, value string) []any {
		out := make([]any, n)
		for i := range n {
			out[i] = map[string]any{"name": fmt.Sprint(value, i), "value": value}
		}
		return out
	}
	pods := func(n int, env func() []any) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"name": "a", "env": env()}
		}
		return map[string]any{"spec": map[string]any{"containers": list}}
	}
	for _, tc := range []struct {
		name        string
		live, items int // variables of the only container of the object, and of each of the patch
		same        int // containers with one name in the patch
		done        bool
	}{
		{"an ordinary patch", 100, 20, 1, true},
		{"one container twenty times", 100, 2, 20, true},
		{"a long list", 6000, 6000, 1, true},
		{"one container many times", 5000, 1, 20_000, false},
		{"one container thousands of times", 1, 10, 3000, true},
	} {
		live := pods(1, func() []any { return env(tc.live, "a") })
		patch := pods(tc.same, func() []any { return env(tc.items, "b") })
		_, err := strategic.Merge(work(context.Background()), live, patch, pod)
		if tc.done && err != nil || !tc.done && !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	live, patch := pods(1, func() []any { return env(6000, "a") }), pods(1, func() []any { return env(100, "b") })
	if _, err := strategic.Merge(work(ctx), live, patch, pod); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on when the request has ended: %v", err)
	}
}

// BenchmarkOrder merges lists of variables of which each changes, into another order.
func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				env, order := make([]any, n), make([]any, n)
				for i := range n {
					env[i] = map[string]any{"name": fmt.Sprint(i), "value": "1"}
					order[i] = map[string]any{"name": fmt.Sprint(n - 1 - i)}
				}
				change := make([]any, n)
				for i := range n {
					change[i] = map[string]any{"name": fmt.Sprint(n - 1 - i), "value": "2"}
				}
				live := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "env": env}}}}
				patch := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "env": change, "$setElementOrder/env": order}}}}
				b.StartTimer()
				if _, err := strategic.Merge(nil, live, patch, pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
