package cache

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/sqlstore"
)

// churn writes objects whose labels change with each write, and deletes some.
type churn struct {
	cache    *Cache
	revision int64
	live     map[string]int64
}

// someValues are so many that of 4000 objects about as many have one of them as go into a slice.
const someValues = 53

func newChurn(n int) *churn {
	w := &churn{cache: New(nil), live: map[string]int64{}}
	for i := range n {
		w.write(i)
	}
	return w
}

// write applies one change of the object with a number: a delete for every seventh revision.
func (w *churn) write(i int) {
	w.revision++
	name := fmt.Sprintf("p%05d", i)
	value := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":"a","tier":"t%d","some":"%d","only":"%d"}}}`,
		name, w.revision%5, (int64(i)+w.revision%3)%someValues, w.revision)
	ch := sqlstore.Change{Row: sqlstore.Row{
		Key: sqlstore.Key{Resource: "pods", Namespace: "n", Name: name}, Revision: w.revision, Value: []byte(value),
	}, PrevRevision: w.live[name]}
	if w.live[name] = w.revision; w.revision%7 == 0 && ch.PrevRevision != 0 {
		ch.Deleted = true
		delete(w.live, name)
	}
	ch.Aux = (*Pending)(nil) // as this process writes
	w.cache.Apply([]sqlstore.Change{ch})
}

// same compares what a selector finds with what looking at each item finds.
func same(t *testing.T, s *Snapshot, selector string) {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFilter(parsed, nil)
	var got, want []string
	s.Select(f, "", Position{}, func(it *Item) bool { got = append(got, fmt.Sprint(it.Name, it.Revision)); return true })
	s.ascend("", Position{}, func(it *Item) bool {
		if f.Match(it) {
			want = append(want, fmt.Sprint(it.Name, it.Revision))
		}
		return true
	})
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %d items, want %d", selector, len(got), len(want))
	}
}

func (w *churn) resource() *resource { return w.cache.resource("pods") }

// awaitLabels reads on until labels are indexed: a build that could not keep up with writers has
// ended without an index, and only the next reader begins anew.
func (w *churn) awaitLabels(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); w.resource().state().labels == nil; time.Sleep(time.Millisecond) {
		same(t, w.cache.Snapshot("pods"), "tier=t3")
		if time.Now().After(end) {
			t.Fatal("labels were never indexed")
		}
	}
}

// While labels are indexed writers go on, and readers find what there is.
func TestLabelsAreIndexedDuringWrites(t *testing.T) {
	w := newChurn(3000)
	defer w.cache.Close()
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 5000 {
			w.write(i * 389 % 4000)
		}
	})
	for w.cache.Revision() < 8000 {
		same(t, w.cache.Snapshot("pods"), "tier=t3")
	}
	writer.Wait()
	w.awaitLabels(t)
	for _, selector := range []string{"tier=t3", "app=a,tier=t1", "some=7", "only=7999", "tier=none"} {
		same(t, w.cache.Snapshot("pods"), selector)
	}
}

// Writes that arrive while labels are indexed are entered: without the lock while they are many, and with it in
// the end.
func TestLabelIndexCatchesUp(t *testing.T) {
	w := newChurn(100)
	defer w.cache.Close()
	s := w.resource()
	s.wantIndex.Store(true)
	b := &labelBuild{}
	s.build = b
	made := index(s.state().items, labelTerms, sameLabels, never)
	for i := range 2 * fewMoved {
		w.write(i % 150)
	}
	some, more := s.finish(b, made, 0)
	if !more || len(some) != 2*fewMoved || s.labels != nil {
		t.Fatalf("%d changes are to be entered, more: %v", len(some), more)
	}
	for _, m := range some {
		reindex(made, labelTerms, m.it, m.old)
	}
	for i := range fewMoved {
		w.write(i)
	}
	if some, more = s.finish(b, made, 1); more || len(some) != 0 || s.labels == nil || s.build != nil {
		t.Fatalf("%d changes are still to be entered", len(some))
	}
	for i := range 50 {
		w.write(i * 2)
	}
	if want := index(s.items, labelTerms, nil, never); !slices.Equal(want.all(), s.labels.all()) {
		t.Error("the index has other entries than one made of the items that there are")
	}
}

// A build whose items are no more the resource's, or that cannot keep up, ends without an index,
// and the next selector begins anew.
func TestLabelIndexIsGivenUp(t *testing.T) {
	w := newChurn(100)
	defer w.cache.Close()
	s := w.resource()
	late := func(change func(b *labelBuild)) {
		t.Helper()
		s.wantIndex.Store(true)
		b := &labelBuild{}
		s.build = b
		made := index(s.state().items, labelTerms, sameLabels, never)
		change(b)
		if _, more := s.finish(b, made, maxTurns); more || s.labels != nil || s.build != nil || s.wantIndex.Load() {
			t.Errorf("an index that is not of the items: %v", s.labels != nil)
		}
	}
	late(func(b *labelBuild) { s.forgetLabels() })
	late(func(b *labelBuild) { b.meanwhile = make([]moved, fewMoved+1) })
	late(func(b *labelBuild) { b.meanwhile = make([]moved, maxMoved); w.write(1) })
	if got := index(s.items, labelTerms, sameLabels, func() bool { return true }); s.items.Len() < 1024 && got == nil {
		t.Error("a small index was given up")
	}
	same(t, w.cache.Snapshot("pods"), "tier=t3")
	w.awaitLabels(t)
	w.cache.Close()
	s.replace(nil, w.revision+1)
	if s.labels != nil || s.state().labels != nil {
		t.Error("an index outlived its items")
	}
}

func BenchmarkIndexLabels(b *testing.B) {
	w := newChurn(100_000)
	defer w.cache.Close()
	items := w.resource().state().items
	b.ReportAllocs()
	for b.Loop() {
		index(items, labelTerms, sameLabels, never)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items.Len()), "ns/item")
}
