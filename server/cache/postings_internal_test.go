package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unique"
	"weak"

	"k8s.io/apimachinery/pkg/labels"
)

// all returns the entries of all terms.
func (p *postings) all() (all []posting) {
	p.terms.Scan(func(e entries) bool {
		e.ascend(&Item{}, func(it *Item) bool { all = append(all, posting{unique.Make(*e.term), it}); return true })
		return true
	})
	return all
}

// model is the reference for postings: for each term the items by key.
type model map[term]map[Position]*Item

func (m model) copy() model {
	out := model{}
	for t, has := range m {
		out[t] = map[Position]*Item{}
		for k, it := range has {
			out[t][k] = it
		}
	}
	return out
}

// from returns the items of a term from a position on.
func (m model) from(t term, p Position) (all []*Item) {
	for _, it := range m[t] {
		if p.reached(it) {
			all = append(all, it)
		}
	}
	slices.SortFunc(all, compareKeys)
	return all
}

// both are postings and the model of them.
type both struct {
	p *postings
	m model
}

func (b both) copy() both { return both{b.p.Copy(), b.m.copy()} }

func (b both) set(t term, it *Item) {
	if b.m[t] == nil {
		b.m[t] = map[Position]*Item{}
	}
	b.m[t][Position{it.Namespace, it.Name}] = it
	b.p.set(t, it)
}

func (b both) remove(t term, it *Item) {
	if delete(b.m[t], Position{it.Namespace, it.Name}); len(b.m[t]) == 0 {
		delete(b.m, t)
	}
	b.p.remove(t, it)
}

// check compares all entries, and those of each term from a position on.
func (b both) check(t *testing.T, from Position) {
	t.Helper()
	if b.p.terms.Len() != len(b.m) {
		t.Fatalf("%d terms, want %d", b.p.terms.Len(), len(b.m))
	}
	for of := range b.m {
		e := b.p.of(of)
		if e.len() != len(b.m[of]) {
			t.Fatalf("%v has %d entries, want %d", of, e.len(), len(b.m[of]))
		}
		if s := e.more; s != nil && (s.len() < 2 || s.many != nil && (s.few != nil || s.len() <= maxSliceItems/2) || len(s.few) > maxSliceItems) {
			t.Fatalf("%v has %d entries as %d in a slice", of, s.len(), len(s.few))
		}
		for _, from := range []Position{{}, from} {
			var got []*Item
			e.ascend(&Item{Namespace: from.Namespace, Name: from.Name}, func(it *Item) bool { got = append(got, it); return true })
			if want := b.m.from(of, from); !slices.Equal(got, want) {
				t.Fatalf("%v from %v has %d entries, want %d, or others", of, from, len(got), len(want))
			}
		}
	}
}

// TestPostingsAreTheModel: items come, change and go, so that terms have none, one, a few and many
// of them, and fewer again. Copies are taken in between, and some are changed too: each has what
// its model has.
func TestPostingsAreTheModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	key := func() Position {
		return Position{fmt.Sprintf("n%d", random.IntN(3)), fmt.Sprintf("p%03d", random.IntN(100))}
	}
	pick := func() term { // some of them often
		if random.IntN(4) > 0 {
			return term{"k", fmt.Sprint(min(random.IntN(6), random.IntN(6)))}
		}
		return term{"l", fmt.Sprint(random.IntN(500))}
	}
	pairs := []both{{newPostings(), model{}}}
	for round := range 400 {
		b := pairs[random.IntN(len(pairs))]
		grows := random.IntN(100)
		for range 1 + random.IntN(300) {
			of, at := pick(), key()
			it := &Item{Namespace: at.Namespace, Name: at.Name}
			if random.IntN(100) < grows {
				b.set(of, it)
			} else {
				b.remove(of, it)
			}
		}
		if random.IntN(2) == 0 {
			pairs = append(pairs, b.copy())
		}
		if len(pairs) > 8 {
			pairs = slices.Delete(pairs, 0, 3)
		}
		if round%10 == 0 {
			for _, b := range pairs {
				b.check(t, key())
			}
		}
	}
}

