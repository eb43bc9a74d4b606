package writes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/writes"
)

// TestApart: a Pod without a grace period stays, marked, for the grace period of the request, and is
// deleted then.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Apart = time.Hour
		_, err := d.Create(t.Context(), d.request("create", "pods", "", ""), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() {
			_, err := d.Delete(context.Background(), d.request("delete", "pods", "", "x"), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{}})
			gone <- err
		}()
		time.Sleep(30 * time.Minute)
		if item := d.cache.Get("pods", "a", "x"); item == nil || !item.Meta().Deleting {
			t.Errorf("half an hour later: %v", item)
		}
		if err := <-gone; err != nil || d.cache.Get("pods", "a", "x") != nil {
			t.Errorf("it stays: %v", err)
		}
	})
}
