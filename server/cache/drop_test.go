package cache_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// gone is a cache of a catalogue without kinds, whose clock a test sets, and its log.
type gone struct {
	*cache.Cache
	*log
	at atomic.Int64
}

func newGone() *gone {
	g := &gone{log: newLog()}
	g.Cache = cache.NewWith(nil, cache.Config{JSON: json.New(json.Settings{}), Clock: func() time.Time { return time.Unix(g.at.Load(), 0) }})
	return g
}

func (g *gone) write(kind, name string, deleted bool) int64 {
	value := fmt.Sprintf(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":%q,"uid":"u-%s"}}`, name, name)
	ch := g.change(sqlstore.Key{Resource: kind, Name: name}, value, deleted)
	g.Apply([]sqlstore.Change{ch})
	return ch.Revision
}

// forget lets events become too old, and those resources be dropped that nothing needs.
func (g *gone) forget() {
	g.at.Add(int64(10 * time.Minute / time.Second))
	g.Forget()
	g.write("stays", "one", false)
}

func (g *gone) has(snap *cache.Snapshot) bool { return len(names(snap, nil, "", "", "")) == 1 }

// TestDropsKindsThatAreGone: however many kinds come and go, the cache keeps those that have objects, watchers, or
// events that are new enough.
func TestDropsKindsThatAreGone(t *testing.T) {
	g := newGone()
	g.write("stays", "one", false)
	for i := range 100 {
		kind := fmt.Sprintf("k%d", i)
		g.write(kind, "x", false)
		g.write(kind, "x", true)
	}
	w, _ := g.WatchNow("k7", cache.Scope{})
	g.Forget()
	g.write("stays", "one", false)
	if n := len(g.Storages()); n != 101 {
		t.Fatalf("%d resources with new events, want 101", n)
	}
	g.forget()
	if got := g.Storages(); !slices.Equal(got, []string{"k7", "stays"}) {
		t.Fatalf("left are %d: %.200v", len(got), got)
	}
	w.Stop()
	g.forget()
	if got := g.Storages(); !slices.Equal(got, []string{"stays"}) {
		t.Fatalf("left are %v", got)
	}
}

// TestKindsComeBack: a kind that was dropped and comes back has all that happened since; a watch from before reads the rest
// from the table.
func TestKindsComeBack(t *testing.T) {
	g := newGone()
	first := g.write("k", "x", false)
	second := g.write("k", "x", true)
	g.forget()
	if len(g.Storages()) != 1 {
		t.Fatal("the resource stays")
	}
	w, err := g.Watch("k", cache.Scope{}, first-1, g.log)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	third := g.write("k", "x", false)
	var got []int64
	for deadline := time.Now().Add(2 * time.Minute); len(got) < 3 && time.Now().Before(deadline); {
		<-w.Ready()
		list, _, err := w.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			got = append(got, d.Revision())
		}
	}
	if !slices.Equal(got, []int64{first, second, third}) {
		t.Fatalf("the watch has %v", got)
	}
	if !g.has(g.Snapshot("k")) || g.has(g.At("k", third)) != true || g.At("k", first) != nil {
		t.Fatal("a state is wrong")
	}
}

// TestReadsWhileKindsGo: a snapshot is the state at its revision, and a watch misses nothing, also while resources are dropped
// and come back.
func TestReadsWhileKindsGo(t *testing.T) {
	g := newGone()
	var over atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !over.Load() {
				snap := g.Snapshot("k")
				if has := g.has(snap); has != (snap.Revision%3 == 1) {
					t.Errorf("at revision %d: %v", snap.Revision, has)
					return
				}
				w, snap := g.WatchNow("k", cache.Scope{})
				if next := snap.Revision + 1; next%3 == 2 { // the object is deleted next
					for seen := false; !seen && !over.Load(); {
						select {
						case <-w.Ready():
						case <-time.After(10 * time.Millisecond):
						}
						list, _, err := w.Take(t.Context(), nil)
						if err != nil {
							t.Error(err)
							return
						}
						seen = len(list) > 0
						if seen && list[0].Revision() != next {
							t.Errorf("the event after %d is that of %d", snap.Revision, list[0].Revision())
						}
					}
				}
				w.Stop()
			}
		})
	}
	for range 500 {
		g.write("k", "x", false)
		g.write("k", "x", true)
		g.forget()
	}
	over.Store(true)
	readers.Wait()
}
