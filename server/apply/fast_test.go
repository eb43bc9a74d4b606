package apply

import (
	"bytes"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
)

func newOwnership() *Ownership {
	return New(schema.New(kinds.NewCatalogue(builtin.Resources())))
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

// track runs one write through both ways and returns the object of the merge library.
func track(t *testing.T, o *Ownership, r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) (result kinds.Object, wasFast bool) {
	t.Helper()
	old.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.SetManagedFields(nil)
	mine := obj.DeepCopyObject().(kinds.Object)
	entries := old.GetManagedFields()
	fast, err := o.fast(r, sub, old, mine, entries, manager, now)
	if err != nil {
		t.Fatal(err)
	}
	obj.SetManagedFields(entries)
	exactErr := o.exact.update(r, sub, old, obj, manager, now)
	if exactErr != nil {
		obj.SetManagedFields(nil)
	}
	if !fast {
		return obj, false
	}
	if exactErr != nil {
		for _, f := range r.Storage.ResetFields {
			if strings.Contains(exactErr.Error(), " ."+f+".") {
				return obj, false // plans do not look at what this endpoint leaves as it was
			}
		}
		t.Fatalf("%v: no error for what the library refuses: %v", r.GVK(), exactErr)
	}
	if diff := cmp.Diff(entriesOf(t, obj), entriesOf(t, mine)); diff != "" {
		t.Fatalf("%v %q by %s: library (-) and plan (+) differ:\n%s\nchange:\n%s", r.GVK(), sub, manager, diff, changeOf(old, obj))
	}
	obj.SetManagedFields(mine.GetManagedFields())
	return obj, true
}

// mutate changes some values at random.
func mutate(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || r.Intn(4) == 0 {
			refill(r, v)
			return
		}
		mutate(r, v.Elem(), depth+1)
	case reflect.Struct:
		if v.NumField() == 0 || !v.Field(0).CanSet() {
			return
		}
		for range 1 + r.Intn(2) {
			f := v.Field(r.Intn(v.NumField()))
			if f.CanSet() {
				mutate(r, f, depth+1)
			}
		}
	case reflect.Slice:
		switch n := v.Len(); {
		case n > 0 && r.Intn(3) > 0:
			mutate(r, v.Index(r.Intn(n)), depth+1)
		case n > 1 && r.Intn(2) == 0: // a new order
			out := reflect.MakeSlice(v.Type(), n, n)
			for i, j := range r.Perm(n) {
				out.Index(i).Set(v.Index(j))
			}
			v.Set(out)
		default:
			refill(r, v)
		}
	default:
		refill(r, v)
	}
}

func refill(r *rand.Rand, v reflect.Value) {
	if r.Intn(4) == 0 {
		v.SetZero()
		return
	}
	sample.Fill(r, v.Addr().Interface())
}

// settle gives a random object the metadata of a stored one and the Go form of one
// that was read: the merge library tells empty lists from absent ones inside lists,
// which JSON does not.
func settle(t *testing.T, obj kinds.Object, entries []metav1.ManagedFieldsEntry, created bool) bool {
	obj.SetManagedFields(nil)
	text, err := json.Marshal(obj)
	if err != nil {
		return false // random raw extensions have no JSON
	}
	reflect.ValueOf(obj).Elem().SetZero()
	if err := json.Unmarshal(text, obj); err != nil {
		t.Fatal(err)
	}
	obj.SetName("x")
	obj.SetManagedFields(entries)
	obj.SetUID("")
	if created {
		obj.SetUID(types.UID("7"))
	}
	return true
}

