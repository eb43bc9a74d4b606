package writes_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestTurnIsYielded: a write that has lost, and turns out to need room that it waits for, has others write its
// object meanwhile: one of them may have the room.
func TestTurnIsYielded(t *testing.T) {
	d := newDesk(t)
	if _, err := d.Create(t.Context(), d.request("create", "pods", "", ""), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}); err != nil {
		t.Fatal(err)
	}
	patch := func(message string, turn func(func()) error) error {
		req := d.request("patch", "pods", "status", "p")
		req.Turn = turn
		_, err := d.Patch(t.Context(), req, &apply.Patch{
			Type: codecs.PatchMerge, Body: fmt.Appendf(nil, `{"status":{"message":%q}}`, message), JSON: jsoncodec.Codec{},
		})
		return err
	}
	others, written := 0, 0 // that write now, and how often they have
	other := func() {
		others++
		defer func() { others-- }()
		written++
		if err := patch(fmt.Sprint("another's ", written), nil); err != nil {
			t.Error(err)
		}
	}
	tries := 0
	d.change = func(a *admission.Attributes) error {
		if others > 0 {
			return nil
		}
		if tries++; tries == 1 {
			other()
			return nil
		}
		return a.Whole()
	}
	key := sqlstore.Key{Resource: "pods", Namespace: "a", Name: "p"}
	turns := 0
	if err := patch("mine", func(waits func()) error {
		if d.Waiting(key) != 1 {
			t.Error("it has lost, and no turn")
		}
		if turns++; turns > 1 {
			return nil // it has the room
		}
		if waits(); d.Waiting(key) != 0 {
			t.Error("it waits in its turn")
		}
		for range 3 {
			other()
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	item := d.cache.Get(key.Resource, key.Namespace, key.Name)
	var pod corev1.Pod
	if _, err := (jsoncodec.Codec{}).Decode(item.JSON(), &pod, codecs.Strict); err != nil || pod.Status.Message != "mine" || turns != 2 || tries != 3 {
		t.Errorf("%q after %d turns and %d tries, %v", pod.Status.Message, turns, tries, err)
	}
	if d.Waiting(key) != 0 {
		t.Error("somebody still waits")
	}
}
