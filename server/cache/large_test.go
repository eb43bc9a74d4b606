package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

const largeSize = 4 << 20

// hugePod returns an object that needs more than the default of --max-object-bytes.
func hugePod() string { return pod("p", strings.Repeat("x", largeSize), "") }

func take(t *testing.T, w *cache.Watcher) []cache.Delivery {
	t.Helper()
	for range 4 { // while it catches up, Take returns a page at a time
		got, _, err := w.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			return got
		}
	}
	t.Fatal("no events")
	return nil
}

// TestLargeEventsThatAreSent: a large event that watchers send counts once for all, with its frame; the slowest watchers are cut
// off where such events need too much memory.
func TestLargeEventsThatAreSent(t *testing.T) {
	const events = 6
	c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 1, SlowBytes: 5 * largeSize}), newLog()
	var watchers [events][]*cache.Watcher // those that send an event
	for i := range watchers {
		name := fmt.Sprint("p", i)
		for range 3 {
			w, _ := c.WatchNow("pods", cache.Scope{Name: name})
			defer w.Stop()
			watchers[i] = append(watchers[i], w)
		}
		c.Apply([]sqlstore.Change{l.write("a", name, hugePod())})
		for _, w := range watchers[i] {
			take(t, w)
		}
		if i == 1 {
			if c.EndSlow(); watchers[0][0].EndedSlow() || watchers[0][2].EndedSlow() {
				t.Fatal("an event that three watchers send counts three times")
			}
		}
	}
	c.EndSlow()
	// The newest event is in the event log. Two of the others, with their frames, have four times largeSize.
	for i, of := range watchers {
		for _, w := range of {
			if cut := i < events-1-2; w.EndedSlow() != cut {
				t.Errorf("a watcher that sends event %d of %d is cut off: %t", i, events, w.EndedSlow())
			}
		}
	}
}

// TestLargeFrames: the frame of a large event is made once for the watchers that send it together, and does not stay in memory
// with the event, also if the object is the one that a small object replaced.
func TestLargeFrames(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		c, l := cache.New(podCatalogue()), newLog()
		w, _ := c.WatchNow("pods", cache.Scope{Filter: cache.NewFilter(selector(t, "app=x"), nil)})
		defer w.Stop()
		c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", strings.Repeat("x", largeSize), `"app":"x"`))})
		d := take(t, w)[0]
		if leaves {
			c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "small", ""))})
			d = take(t, w)[0]
		}
		made := 0
		frame := func() []byte {
			b, err := d.Frame("f", func(_ cache.EventType, it *cache.Item) ([]byte, error) {
				made++
				return append([]byte("frame "), it.JSON()...), nil
			})
			if err != nil || !strings.HasPrefix(string(b[:40]), "frame ") || len(b) < largeSize || len(b) != d.Size()+len("frame ") {
				t.Fatalf("leaves %t: %d bytes, %v", leaves, len(b), err)
			}
			return b
		}
		first := frame()
		runtime.GC()
		if second := frame(); made != 1 || &second[0] != &first[0] {
			t.Errorf("leaves %t: made %d times while it is sent", leaves, made)
		}
		runtime.KeepAlive(first)
		first = nil
		runtime.GC()
		if frame(); made != 2 {
			t.Errorf("leaves %t: made %d times: the event keeps it", leaves, made)
		}
	}
}

// TestPrepare: Apply completes the bytes that a writer has prepared. It copies a large value only if the revision has another
// number of digits than the expected one. The index of fields has the node, which is most of the object.
func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		probable int64
		copies   bool
	}{{1, false}, {9, false}, {10, true}} {
		all, l := cache.New(podCatalogue()), newLog()
		ch, p := l.write("a", "p", hugePod()), &cache.Pending{}
		p.Prepare(ch.Value, c.probable)
		ch.Aux = p
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all.Apply([]sqlstore.Change{ch})
		runtime.ReadMemStats(&after)
		if copies := after.TotalAlloc-before.TotalAlloc > largeSize*3/2; copies != c.copies {
			t.Errorf("expecting revision %d, Apply allocates %d bytes", c.probable, after.TotalAlloc-before.TotalAlloc)
		}
		it, want := all.Get("pods", "a", "p"), cache.NewOwnItem(&ch.Row, nil)
		if p.Item != it || !bytes.Equal(it.Line(), want.Line()) || it.BodySize() != want.BodySize() {
			t.Errorf("expecting revision %d, the item is %.200s", c.probable, it.Line())
		}
	}
}

