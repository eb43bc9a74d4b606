package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// inParts reads a selection in parts of random sizes, and calls between before each but the first.
func inParts(s *Selection, from Position, random *rand.Rand, between func()) (got []string) {
	for {
		most, n := 1+random.IntN(700), 0
		s.Ascend(from, func(it *Item) bool {
			got = append(got, fmt.Sprint(it.Name, it.Revision))
			from = After(it.Namespace, it.Name)
			n++
			return n < most
		})
		if n < most {
			return got
		}
		between()
	}
}

// TestSelectionInParts: a selection that is read in parts finds the same as a scan of its snapshot,
// while objects come, change and go, and while an index is made; and again when it is read again.
func TestSelectionInParts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	w := newChurn(4000)
	defer w.cache.Close()
	w.resource().indexLabels()
	selectors := []string{"", "app=a", "tier=t1", "tier!=t1", "tier in (t2,t3)", "app=a,tier=t4", "app=a,tier notin (t1,t4,u1,u2,u3,u4,u5,u6,u7,u8,u9,v1,v2,v3,v4,v5,v6,v7)", "some=7", "some=8,tier=t2", "nothing", "only>3000"}
	for round := range 30 {
		if round == 20 {
			w.awaitLabels(t)
		}
		parsed, err := labels.Parse(selectors[random.IntN(len(selectors))])
		if err != nil {
			t.Fatal(err)
		}
		s, f := w.cache.Snapshot("pods"), NewFilter(parsed, nil)
		var from Position
		if random.IntN(2) == 0 {
			from = After("n", fmt.Sprintf("p%05d", random.IntN(4000)))
		}
		var want []string
		s.ascend("", from, func(it *Item) bool {
			if f.Match(it) {
				want = append(want, fmt.Sprint(it.Name, it.Revision))
			}
			return true
		})
		sel := s.Selection(f, []string{"", "n"}[random.IntN(2)])
		for range 2 {
			got := inParts(sel, from, random, func() {
				for range 100 {
					w.write(random.IntN(5000))
				}
			})
			if !slices.Equal(got, want) {
				t.Fatalf("%v from %q: %d items, want %d", parsed, from.Name, len(got), len(want))
			}
		}
	}
}

// BenchmarkFirstPart is until the first items of a selection are there that has a tenth of all, and
// until all are.
func BenchmarkFirstPart(b *testing.B) {
	w := newChurn(200_000)
	defer w.cache.Close()
	parsed, err := labels.Parse("tier=t3")
	if err != nil {
		b.Fatal(err)
	}
	f := NewFilter(parsed, nil)
	w.resource().wantIndex.Store(true) // no index is made on its own
	for _, indexed := range []bool{false, true} {
		if indexed {
			w.resource().buildLabels()
		}
		s := w.cache.Snapshot("pods")
		for _, most := range []int{4096, 1 << 30} {
			b.Run(fmt.Sprintf("indexed=%v/most=%d", indexed, most), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					s.Selection(f, "").Ascend(Position{}, func(*Item) bool { n++; return n < most })
				}
			})
		}
	}
}
