package writes_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/writes"
)

// clocked is an owner that notes when.
type clocked struct{ owner }

func (clocked) AfterCreate(_ *kinds.Resource, sub string, obj kinds.Object, manager string, now time.Time) error {
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Subresource: sub, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: now}}})
	return nil
}

func (o clocked) AfterUpdate(r *kinds.Resource, sub string, _, obj kinds.Object, manager string, now time.Time) error {
	return o.AfterCreate(r, sub, obj, manager, now)
}

// TestMemoryIsGivenBack: whatever becomes of what a write has encoded, its memory is there for the next
// once nobody looks at it any more.
func TestMemoryIsGivenBack(t *testing.T) {
	d := newDeskOf(t, objects.ReusedMemory)
	d.Owner = clocked{}
	now := noon
	d.Clock = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	d.create(configMap("x", map[string]string{"k": strings.Repeat("v", 4000)}))
	if _, err := d.Create(t.Context(), d.request("create", "pods", "", ""), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}); err != nil {
		t.Fatal(err)
	}
	update := func(dry bool, change func(*corev1.ConfigMap)) error {
		req := d.request("update", "configmaps", "", "x")
		req.DryRun = dry
		_, err := d.Update(t.Context(), req, put(func(old kinds.Object) (kinds.Object, error) {
			obj := objects.Copy(old).(*corev1.ConfigMap)
			change(obj)
			return obj, nil
		}))
		return err
	}
	const times = 200
	// A collection would take what is at hand.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, c := range []struct {
		name  string
		write func(i int) error
	}{
		{"an update", func(i int) error { return update(false, func(c *corev1.ConfigMap) { c.Data["i"] = fmt.Sprint(i) }) }},
		{"a dry run", func(i int) error {
			return update(true, func(c *corev1.ConfigMap) { c.Data["i"] = fmt.Sprint("dry", i) })
		}},
		{"nothing new but the time", func(int) error { return update(false, func(*corev1.ConfigMap) {}) }},
		{"nothing new but the time, twice encoded", func(i int) error {
			return update(false, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"i": fmt.Sprint(1000 + i)} })
		}},
		{"a rewrite", func(i int) error {
			req := d.request("update", "configmaps", "", "x")
			_, err := d.Rewrite(t.Context(), req, objects.Place{Resource: req.Resource, Namespace: "a", Name: "x"}, func(obj kinds.Object) error {
				obj.(*corev1.ConfigMap).Data["i"] = fmt.Sprint("again", i)
				return nil
			})
			return err
		}},
		{"a rewrite of nothing", func(int) error {
			req := d.request("update", "configmaps", "", "x")
			_, err := d.Rewrite(t.Context(), req, objects.Place{Resource: req.Resource, Namespace: "a", Name: "x"}, func(kinds.Object) error { return nil })
			return err
		}},
		{"a patch of the status alone", func(i int) error {
			_, err := d.Patch(t.Context(), d.request("patch", "pods", "status", "p"), &apply.Patch{
				Type: codecs.PatchMerge, Body: fmt.Appendf(nil, `{"status":{"message":"m%d"}}`, i), JSON: jsoncodec.Codec{},
			})
			return err
		}},
		{"a delete that waits for a finalizer", func(i int) error {
			obj := configMap(fmt.Sprint("f", i), nil)
			obj.Finalizers = []string{"example.com/f"}
			d.create(obj)
			_, err := d.Delete(t.Context(), d.request("delete", "configmaps", "", obj.Name), &writes.Deletion{Name: obj.Name, Options: &metav1.DeleteOptions{}})
			return err
		}},
	} {
		if err := c.write(0); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		before := objects.Made()
		for i := range times {
			if err := c.write(1 + i); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		// With the race detector a pool loses one in four.
		if made := objects.Made() - before; made > times*3/4 {
			t.Errorf("%s: memory was made %d times for %d writes", c.name, made, times)
		}
	}
}
