package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// pastLog is a log with times, that counts the reads of it.
type pastLog struct {
	*log
	reads atomic.Int64
	most  atomic.Int64  // changes that were asked for at once
	wait  chan struct{} // Backfill reads once it is closed
}

func (p *pastLog) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	p.reads.Add(1)
	p.most.Store(max(p.most.Load(), int64(limit)))
	<-p.wait
	changes, err := p.log.Changes(ctx, after, limit, previous)
	for i := range changes {
		changes[i].WrittenAt = time.Now()
	}
	return changes, err
}

func (p *pastLog) LastChanges(_ context.Context, after, upTo int64) (map[string]int64, error) {
	last := map[string]int64{}
	for _, ch := range p.changes {
		if ch.Revision > after && ch.Revision <= upTo {
			last[ch.Key.Resource] = ch.Revision
		}
	}
	return last, nil
}

func newPastLog(l *log) *pastLog {
	p := &pastLog{log: l, wait: make(chan struct{})}
	close(p.wait)
	return p
}

// TestRecall: after a start the event logs have earlier changes, and watches see the same as if they read the table.
func TestRecall(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	const total, more = 620, 20 // ten pages
	h := &history{log: newLog(), live: map[string]podState{}}
	for range total {
		h.step(r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, bounds := range []cache.Config{{RingEvents: 300}, {}} {
		c := cache.NewWith(podCatalogue(), bounds)
		if _, err := c.Load(ctx, table{h.log}); err != nil {
			t.Fatal(err)
		}
		whole := bounds.RingEvents == 0
		var during sync.WaitGroup
		if whole { // changes of after the start come meanwhile
			var later []sqlstore.Change
			for range more {
				later = append(later, h.step(r))
			}
			during.Go(func() {
				for _, ch := range later {
					c.Apply([]sqlstore.Change{ch})
				}
			})
		}
		p := newPastLog(h.log)
		if err := c.Backfill(ctx, p); err != nil {
			t.Fatal(err)
		}
		during.Wait()
		if n := p.most.Load(); n > 64 {
			t.Errorf("%d changes were read at once: with values of 1.5 MB each, and of what was there before, that is %d MB", n, 3*n)
		}
		read, until := p.reads.Load(), c.Revision()
		for i, w := range wishes(t) {
			if i%4 > 0 {
				continue
			}
			for _, after := range []int64{1, 250, total - 10} {
				got, _ := resume(ctx, t, c, p, w.scope, after, until)
				if want := h.expected(w, after); !slices.Equal(got, want) {
					t.Errorf("%+v: %s after %d: %d events, want %d\n%s", bounds, w.about, after, len(got), len(want), firstDifference(got, want))
				}
			}
		}
		if whole && p.reads.Load() != read {
			t.Errorf("watches read the log %d times", p.reads.Load()-read)
		}
		if s := c.At("pods", total-15); s == nil {
			t.Error("memory does not have a state of before the start")
		}
		c.Close()
	}
}

// TestRecallOfQuietResources: resources that changed long ago, or never, are not read, and watchers wait for Backfill.
func TestRecallOfQuietResources(t *testing.T) {
	l := newLog()
	l.change(sqlstore.Key{Resource: "nodes", Name: "n"}, `{"metadata":{"name":"n"}}`, false)
	for i := range 500 {
		l.write("a", fmt.Sprint("p", i%10), pod("p", "n1", ""))
	}
	c := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 20})
	defer c.Close()
	if _, err := c.Load(t.Context(), table{l}); err != nil {
		t.Fatal(err)
	}
	p := &pastLog{log: l, wait: make(chan struct{})}
	recalled := make(chan error, 1)
	go func() { recalled <- c.Backfill(t.Context(), p) }()
	for p.reads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	var taking sync.WaitGroup
	for _, storage := range []string{"nodes", "secrets"} {
		w, err := c.Watch(storage, cache.Scope{}, 1, p)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		taking.Go(func() {
			for upTo := int64(0); upTo < 501; {
				got, given, err := w.Take(t.Context(), nil)
				if err != nil || len(got) > 0 {
					t.Errorf("%s: %d events, %v", storage, len(got), err)
					return
				}
				if upTo = given; upTo < 1 {
					t.Errorf("%s: complete up to %d, before the watch begins", storage, upTo)
				}
			}
		})
	}
	close(p.wait)
	if err := <-recalled; err != nil {
		t.Fatal(err)
	}
	taking.Wait()
	if n := p.reads.Load(); n != 1 {
		t.Errorf("the log was read %d times, want once", n)
	}
}
