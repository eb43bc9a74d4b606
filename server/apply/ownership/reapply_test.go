package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/apply/internal/applytest"
	"github.com/rowlock/rowlock/server/apply/ownership/fieldset"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

func marshal(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// applier returns a FieldManager whose implementations are called one by one.
func applier() *FieldManager {
	return New(Config{Schemas: schema.New(kinds.NewCatalogue(builtin.Resources())), JSON: jsoncodec.New(jsoncodec.Settings{})})
}

// applyBoth applies body with both implementations, if the planned one handles it, and returns the library's
// result; nil if that refuses.
func applyBoth(t *testing.T, m *FieldManager, r *kinds.Resource, sub string, live kinds.Object, body, manager string, now time.Time) (merged kinds.Object, quick bool) {
	t.Helper()
	before := marshal(t, live)
	var mine kinds.Object
	err := error(fieldset.ErrUnsupported)
	if tree, ok := quickTree(m.json, []byte(body)); ok {
		slow, slowErr := ReadTree([]byte(body))
		if diff := cmp.Diff(slow, tree); slowErr != nil || diff != "" {
			t.Fatalf("%s is read otherwise: %v\n%s", body, slowErr, diff)
		}
	}
	if quickText([]byte(body)) {
		mine, err = m.planned.reapply(application{resource: r, subresource: sub, live: live, body: []byte(body), codec: m.json, manager: manager, now: now})
	}
	if err == nil {
		changesAgree(t, m, r, sub, live, body)
	}
	if after := marshal(t, live); after != before {
		t.Fatalf("the live object was changed:\n%s", cmp.Diff(before, after))
	}
	tree, readErr := ReadTree([]byte(body))
	if readErr != nil {
		t.Fatal(readErr)
	}
	theirs, refused := m.standard.apply(r, sub, live.DeepCopyObject().(kinds.Object), tree, manager, false, now)
	if err != nil {
		if !errors.Is(err, fieldset.ErrUnsupported) {
			t.Fatal(err)
		}
		return theirs, false
	}
	if _, ok := quickTree(m.json, []byte(body)); !ok {
		t.Fatalf("applied as JSON, which a reader of YAML may take for something else: %s", body)
	}
	if refused != nil {
		if leavesOut(r, refused) {
			return nil, false
		}
		t.Fatalf("%v: the library refuses %s: %v", r.GVK(), body, refused)
	}
	if diff := cmp.Diff(entriesOf(t, theirs), entriesOf(t, mine)); diff != "" {
		t.Fatalf("%v: owners by the library (-) and the plan (+) differ:\n%s\n%s\nlive: %s", r.GVK(), diff, body, before)
	}
	for _, o := range []kinds.Object{theirs, mine} {
		o.SetManagedFields(slices.Clone(mine.GetManagedFields()))
	}
	text := marshal
	if pointsToExtension(reflect.TypeOf(mine), map[reflect.Type]bool{}) {
		text = sorted // the library spells its JSON anew
	}
	if diff := cmp.Diff(text(t, theirs), text(t, mine)); diff != "" {
		t.Fatalf("%v: the library (-) and the plan (+) merge otherwise:\n%s\n%s", r.GVK(), diff, body)
	}
	return mine, true
}

// changesAgree compares the changes that an overlay reports with a comparison of the object before
// and after.
func changesAgree(t *testing.T, m *FieldManager, r *kinds.Resource, sub string, live kinds.Object, body string) {
	t.Helper()
	p := m.planned.(*planned)
	plan, err := p.plans.Of(p.schemas, reflect.TypeOf(live).Elem(), resetFields(r, sub))
	if err != nil {
		t.Fatal(err)
	}
	want, merged := r.New(), live.DeepCopyObject().(kinds.Object)
	if !m.json.DecodeClean([]byte(body), want) {
		t.Fatalf("not decoded: %s", body)
	}
	mine, theirs := fieldset.NewMemory(), fieldset.NewMemory()
	defer mine.Release()
	defer theirs.Release()
	_, changes, err := plan.Overlay(mine, []byte(body), live.GetName(), live.GetNamespace(), reflect.ValueOf(merged).Elem(), reflect.ValueOf(want).Elem())
	if err != nil {
		t.Fatal(err)
	}
	compared, err := plan.Changes(theirs, reflect.ValueOf(live).Elem(), reflect.ValueOf(merged).Elem())
	if errors.Is(err, fieldset.ErrUnsupported) {
		return // of something that was left alone
	}
	if diff := cmp.Diff(string(compared.Append(nil)), string(changes.Append(nil))); err != nil || diff != "" || len(compared) != len(changes) {
		t.Fatalf("%v: a comparison (-) and the overlay (+) find other changes: %v\n%s\n%s", r.GVK(), err, diff, body)
	}
}

// varied changes some scalars of a plain value at random, and sometimes leaves something out.
func varied(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if item := v[k]; r.Intn(60) > 0 {
				out[k] = varied(r, item)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, varied(r, item))
		}
		return out
	case string:
		if r.Intn(12) == 0 {
			return v + "x"
		}
	case bool:
		return v != (r.Intn(8) == 0)
	case float64:
		if r.Intn(8) == 0 {
			return v + 1
		}
	}
	return v
}

