package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestQuotasInDoubt: what admission has recorded is not taken back before the object is there,
// and who goes on recording does not put off for good what has gone.
func TestQuotasInDoubt(t *testing.T) {
	during(t, func(w *world) {
		w.set("secrets", "a", "old", `{}`)
		w.set(quotasStorage, "a", "q", limit("secrets", "3"))
		w.set(quotasStorage, "a", "other", limit("configmaps", "3"))
		pass(time.Second)
		w.uses("a", "q", "secrets", "1")

		// The quota is counted just when a write is between its record and its object.
		w.charge("a", "q", "secrets", "2")
		w.set(quotasStorage, "a", "third", limit("pods", "3"))
		pass(100 * time.Millisecond)
		w.uses("a", "q", "secrets", "2")
		w.uses("a", "third", "pods", "0")
		w.set("secrets", "a", "new", `{}`)
		pass(10 * time.Second)
		w.uses("a", "q", "secrets", "2")

		// One that is not stored after all is found soon.
		w.charge("a", "q", "secrets", "3")
		w.set("secrets", "a", "old", "")
		pass(400 * time.Millisecond)
		w.uses("a", "q", "secrets", "3")
		pass(200 * time.Millisecond)
		w.uses("a", "q", "secrets", "1")

		// So is what goes while others are recorded all the time.
		w.set("secrets", "a", "new", "")
		for i := range 40 {
			w.charge("a", "q", "secrets", []string{"1", "2"}[i%2])
			pass(100 * time.Millisecond)
		}
		pass(10 * time.Second)
		w.uses("a", "q", "secrets", "0")
	}, runQuotas(0))
}

// TestQuotasHeldHostage: a quota that somebody keeps in doubt does not keep another one of the
// namespace from giving back what has gone, but for a while.
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
		{"for less than it may wait", mostDoubt - time.Millisecond, "1"},
		{"for as long as it may wait", mostDoubt, "0"},
	} {
		at := now.Add(-c.since)
		all := quotaDoubts{"a": {"waits": {revision: 1, at: at, since: at}}}
		statuses := []corev1.ResourceQuotaStatus{with("0"), with("0")}
		next := all.keep("a", []*corev1.ResourceQuota{quota("waits"), quota("toggled")}, []int64{1, 9}, statuses, now)
		waits, toggled := statuses[0].Used["secrets"], statuses[1].Used["secrets"]
		if next == 0 || waits.String() != c.want || toggled.String() != "1" {
			t.Errorf("%s: %s are used beside another quota with %s; counted again in %v", c.about, &waits, &toggled, next)
		}
	}
}
