package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/apply/internal/applytest"
	"github.com/rowlock/rowlock/server/apply/ownership/fieldset"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

func newManager() *FieldManager {
	return New(Config{Schemas: schema.New(kinds.NewCatalogue(builtin.Resources()))})
}

// entriesOf spells entries so that equal ownership is equal text.
func entriesOf(t *testing.T, obj kinds.Object) []string {
	t.Helper()
	var out []string
	for _, e := range obj.GetManagedFields() {
		var set fieldpath.Set
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.Raw)); err != nil {
			t.Fatal(err)
		}
		text := ""
		set.Iterate(func(p fieldpath.Path) { text += p.String() + "\n" })
		at := "never"
		if e.Time != nil {
			at = e.Time.UTC().Format(time.RFC3339)
		}
		out = append(out, fmt.Sprintf("%s %s %s %q %s %s\n%s", e.Manager, e.Operation, e.APIVersion, e.Subresource, at, e.FieldsType, text))
	}
	return out
}

// changeOf shows the JSON of two objects, for failures.
func changeOf(a, b kinds.Object) string {
	a, b = a.DeepCopyObject().(kinds.Object), b.DeepCopyObject().(kinds.Object)
	a.SetManagedFields(nil)
	b.SetManagedFields(nil)
	x, _ := json.MarshalIndent(a, "", " ")
	y, _ := json.MarshalIndent(b, "", " ")
	return cmp.Diff(string(x), string(y)) + cmp.Diff(a, b)
}

// leavesOut reports whether the library complains about what an endpoint leaves as it was, and
// plans do not look at.
func leavesOut(r *kinds.Resource, complaint error) bool {
	return slices.ContainsFunc(r.Storage.ResetFields, func(f string) bool { return strings.Contains(complaint.Error(), " ."+f+".") })
}

// bothWays runs one write with both implementations and returns the object with what the library makes of
// it, and whether the planned implementation handled it.
func bothWays(t *testing.T, m *FieldManager, r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) (result kinds.Object, planned bool) {
	t.Helper()
	old.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.SetManagedFields(nil)
	mine := obj.DeepCopyObject().(kinds.Object)
	w := write{resource: r, subresource: sub, old: old, new: mine, entries: old.GetManagedFields(), fromOld: true, manager: manager, now: now}
	entries, err := m.planned.track(w)
	planned = !errors.Is(err, fieldset.ErrUnsupported)
	if planned && err != nil {
		t.Fatal(err)
	}
	mine.SetManagedFields(entries)

	w.new = obj
	entries, err = m.standard.track(w)
	obj.SetManagedFields(entries)
	if !planned {
		return obj, false
	}
	if err != nil {
		if leavesOut(r, err) {
			return obj, false
		}
		t.Fatalf("%v: no error for what the library refuses: %v", r.GVK(), err)
	}
	if diff := cmp.Diff(entriesOf(t, obj), entriesOf(t, mine)); diff != "" {
		t.Fatalf("%v %q by %s: library (-) and plan (+) differ:\n%s\nchange:\n%s", r.GVK(), sub, manager, diff, changeOf(old, obj))
	}
	obj.SetManagedFields(mine.GetManagedFields())
	return obj, true
}

func differential(t *testing.T, m *FieldManager, r *kinds.Resource, seed int64, steps int) (quick, all int) {
	rnd := rand.New(rand.NewSource(seed))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	obj := r.New()
	sample.Fill(rnd, obj)
	release.Default.View().Clear(obj)
	if !applytest.Settle(t, obj, nil, false) {
		return 0, 0
	}
	live, ok := bothWays(t, m, r, "", r.New(), obj, "creator", now)
	count := func(ok bool) {
		all++
		if ok {
			quick++
		}
	}
	count(ok)
	for range steps {
		live.SetUID("7")
		next := live.DeepCopyObject().(kinds.Object)
		for range rnd.Intn(3) {
			applytest.Mutate(rnd, reflect.ValueOf(next).Elem(), 0)
		}
		if !applytest.Settle(t, next, live.GetManagedFields(), true) {
			return quick, all
		}
		now = now.Add(time.Duration(rnd.Intn(3)) * time.Second)
		sub := ""
		if rnd.Intn(2) == 0 && r.Sub("status") != nil {
			sub = "status"
		}
		if len(live.GetManagedFields()) == 0 {
			return quick, all
		}
		live, ok = bothWays(t, m, r, sub, live, next, fmt.Sprint("m", rnd.Intn(14)), now)
		count(ok)
	}
	return quick, all
}

func TestPlansEqualLibrary(t *testing.T) {
	m := newManager()
	ofAllStored(t, 5, 3, func(r *kinds.Resource, seed int64) (quick, all int) { return differential(t, m, r, seed, 12) })
}

// ofAllStored runs something for each kind, with so many seeds: of the writes that it counts, the
// planned implementation must have handled at least one in least.
func ofAllStored(t *testing.T, rounds, least int, run func(r *kinds.Resource, seed int64) (quick, all int)) {
	t.Helper()
	if testing.Short() {
		rounds = 2
	}
	quick, all := 0, 0
	for _, r := range applytest.Stored() {
		for seed := range rounds {
			q, a := run(r, int64(seed))
			quick, all = quick+q, all+a
		}
	}
	t.Logf("%d of %d writes were planned", quick, all)
	if quick < all/least {
		t.Errorf("only %d of %d writes were planned", quick, all)
	}
}

