package controllers

import (
	"testing"
	"time"
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

// TestQuotasHeldHostage: who makes and deletes what one quota limits, over and over, does not keep another
// quota of the namespace from giving back what has gone.
func TestQuotasHeldHostage(t *testing.T) {
	during(t, func(w *world) {
		w.set("secrets", "a", "old", `{}`)
		w.set(quotasStorage, "a", "q", limit("secrets", "3"))
		w.set(quotasStorage, "a", "other", limit("configmaps", "3"))
		pass(10 * time.Second)
		w.uses("a", "q", "secrets", "1")
		w.set("secrets", "a", "old", "")
		for range 20 {
			w.charge("a", "other", "configmaps", "1")
			w.set("configmaps", "a", "c", `{}`)
			pass(150 * time.Millisecond)
			w.set("configmaps", "a", "c", "")
			pass(150 * time.Millisecond)
		}
		w.uses("a", "q", "secrets", "0")
	}, runQuotas(0))
}
