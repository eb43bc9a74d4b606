package quotas

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
)

// TestDirtyQuotas: usage that admission recorded stays until the object exists,
// and continued writes do not delay forever the removal of usage that has ended.
func TestDirtyQuotas(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("secrets", "a", "old", `{}`)
		w.Set(quotasStorage, "a", "q", limit("secrets", "3"))
		w.Set(quotasStorage, "a", "other", limit("configmaps", "3"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q", "secrets", "1")

		// The quota is counted just when a write is between its record and its object.
		charge(w, "a", "q", "secrets", "2")
		w.Set(quotasStorage, "a", "third", limit("pods", "3"))
		controllertest.Advance(100 * time.Millisecond)
		uses(w, "a", "q", "secrets", "2")
		uses(w, "a", "third", "pods", "0")
		w.Set("secrets", "a", "new", `{}`)
		controllertest.Advance(10 * time.Second)
		uses(w, "a", "q", "secrets", "2")

		// One that is not stored after all is found soon.
		charge(w, "a", "q", "secrets", "3")
		w.Set("secrets", "a", "old", "")
		controllertest.Advance(400 * time.Millisecond)
		uses(w, "a", "q", "secrets", "3")
		controllertest.Advance(200 * time.Millisecond)
		uses(w, "a", "q", "secrets", "1")

		// So is what goes while others are recorded all the time.
		w.Set("secrets", "a", "new", "")
		for i := range 40 {
			charge(w, "a", "q", "secrets", []string{"1", "2"}[i%2])
			controllertest.Advance(100 * time.Millisecond)
		}
		controllertest.Advance(10 * time.Second)
		uses(w, "a", "q", "secrets", "0")
	}, runQuotas(0))
}

// TestQuotasHeldHostage: a quota that a client keeps dirty delays the recount of another one in the
// namespace only for a while.
func TestQuotasHeldHostage(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	with := func(used string) corev1.ResourceQuotaStatus {
		return corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"secrets": resource.MustParse(used)}}
	}
	quota := func(name string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: with("1")}
	}
	for _, c := range []struct {
		about string
		since time.Duration
		want  string
	}{
		{"for less than it may wait", longestDirty - time.Millisecond, "1"},
		{"for as long as it may wait", longestDirty, "0"},
	} {
		at := now.Add(-c.since)
		all := dirtyQuotas{"a": {"waits": {revision: 1, at: at, since: at}}}
		statuses := []corev1.ResourceQuotaStatus{with("0"), with("0")}
		next := all.keep("a", []*corev1.ResourceQuota{quota("waits"), quota("toggled")}, []int64{1, 9}, statuses, now)
		waits, toggled := statuses[0].Used["secrets"], statuses[1].Used["secrets"]
		if next == 0 || waits.String() != c.want || toggled.String() != "1" {
			t.Errorf("%s: %s are used beside another quota with %s; counted again in %v", c.about, &waits, &toggled, next)
		}
	}
}