// pages is a log of one page, whose changes are large.
type pages struct{ changes []sqlstore.Change }

func (p pages) Floor() int64 { return 0 }

func (p pages) Changes(_ context.Context, after int64, _ int, _ bool) ([]sqlstore.Change, error) {
	return p.changes[after : after+1], nil
}

// TestLargeEventsFromTheDatabase: four watchers send large events that were read for each of them; others wait until one has
// sent its own, and keep nothing meanwhile.
func TestLargeEventsFromTheDatabase(t *testing.T) {
	c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 1}), newLog()
	var log pages
	for range 3 {
		log.changes = append(log.changes, l.write("a", "p", hugePod()))
	}
	c.Apply(log.changes)
	var all []*cache.Watcher
	for range 5 {
		w, err := c.Watch("pods", cache.Scope{}, 0, log)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		all = append(all, w)
	}
	for _, w := range all[:4] {
		take(t, w)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got, _, err := all[4].Take(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%d events, %v: the fifth watcher does not wait", len(got), err)
	}
	all[0].Stop()
	take(t, all[4])
	all[1].Stop()
	take(t, all[2]) // the next event, in place of the one already sent
}

// slowPages is a log of one user's watchers, of which a page takes a second.
type slowPages struct{ pages }

func (p slowPages) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	time.Sleep(time.Second)
	return p.pages.Changes(ctx, after, limit, previous)
}

// TestUsersReadThePastInTurn: a user with many watches from far back does not keep those of another user waiting.
func TestUsersReadThePastInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 1}), newLog()
		var log slowPages
		for range 3 {
			log.changes = append(log.changes, l.write("a", "p", pod("p", "x", "")))
		}
		c.Apply(log.changes)
		read := func(user string) *cache.Watcher {
			w, err := c.Watch("pods", cache.Scope{User: user}, 0, log)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		var reading sync.WaitGroup
		for range 40 {
			w := read("many")
			defer w.Stop()
			reading.Go(func() {
				if _, _, err := w.Take(t.Context(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		w, began := read("one"), time.Now()
		defer w.Stop()
		take(t, w)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a page of another user came after %v", took)
		}
		reading.Wait()
	})
}

// countedPages counts the pages that are read.
type countedPages struct {
	pages
	read *atomic.Int64
}

func (p countedPages) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	p.read.Add(1)
	return p.pages.Changes(ctx, after, limit, previous)
}

// TestLargePagesAreReadTwice: a watcher that waits until it may send large objects of the past reads them once more, however many
// others wait.
func TestLargePagesAreReadTwice(t *testing.T) {
	const watchers = 8
	synctest.Test(t, func(t *testing.T) {
		c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 1}), newLog()
		log := countedPages{read: &atomic.Int64{}}
		for range 2 {
			log.changes = append(log.changes, l.write("a", "p", hugePod()))
		}
		c.Apply(log.changes)
		var sending sync.WaitGroup
		for range watchers {
			w, err := c.Watch("pods", cache.Scope{}, 0, log)
			if err != nil {
				t.Fatal(err)
			}
			sending.Go(func() {
				defer w.Stop()
				for {
					got, _, err := w.Take(t.Context(), nil)
					if err != nil {
						t.Error(err)
					}
					if err != nil || len(got) > 0 {
						break
					}
				}
				time.Sleep(time.Second) // it sends
			})
		}
		began := time.Now()
		sending.Wait()
		if read, took := log.read.Load(), time.Since(began); read > 2*watchers || took != watchers/4*time.Second {
			t.Errorf("%d pages were read in %v for %d watchers", read, took, watchers)
		}
	})
}
