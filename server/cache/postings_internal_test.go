package cache

import (
	"fmt"
	"runtime"
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// spread are bare items that have one term each: so many of them have the same.
func spread(n, each int) (all []*Item, of termsOf) {
	for i := range n {
		all = append(all, &Item{Namespace: fmt.Sprintf("n%02d", i*100/n), Name: fmt.Sprintf("p%07d", i), Revision: int64(i)})
	}
	values := make([]string, (n+each-1)/each)
	for i := range values {
		values[i] = fmt.Sprintf("node-%06d", i)
	}
	return all, func(it *Item, add func(term)) { add(term{"node", values[it.Revision*7919%int64(len(values))]}) }
}

// held is how many bytes the heap has more behind what made makes.
func held[T any](made func() T) (T, int64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out := made()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return out, int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// BenchmarkPostings is an index of a million entries, by how many of them have the same term: made of
// the items, filled by a load, changed with and without a reader between any two changes, asked for
// ten items, and looked through by the collector.
func BenchmarkPostings(b *testing.B) {
	const n = 1_000_000
	for _, each := range []int{1, 10, 1000, n} {
		all, of := spread(n, each)
		tree := newItems()
		var entries []posting
		for _, it := range all {
			tree.Load(it)
			of(it, func(t term) { entries = append(entries, posting{unique.Make(t), it}) })
		}
		into, bytes := held(func() *postings { return index(tree, of, nil, never) })
		name := fmt.Sprintf("each=%d/", each)
		b.Run(name+"make", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index(tree, of, nil, never)
			}
			b.ReportMetric(float64(bytes)/n, "held-B/entry")
		})
		b.Run(name+"enter", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				(&loaded{entries: entries}).enter(true)
			}
		})
		b.Run(name+"collect", func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
			}
			runtime.KeepAlive(into)
		})
		for _, seen := range []bool{false, true} {
			b.Run(fmt.Sprintf("%schange/seen=%v", name, seen), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					at := i * 389 % n
					old, it := all[at], all[(i*389+1)%n]
					if seen {
						into.Copy()
					}
					reenter(into, of, nil, old)
					reenter(into, of, old, nil)
					reenter(into, of, it, it)
				}
			})
		}
		b.Run(name+"select", func(b *testing.B) {
			s := &Snapshot{resource: newResource("pods", nil, 0, eventLogBounds{}), v: &state{items: tree, labels: into}}
			f := NewFilter(labels.SelectorFromSet(labels.Set{"node": "node-000000"}), nil)
			b.ReportAllocs()
			got := 0
			for b.Loop() {
				got = 0
				s.Selection(f, "").Ascend(Position{}, func(*Item) bool { got++; return got < 10 })
			}
			b.ReportMetric(float64(got), "items")
		})
	}
}
