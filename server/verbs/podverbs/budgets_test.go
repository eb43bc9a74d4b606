package podverbs_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestManyBudgets: an eviction decodes two of the budgets that cover a pod, and is refused then, however many there are.
func TestManyBudgets(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`)
	s.Put("pods", "a", "p", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"a","uid":"p"},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`)
	var evicted strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&evicted, `,"p%d":"2026-01-01T00:00:00Z"`, i)
	}
	for i := range 100 {
		name := fmt.Sprintf("b%d", i)
		s.Put("poddisruptionbudgets.policy", "a", name, fmt.Sprintf(`{"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":%q,"namespace":"a","uid":"u%d"},"spec":{"selector":{}},"status":{"disruptedPods":{%s}}}`,
			name, i, evicted.String()[1:]))
	}
	evict := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := s.Do("POST", "/api/v1/namespaces/a/pods/p/eviction", `{"metadata":{"name":"p"}}`)
		runtime.ReadMemStats(&after)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "more than one PodDisruptionBudget") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	evict() // objects that were written are unpacked, and the like
	if n := evict(); n > 16<<20 {
		t.Errorf("an eviction allocates %d bytes", n)
	}
}
