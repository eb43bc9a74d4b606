package cache

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// Trees change in place while there is no state of them: an existing state stays as it was, whole,
// and lookups without one find the newest.
func TestStatesStayWhileTreesChange(t *testing.T) {
	w := newChurn(3000)
	defer w.cache.Close()
	same(t, w.cache.Snapshot("pods"), "tier=t3")
	w.awaitLabels(t)
	const writes = 5_000
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for i := range writes {
			w.write(i * 389 % 4000)
		}
	})
	for range 3 {
		all.Go(func() {
			for w.cache.Revision() < 3000+writes {
				before := w.cache.Revision()
				if it := w.cache.Get("pods", "n", "p00389"); it != nil && it.Name != "p00389" {
					t.Errorf("got %s", it.Name)
				}
				snap := w.cache.Snapshot("pods")
				if snap.Revision < before {
					t.Errorf("revision %d was there, and then %d", before, snap.Revision)
				}
				if n := w.cache.Count("pods"); n == 0 {
					t.Error("nothing is there")
				}
			}
		})
	}
	for round := 0; w.cache.Revision() < 3000+writes; round++ {
		snap := w.cache.Snapshot("pods")
		first := listed(snap)
		some := fmt.Sprint("some=", round%someValues)
		selection := snap.Selection(NewFilter(labels.SelectorFromSet(labels.Set{"some": fmt.Sprint(round % someValues)}), nil), "")
		selected := ascended(selection)
		w.cache.WaitFor(t.Context(), min(w.cache.Revision()+100, 3000+writes))
		if again := listed(snap); !slices.Equal(first, again) {
			t.Fatalf("a snapshot of %d objects has %d", len(first), len(again))
		}
		if again := ascended(selection); !slices.Equal(selected, again) {
			t.Fatalf("%s selected %d objects, and then %d", some, len(selected), len(again))
		}
		same(t, snap, "tier=t2")
		same(t, snap, some)
	}
	all.Wait()
	for name, revision := range w.live {
		if it := w.cache.Get("pods", "n", name); it == nil || it.Revision != revision {
			t.Fatalf("%s is %v, was written at %d", name, it, revision)
		}
	}
}

func listed(s *Snapshot) (all []string) {
	s.ascend("", Position{}, func(it *Item) bool { all = append(all, fmt.Sprint(it.Name, it.Revision)); return true })
	return all
}

func ascended(s *Selection) (all []*Item) {
	s.Ascend(Position{}, func(it *Item) bool { all = append(all, it); return true })
	return all
}

// TestWritesCopyNothingUnseen: without a reader a write allocates its item and little else.
func TestWritesCopyNothingUnseen(t *testing.T) {
	w := newChurn(20_000)
	defer w.cache.Close()
	i := 0
	perWrite := func(read bool) float64 {
		return testing.AllocsPerRun(500, func() {
			i = (i + 389) % 20_000
			w.write(i)
			if read {
				w.cache.Snapshot("pods")
			}
		})
	}
	unseen, seen := perWrite(false), perWrite(true)
	if unseen+2 > seen {
		t.Errorf("%.0f allocations without a reader, %.0f with one", unseen, seen)
	}
}