// TestFilledPostings: however an index is filled, in order or not, it has what there is, and is
// changed as any other.
func TestFilledPostings(t *testing.T) {
	for _, each := range []int{1, 2, 10, maxSliceItems, maxSliceItems + 1, 1000} {
		all, of := spread(3*each, each)
		m := model{}
		var entries []posting
		tree := newItems()
		for _, it := range all {
			tree.Load(it)
			of(it, func(t term) {
				if m[t] == nil {
					m[t] = map[Position]*Item{}
				}
				m[t][Position{it.Namespace, it.Name}] = it
				entries = append(entries, posting{unique.Make(t), it})
			})
		}
		last := append(slices.Clone(entries[1:]), entries[0]) // as what comes from rows, behind the others
		var twice []posting
		for range maxSliceItems + 1 {
			twice = append(twice, entries...)
		}
		back := slices.Clone(entries)
		slices.Reverse(back)
		for _, l := range []struct {
			entries []posting
			inOrder bool
		}{{entries, true}, {last, true}, {twice, true}, {twice, false}, {back, false}} {
			r := &loaded{entries: slices.Clone(l.entries)}
			r.enter(l.inOrder)
			both{r.index, m}.check(t, Position{"n05", ""})
		}
		b := both{index(tree, of, nil, never), m}
		b.check(t, Position{"n05", ""})
		before := b.copy()
		for i, it := range all {
			of(it, func(t term) {
				if i%3 == 0 {
					b.remove(t, it)
				} else {
					b.set(t, &Item{Namespace: it.Namespace, Name: it.Name})
				}
			})
		}
		b.check(t, Position{"n05", ""})
		before.check(t, Position{})
	}
}

// TestPostingsAreChangedWhereTheyLie: without a Copy since the last change nothing is allocated for
// another, and behind a Copy as much for a large term as the way into its tree.
func TestPostingsAreChangedWhereTheyLie(t *testing.T) {
	for _, each := range []int{1, 10, 50_000} {
		all, of := spread(50_000, each)
		p, terms := newPostings(), map[*Item]term{}
		for _, it := range all {
			reindex(p, of, it, nil)
			of(it, func(t term) { terms[it] = t })
		}
		i := 0
		change := func() {
			i++
			it := all[i*389%len(all)]
			p.set(terms[it], it)
		}
		if n := testing.AllocsPerRun(1000, change); n > 0 {
			t.Errorf("%d items of a term: %v allocations for a change in place", each, n)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 100 {
			p.Copy()
			change()
		}
		runtime.ReadMemStats(&after)
		if bytes := (after.TotalAlloc - before.TotalAlloc) / 100; bytes > 16<<10 {
			t.Errorf("%d items of a term: %d bytes for a change behind a copy", each, bytes)
		}
	}
}

// TestSlicesOfPostingsAreTight: neither growing one by one nor shrinking leaves much room.
func TestSlicesOfPostingsAreTight(t *testing.T) {
	all, of := spread(2000, 40)
	p := newPostings()
	room := func() (n, has int) {
		p.terms.Scan(func(e entries) bool {
			if e.more != nil {
				n, has = n+len(e.more.few), has+cap(e.more.few)
			}
			return true
		})
		return n, has
	}
	for i, it := range all {
		reindex(p, of, it, nil)
		if n, has := room(); i%100 == 99 && has > n+n/4+2*p.terms.Len() {
			t.Fatalf("room for %d has %d", has, n)
		}
	}
	for i, it := range all {
		reindex(p, of, nil, it)
		if n, has := room(); has > 2*n+2*p.terms.Len() {
			t.Fatalf("%d went, and room for %d has %d", i, has, n)
		}
	}
	if p.terms.Len() != 0 {
		t.Errorf("%d terms are left", p.terms.Len())
	}
}

// TestLoadedTreesLetGo: after a replacement the trees hold only the new item.
func TestLoadedTreesLetGo(t *testing.T) {
	const n = 5000
	s := new(core).newResource("pods", nil, 0)
	r := &loaded{of: s, ordered: n}
	all, of := spread(n, n)
	r.all = slices.Clone(all)
	for _, it := range all {
		of(it, func(t term) { r.entries = append(r.entries, posting{unique.Make(t), it}) })
	}
	r.enter(true)
	r.order()
	gone := make([]weak.Pointer[Item], n)
	for i, it := range all {
		gone[i] = weak.Make(it)
		now := &Item{Namespace: it.Namespace, Name: it.Name, Revision: it.Revision}
		r.items.Set(now)
		reindex(r.index, of, now, it)
	}
	clear(all)
	runtime.GC()
	held := 0
	for _, it := range gone {
		if it.Value() != nil {
			held++
		}
	}
	if held > 0 {
		t.Errorf("%d of %d items are held that were replaced", held, n)
	}
	runtime.KeepAlive(r)
}

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

// held returns how many bytes the heap has more behind what made makes.
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
					reindex(into, of, nil, old)
					reindex(into, of, old, nil)
					reindex(into, of, it, it)
				}
			})
		}
		b.Run(name+"select", func(b *testing.B) {
			s := &Snapshot{v: &state{items: tree, labels: into, of: &readers{}}}
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