func FuzzPlansEqualLibrary(f *testing.F) {
	m := newManager()
	all := applytest.Stored()
	f.Add(int64(1), uint(11))
	f.Fuzz(func(t *testing.T, seed int64, kind uint) {
		differential(t, m, all[kind%uint(len(all))], seed, 6)
	})
}

func configMap() *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"app": "web"}}, Data: map[string]string{}}
	for i := range 8 {
		cm.Data[fmt.Sprint("key-", i)] = "a value of about one hundred bytes, more or less, to make the object one kilobyte in all....."
	}
	return cm
}

// ways are the two implementations of FieldManager, for benchmarks.
var ways = map[string]Config{Planned: {}, Standard: {StandardOnly: true}}

func benchmarkWays(b *testing.B, run func(b *testing.B, m *FieldManager)) {
	for way, cfg := range ways {
		cfg.Schemas = schema.New(kinds.NewCatalogue(builtin.Resources()))
		b.Run(way, func(b *testing.B) { run(b, New(cfg)) })
	}
}

func BenchmarkCreateConfigMap(b *testing.B) { benchmarkWays(b, benchmarkCreateConfigMap) }

func benchmarkCreateConfigMap(b *testing.B, m *FieldManager) {
	r := m.schemas.Catalogue().Lookup("", "v1", "configmaps")
	now := time.Now()
	b.ReportAllocs()
	cm := configMap()
	for b.Loop() {
		cm.ManagedFields = nil
		if err := m.AfterCreate(r, "", cm, "bench", now); err != nil {
			b.Fatal(err)
		}
	}
}

func pod() *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", Labels: map[string]string{"app": "web", "tier": "front"}},
		Spec: corev1.PodSpec{
			RestartPolicy: "Always", DNSPolicy: "ClusterFirst", SchedulerName: "default-scheduler", NodeName: "n1",
			SecurityContext: &corev1.PodSecurityContext{}, ServiceAccountName: "default",
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
		Status: corev1.PodStatus{Phase: "Pending", QOSClass: "BestEffort"},
	}
	for _, name := range []string{"web", "sidecar"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example/" + name + ":1", ImagePullPolicy: "IfNotPresent",
			Env:                    []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			Ports:                  []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: "TCP"}},
			VolumeMounts:           []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File",
		})
	}
	return p
}

func BenchmarkPodStatus(b *testing.B) { benchmarkWays(b, benchmarkPodStatus) }

func benchmarkPodStatus(b *testing.B, m *FieldManager) {
	r := m.schemas.Catalogue().Lookup("", "v1", "pods")
	now := time.Now()
	old := pod()
	if err := m.AfterCreate(r, "", old, "creator", now); err != nil {
		b.Fatal(err)
	}
	old.UID = "1"
	next := old.DeepCopy()
	next.Status.Phase = "Running"
	next.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	next.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: metav1.Now()}, {Type: "Initialized", Status: "True"}}
	if err := m.AfterUpdate(r, "status", old, next, "kubelet", now); err != nil {
		b.Fatal(err)
	}
	third := next.DeepCopy()
	third.Spec = next.Spec // as a status endpoint leaves it
	third.Status.Conditions[0].Status = "False"
	b.ReportAllocs()
	for b.Loop() {
		third.ManagedFields = nil
		if err := m.AfterUpdate(r, "status", next, third, "kubelet", now); err != nil {
			b.Fatal(err)
		}
	}
	if len(third.ManagedFields) != 2 {
		b.Fatal(third.ManagedFields)
	}
}

// TestCreatedFromNothing: a create is compared with one empty object for all of its type, which stays
// empty, whichever way is taken, and that makes no difference.
func TestCreatedFromNothing(t *testing.T) {
	m := applier()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, r := range applytest.Stored() {
		rnd := rand.New(rand.NewSource(int64(i)))
		obj := r.New()
		sample.Fill(rnd, obj)
		release.Default.View().Clear(obj)
		if !applytest.Settle(t, obj, nil, false) {
			continue
		}
		sent := []metav1.ManagedFieldsEntry{{Manager: "a", Operation: "Update", APIVersion: r.APIVersion(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:a":{}}}}`)}}}
		for _, entries := range [][]metav1.ManagedFieldsEntry{nil, sent} { // planned, and by the library
			mine, theirs := obj.DeepCopyObject().(kinds.Object), obj.DeepCopyObject().(kinds.Object)
			mine.SetManagedFields(entries)
			theirs.SetManagedFields(slices.Clone(entries))
			err, wantErr := m.AfterCreate(r, "", mine, "m", now), m.AfterUpdate(r, "", r.New(), theirs, "m", now)
			if diff := cmp.Diff(entriesOf(t, theirs), entriesOf(t, mine)); (err == nil) != (wantErr == nil) || diff != "" {
				t.Errorf("%v: %v, not %v: %s", r.GVK(), err, wantErr, diff)
			}
		}
	}
	m.blank.Range(func(of, obj any) bool {
		if !reflect.ValueOf(obj).Elem().IsZero() {
			t.Errorf("%v: a shared value was changed: %s", of, marshal(t, obj))
		}
		return true
	})
	r := m.schemas.Catalogue().Lookup("", "v1", "pods")
	if m.nothing(r, r.New()) != m.nothing(r, r.New()) {
		t.Error("there are several for one type")
	}
}