func differential(t *testing.T, o *Ownership, r *kinds.Resource, seed int64, steps int) (fast, all int) {
	rnd := rand.New(rand.NewSource(seed))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	obj := r.New()
	sample.Fill(rnd, obj)
	if !settle(t, obj, nil, false) {
		return 0, 0
	}
	live, ok := track(t, o, r, "", r.New(), obj, "creator", now)
	count := func(ok bool) {
		all++
		if ok {
			fast++
		}
	}
	count(ok)
	for range steps {
		live.SetUID("7")
		next := live.DeepCopyObject().(kinds.Object)
		for range rnd.Intn(3) {
			mutate(rnd, reflect.ValueOf(next).Elem(), 0)
		}
		if !settle(t, next, live.GetManagedFields(), true) {
			return fast, all
		}
		now = now.Add(time.Duration(rnd.Intn(3)) * time.Second)
		sub := ""
		if rnd.Intn(2) == 0 && r.Sub("status") != nil {
			sub = "status"
		}
		if len(live.GetManagedFields()) == 0 {
			return fast, all
		}
		live, ok = track(t, o, r, sub, live, next, fmt.Sprint("m", rnd.Intn(14)), now)
		count(ok)
	}
	return fast, all
}

func TestPlansEqualLibrary(t *testing.T) {
	o := newOwnership()
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	fast, all := 0, 0
	for _, r := range stored() {
		for seed := range rounds {
			f, a := differential(t, o, r, int64(seed), 12)
			fast, all = fast+f, all+a
		}
	}
	t.Logf("%d of %d writes took the fast way", fast, all)
	if fast < all/3 {
		t.Errorf("only %d of %d writes took the fast way", fast, all)
	}
}

// stored are the built-in resources whose objects are kept.
func stored() []*kinds.Resource {
	return slices.DeleteFunc(slices.Clone(builtin.Resources()), func(r *kinds.Resource) bool { return r.New == nil || r.Storage == nil })
}

func FuzzPlansEqualLibrary(f *testing.F) {
	o := newOwnership()
	all := stored()
	f.Add(int64(1), uint(11))
	f.Fuzz(func(t *testing.T, seed int64, kind uint) {
		differential(t, o, all[kind%uint(len(all))], seed, 6)
	})
}

func FuzzFieldSet(f *testing.F) {
	f.Add([]byte(`{"f:spec":{".":{},"f:a":{},"k:{\"name\":\"x\"}":{".":{}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		set, err := parseFieldSet(raw, &scratch{})
		if err != nil {
			return
		}
		var want fieldpath.Set
		if json.Valid(raw) && want.FromJSON(bytes.NewReader(raw)) == nil && anyOwned(set) {
			again := appendFieldSet(nil, set)
			var got fieldpath.Set
			if err := got.FromJSON(bytes.NewReader(again)); err != nil || !got.Equals(&want) {
				t.Errorf("%s became %s (%v)", raw, again, err)
			}
		}
	})
}

func configMap() *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"app": "web"}}, Data: map[string]string{}}
	for i := range 8 {
		cm.Data[fmt.Sprint("key-", i)] = "a value of about one hundred bytes, more or less, to make the object one kilobyte in all....."
	}
	return cm
}

func BenchmarkCreateConfigMap(b *testing.B) {
	o := newOwnership()
	r := o.schemas.Catalogue().Lookup("", "v1", "configmaps")
	now := time.Now()
	b.ReportAllocs()
	cm := configMap()
	for b.Loop() {
		cm.ManagedFields = nil
		if err := o.AfterCreate(r, "", cm, "bench", now); err != nil {
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

func BenchmarkPodStatus(b *testing.B) {
	o := newOwnership()
	r := o.schemas.Catalogue().Lookup("", "v1", "pods")
	now := time.Now()
	old := pod()
	if err := o.AfterCreate(r, "", old, "creator", now); err != nil {
		b.Fatal(err)
	}
	old.UID = "1"
	next := old.DeepCopy()
	next.Status.Phase = "Running"
	next.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	next.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: metav1.Now()}, {Type: "Initialized", Status: "True"}}
	if err := o.AfterUpdate(r, "status", old, next, "kubelet", now); err != nil {
		b.Fatal(err)
	}
	third := next.DeepCopy()
	third.Spec = next.Spec // as a status endpoint leaves it
	third.Status.Conditions[0].Status = "False"
	b.ReportAllocs()
	for b.Loop() {
		third.ManagedFields = nil
		if err := o.AfterUpdate(r, "status", next, third, "kubelet", now); err != nil {
			b.Fatal(err)
		}
	}
	if len(third.ManagedFields) != 2 {
		b.Fatal(third.ManagedFields)
	}
}