// patchOf returns the configuration that a manager applies to have obj.
func patchOf(t *testing.T, r *kinds.Resource, obj kinds.Object) map[string]any {
	var tree map[string]any
	if err := json.Unmarshal([]byte(marshal(t, obj)), &tree); err != nil {
		t.Fatal(err)
	}
	tree["apiVersion"], tree["kind"] = r.APIVersion(), r.Kind
	delete(tree, "status")
	metadata, _ := tree["metadata"].(map[string]any)
	tree["metadata"] = map[string]any{"name": "x"}
	for _, name := range []string{"labels", "annotations", "namespace"} {
		if v, ok := metadata[name]; ok {
			tree["metadata"].(map[string]any)[name] = v
		}
	}
	return pruned(tree).(map[string]any)
}

// pruned leaves out what no client applies: nulls and empty values.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			if v[k] = pruned(item); v[k] == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		v = slices.DeleteFunc(v, func(item any) bool { return pruned(item) == nil })
		if len(v) == 0 {
			return nil
		}
		return v
	}
	return v
}

// reapplying returns the life of one random object: applied, written by others, applied again.
func reapplying(t *testing.T, m *FieldManager, r *kinds.Resource, seed int64, steps int) (quick, all int) {
	rnd := rand.New(rand.NewSource(seed))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	obj := r.New()
	sample.Fill(rnd, obj)
	release.Default.View().Clear(obj)
	if !applytest.Settle(t, obj, nil, false) {
		return 0, 0
	}
	tree := patchOf(t, r, obj)
	body := marshal(t, tree)
	parsed, err := ReadTree([]byte(body))
	if err != nil {
		return 0, 0
	}
	live, err := m.standard.apply(r, "", r.New(), parsed, "controller", false, now)
	if err != nil {
		return 0, 0 // random values, such as a list with duplicate keys
	}
	for range steps {
		live.SetUID("7")
		now = now.Add(time.Duration(rnd.Intn(3)) * time.Second)
		if rnd.Intn(3) == 0 {
			next := live.DeepCopyObject().(kinds.Object)
			applytest.Mutate(rnd, reflect.ValueOf(next).Elem(), 0)
			if !applytest.Settle(t, next, live.GetManagedFields(), true) || m.AfterUpdate(r, "", live, next, "other", now) != nil {
				return quick, all
			}
			live = next
		}
		next := varied(rnd, tree).(map[string]any)
		merged, ok := applyBoth(t, m, r, "", live, marshal(t, next), "controller", now)
		if all++; ok {
			quick++
		}
		if merged != nil {
			live, tree = merged, next
		}
	}
	return quick, all
}

func TestReapplyEqualsLibrary(t *testing.T) {
	m := applier()
	ofAllStored(t, 8, 20, func(r *kinds.Resource, seed int64) (quick, all int) { return reapplying(t, m, r, seed, 6) })
}

func FuzzReapplyEqualsLibrary(f *testing.F) {
	m := applier()
	all := applytest.Stored()
	f.Add(int64(1), uint(11))
	f.Fuzz(func(t *testing.T, seed int64, kind uint) { reapplying(t, m, all[kind%uint(len(all))], seed, 4) })
}

const appliedDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"app":"d","tier":"back"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"d"}},
"template":{"metadata":{"labels":{"app":"d"}},"spec":{"serviceAccountName":"s","containers":[{"name":"main","image":"app:1","args":["--a","--b"],"env":[{"name":"MODE","value":"fast"},{"name":"AT","value":"n"}],
"ports":[{"name":"http","containerPort":8080}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"readinessProbe":{"httpGet":{"path":"/z","port":8080}}}]}}}}`

// deployed returns a Deployment that "m" has applied, as it is stored.
func deployed(t testing.TB, m *FieldManager) (*kinds.Resource, *appsv1.Deployment) {
	r := m.schemas.Catalogue().Lookup("apps", "v1", "deployments")
	tree, err := ReadTree([]byte(appliedDeployment))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := m.standard.apply(r, "", r.New(), tree, "m", false, time.Unix(1000, 0))
	if err != nil {
		t.Fatal(err)
	}
	d := obj.(*appsv1.Deployment)
	d.UID, d.Spec.Template.Spec.RestartPolicy, d.Spec.Template.Spec.Containers[0].Ports[0].Protocol = "7", "Always", "TCP"
	return r, d
}

// TestReapplyTakes: the planned implementation handles these applies, with the same results.
func TestReapplyTakes(t *testing.T) {
	m := applier()
	r, live := deployed(t, m)
	shared := live.DeepCopy()
	shared.Spec.Template.Spec.Containers[0].Image = "app:1"
	shared.ManagedFields = append(shared.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "b", Operation: "Apply", APIVersion: "apps/v1", FieldsType: "FieldsV1", Time: shared.ManagedFields[0].Time,
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`)},
	})
	kubectl := live.DeepCopy()
	kubectl.Annotations = map[string]string{lastApplied: "{}"}
	kubectl.ManagedFields[0].Manager = "kubectl"
	for _, tc := range []struct {
		name     string
		live     kinds.Object
		manager  string
		old, new string
		want     bool
	}{
		{"nothing new", live, "m", "", "", true},
		{"an image", live, "m", "app:1", "app:2", true},
		{"a number", live, "m", `"replicas":3`, `"replicas":4`, true},
		{"a quantity", live, "m", "100m", "200m", true},
		{"a quantity spelled otherwise", live, "m", "100m", "0.1", false},
		{"a port of either type", live, "m", `"port":8080`, `"port":"http"`, true},
		{"what is replaced as a whole", live, "m", `["--a","--b"]`, `["--c"]`, true},
		{"a selector", live, "m", `"matchLabels":{"app":"d"}`, `"matchLabels":{"app":"e"}`, true},
		{"a field less", live, "m", `"serviceAccountName":"s",`, ``, false},
		{"a field more", live, "m", `"replicas":3`, `"replicas":3,"paused":false`, false},
		{"null", live, "m", `"replicas":3`, `"replicas":null`, false},
		{"another name", live, "m", `"name":"d"`, `"name":"e"`, false},
		{"another version", live, "m", `apps/v1`, `apps/v2`, false},
		{"another order", live, "m", `{"name":"MODE","value":"fast"},{"name":"AT","value":"n"}`, `{"name":"AT","value":"n"},{"name":"MODE","value":"fast"}`, false},
		{"YAML", live, "m", `"replicas":3`, `replicas: 3`, false},
		{"a fraction", live, "m", `"replicas":3`, `"replicas":3.0`, false},
		{"escapes", live, "m", `"value":"fast"`, `"value":"\u003c\n\"\\"`, true},
		{"a slash that is escaped", live, "m", `"path":"/z"`, `"path":"\/z"`, false},
		{"other characters", live, "m", `"value":"fast"`, `"value":"schnöll"`, false},
		{"another manager", live, "n", "", "", false},
		{"shared, unchanged", shared, "m", `"replicas":3`, `"replicas":4`, true},
		{"shared, changed", shared, "m", "app:1", "app:2", false},
		{"kubectl's annotation", kubectl, "kubectl", "", "", false},
	} {
		tc.live.SetName("d")
		body := strings.Replace(appliedDeployment, tc.old, tc.new, 1)
		ok := quickText([]byte(body))
		if ok {
			_, err := m.planned.reapply(application{resource: r, live: tc.live, body: []byte(body), codec: m.json, manager: tc.manager, now: time.Unix(2000, 0)})
			ok = err == nil
		}
		if ok != tc.want {
			t.Errorf("%s: taken %v, not %v", tc.name, ok, tc.want)
		}
		if ok {
			applyBoth(t, m, r, "", tc.live, body, tc.manager, time.Unix(2000, 0))
		}
	}
}

// TestApplyImplementations: which way is counted.
func TestApplyImplementations(t *testing.T) {
	var counted []string
	m := applier()
	m.count = func(way string) { counted = append(counted, way) }
	r, live := deployed(t, m)
	live.Name = "d"
	for _, tc := range []struct {
		live    kinds.Object
		manager string
	}{{nil, "m"}, {live, "m"}, {live, "n"}} {
		if _, _, err := m.Apply(r, "", tc.live, []byte(appliedDeployment), tc.manager, true, time.Unix(2000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	m.planned = &broken{}
	for range 2 {
		if _, _, err := m.Apply(r, "", live, []byte(appliedDeployment), "m", true, time.Unix(2000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(counted), "[standard planned standard failed standard standard]"; got != want {
		t.Errorf("counted %s, not %s", got, want)
	}
}

func BenchmarkReapply(b *testing.B) {
	benchmarkWays(b, func(b *testing.B, m *FieldManager) {
		m.json = jsoncodec.New(jsoncodec.Settings{})
		r, live := deployed(b, m)
		bodies := [][]byte{[]byte(appliedDeployment), []byte(strings.Replace(appliedDeployment, "app:1", "app:2", 1))}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, _, err := m.Apply(r, "", live, bodies[i%2], "m", false, time.Unix(2000, 0)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// sorted is JSON with the names of all objects in order.
func sorted(t testing.TB, obj any) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(marshal(t, obj)), &v); err != nil {
		t.Fatal(err)
	}
	return marshal(t, v)
}

// pointsToExtension reports whether an extension is behind a pointer in a type.
func pointsToExtension(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer:
		return t.Elem() == reflect.TypeFor[runtime.RawExtension]() || pointsToExtension(t.Elem(), seen)
	case reflect.Slice, reflect.Map:
		return pointsToExtension(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if pointsToExtension(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
