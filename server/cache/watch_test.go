package cache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// podState is the state of an object in the model.
type podState struct{ namespace, name, node, app string }

func (p podState) json() string {
	return pod(p.name, p.node, fmt.Sprintf(`"app":%q`, p.app))
}

// wish is a scope for the cache and for the model.
type wish struct {
	about string
	scope cache.Scope
	wants func(podState) bool
}

func wishes(t testing.TB) []wish {
	byNode := func(node string) *cache.Filter {
		return cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: node}})
	}
	return []wish{
		{"all", cache.Scope{}, func(podState) bool { return true }},
		{"namespace", cache.Scope{Namespace: "ns1"}, func(p podState) bool { return p.namespace == "ns1" }},
		{"name", cache.Scope{Namespace: "ns0", Name: "p3"}, func(p podState) bool { return p.namespace == "ns0" && p.name == "p3" }},
		{"name everywhere", cache.Scope{Filter: cache.NewFilter(nil, []cache.FieldTerm{{Index: cache.FieldName, Value: "p1"}})},
			func(p podState) bool { return p.name == "p1" }},
		{"namespace by field", cache.Scope{Filter: cache.NewFilter(nil, []cache.FieldTerm{{Index: cache.FieldNamespace, Value: "ns0"}})},
			func(p podState) bool { return p.namespace == "ns0" }},
		{"node", cache.Scope{Filter: byNode("n1")}, func(p podState) bool { return p.node == "n1" }},
		{"node in namespace", cache.Scope{Namespace: "ns1", Filter: byNode("n0")},
			func(p podState) bool { return p.node == "n0" && p.namespace == "ns1" }},
		{"no node", cache.Scope{Filter: byNode("")}, func(p podState) bool { return p.node == "" }},
		{"not node", cache.Scope{Filter: cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: "n1", Not: true}})},
			func(p podState) bool { return p.node != "n1" }},
		{"label", cache.Scope{Filter: cache.NewFilter(selector(t, "app=a"), nil)}, func(p podState) bool { return p.app == "a" }},
		{"label and node", cache.Scope{Filter: cache.NewFilter(selector(t, "app in (a,b)"), []cache.FieldTerm{{Index: 0, Value: "n1"}})},
			func(p podState) bool { return (p.app == "a" || p.app == "b") && p.node == "n1" }},
	}
}

// history is the model: the log, with states.
type history struct {
	*log
	states [][2]*podState // before and after each revision
	live   map[string]podState
}

func (h *history) step(r *rand.Rand) sqlstore.Change {
	p := podState{
		namespace: fmt.Sprint("ns", r.IntN(2)), name: fmt.Sprint("p", r.IntN(5)),
		node: []string{"", "n0", "n1"}[r.IntN(3)], app: []string{"a", "b", "c"}[r.IntN(3)],
	}
	key := p.namespace + "/" + p.name
	var before *podState
	if old, ok := h.live[key]; ok {
		before = &old
		if r.IntN(4) == 0 {
			delete(h.live, key)
			h.states = append(h.states, [2]*podState{before, nil})
			return h.remove(p.namespace, p.name)
		}
	}
	h.live[key] = p
	h.states = append(h.states, [2]*podState{before, &p})
	return h.write(p.namespace, p.name, p.json())
}

// expected returns the events that a watch must deliver after a revision.
func (h *history) expected(w wish, after int64) (out []string) {
	for i, s := range h.states {
		revision := int64(i + 1)
		if revision <= after {
			continue
		}
		was, is := s[0] != nil && w.wants(*s[0]), s[1] != nil && w.wants(*s[1])
		switch {
		case was && is:
			out = append(out, shown(revision, cache.Modified, s[1]))
		case is:
			out = append(out, shown(revision, cache.Added, s[1]))
		case was:
			out = append(out, shown(revision, cache.Deleted, s[0]))
		}
	}
	return out
}

func shown(revision int64, t cache.EventType, p *podState) string {
	return fmt.Sprintf("%d %s %s/%s node=%s app=%s", revision, t, p.namespace, p.name, p.node, p.app)
}

func delivered(d cache.Delivery) string {
	it := d.Item()
	m := it.Meta()
	return shown(it.Revision, d.Type, &podState{it.Namespace, it.Name, m.Fields[0], m.Labels["app"]})
}

// readUntil collects a watcher's deliveries behind a revision until it has been given
// everything up to another, or is cut off, and checks each progress mark.
func readUntil(ctx context.Context, t *testing.T, w *cache.Watcher, last, until int64) (out []string, _ int64) {
	var batch []cache.Delivery
	var mark int64
	for {
		var err error
		batch, mark, err = w.Take(ctx, batch)
		if err != nil {
			if !errors.Is(err, cache.ErrSlow) {
				t.Error(err)
			}
			return out, last
		}
		for _, d := range batch {
			if d.Revision() <= last {
				t.Errorf("revision %d after mark or event %d", d.Revision(), last)
			}
			last = d.Revision()
			out = append(out, delivered(d))
		}
		if len(batch) == 0 {
			// Everything up to mark has been given: nothing at or below it may follow.
			last = max(last, mark)
		}
		if len(batch) == 0 && mark >= until {
			return out, last
		}
		if len(batch) == 0 {
			select {
			case <-w.Ready():
			case <-time.After(time.Millisecond): // marks rise without events
			case <-ctx.Done():
				t.Error("the watch hangs")
				return out, last
			}
		}
	}
}

// resume is readUntil with a new watcher, and another one where one was cut off as too
// slow, as clients do.
func resume(ctx context.Context, t *testing.T, c *cache.Cache, l cache.Log, scope cache.Scope, last, until int64) (out []string, _ int64) {
	for last < until && ctx.Err() == nil {
		w, err := c.Watch("pods", scope, last, l)
		if err != nil {
			t.Error(err)
			return out, last
		}
		var more []string
		more, last = readUntil(ctx, t, w, last, until)
		w.Stop()
		out = append(out, more...)
	}
	return out, last
}

func TestWatchProperties(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const total = 600
	h := &history{log: newLog(), live: map[string]podState{}}
	var batches [][]sqlstore.Change
	for n := 0; n < total; {
		batch := make([]sqlstore.Change, 0, 8)
		for range min(1+r.IntN(8), total-n) {
			batch = append(batch, h.step(r))
			n++
		}
		batches = append(batches, batch)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// A small ring, so that watches from far back are read from the log.
	c := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 50})
	var wg sync.WaitGroup
	for i, w := range wishes(t) {
		for k := range 3 {
			after := int64(r.IntN(total))
			stop := after + int64(r.IntN(total))/2
			wg.Go(func() {
				// Some start in the past, some wait for future events.
				if k == 0 {
					_ = c.WaitFor(ctx, min(after+200, total))
				}
				got, last := resume(ctx, t, c, h, w.scope, after, min(stop, total))
				rest, _ := resume(ctx, t, c, h, w.scope, last, total) // where the first ended
				got = append(got, rest...)
				if want := h.expected(w, after); !slices.Equal(got, want) {
					t.Errorf("%s (%d) after %d: %d events, want %d\n%s", w.about, i, after, len(got), len(want), firstDifference(got, want))
				}
			})
		}
		wg.Go(func() { listThenWatch(ctx, t, c, h, w, total) })
	}
	for i, batch := range batches {
		c.Apply(batch)
		if i%7 == 0 {
			time.Sleep(100 * time.Microsecond) // lets watchers come in between
		}
	}
	wg.Wait()
	if n := c.Watchers("pods"); n != 0 {
		t.Errorf("%d watchers are left behind", n)
	}
}

// listThenWatch takes a snapshot with a watcher behind it: together they must lead
// to the final state.
func listThenWatch(ctx context.Context, t *testing.T, c *cache.Cache, h *history, w wish, total int64) {
	watcher, snap := c.WatchNow("pods", w.scope)
	defer watcher.Stop()
	var have []string
	snap.Select(w.scope.Filter, w.scope.Namespace, cache.Position{}, func(it *cache.Item) bool {
		if w.scope.Name == "" || it.Name == w.scope.Name {
			have = append(have, it.Namespace+"/"+it.Name)
		}
		return true
	})
	live := map[string]bool{}
	for _, s := range h.states[:snap.Revision] {
		if s[0] != nil {
			delete(live, s[0].namespace+"/"+s[0].name)
		}
		if s[1] != nil && w.wants(*s[1]) {
			live[s[1].namespace+"/"+s[1].name] = true
		}
	}
	want := slices.Sorted(maps.Keys(live))
	if !slices.Equal(have, want) {
		t.Errorf("%s: snapshot at %d has %v, want %v", w.about, snap.Revision, have, want)
	}
	got, last := readUntil(ctx, t, watcher, snap.Revision, total)
	more, _ := resume(ctx, t, c, h, w.scope, last, total)
	got = append(got, more...)
	if want := h.expected(w, snap.Revision); !slices.Equal(got, want) {
		t.Errorf("%s after a list at %d: %s", w.about, snap.Revision, firstDifference(got, want))
	}
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("event %d: %q, want %q", i, g, w)
		}
	}
	return "equal"
}

func TestSlowWatcherIsCutOff(t *testing.T) {
	c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 1000}), newLog()
	slow, _ := c.WatchNow("pods", cache.Scope{})
	defer slow.Stop()
	fair, _ := c.WatchNow("pods", cache.Scope{})
	defer fair.Stop()
	var batch []cache.Delivery
	// The first Take ends the grace that new watchers have for their first list.
	if _, _, err := slow.Take(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range 5000 {
		c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
		var err error
		if batch, _, err = fair.Take(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		n += len(batch)
	}
	if n != 5000 {
		t.Errorf("the other watcher was given %d events", n)
	}
	got, _, err := slow.Take(t.Context(), nil)
	if err != nil || len(got) > 512 {
		t.Errorf("%d events waited for the slow watcher: %v", len(got), err)
	}
	if _, _, err := slow.Take(t.Context(), nil); !errors.Is(err, cache.ErrSlow) {
		t.Errorf("the slow watcher ends with %v", err)
	}
}

// takeAll takes until nothing is left, and counts.
func takeAll(t *testing.T, w *cache.Watcher) (events int, err error) {
	t.Helper()
	for {
		select {
		case <-w.Ready():
		default:
			return events, nil
		}
		batch, _, err := w.Take(t.Context(), nil)
		if err != nil {
			return events, err
		}
		for i, d := range batch {
			if d.Revision() <= 0 || i > 0 && batch[i-1].Revision() >= d.Revision() {
				t.Fatal("events out of order")
			}
		}
		events += len(batch)
	}
}

// TestLateWatcherCatchesUp: a watcher that takes nothing for a while misses no recent event,
// and one that still sends its initial objects misses none at all.
func TestLateWatcherCatchesUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		ring   int
		begun  bool
		log    bool
		events int
		slow   bool
	}{
		{"recent", 5000, true, false, 4000, false},
		{"not recent", 1000, true, true, 512, true},
		{"first list, recent", 5000, false, false, 4000, false},
		{"first list", 1000, false, true, 4000, false},
		{"first list, without a log", 1000, false, false, 512, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: c.ring}), newLog()
			scope := cache.Scope{}
			if c.log {
				scope.Log = l
			}
			w, _ := mem.WatchNow("pods", scope)
			defer w.Stop()
			if c.begun {
				if _, _, err := w.Take(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			for range 4000 {
				mem.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
			}
			got, err := takeAll(t, w)
			if got != c.events || errors.Is(err, cache.ErrSlow) != c.slow {
				t.Errorf("%d events, want %d; %v", got, c.events, err)
			}
			if c.slow {
				return
			}
			mem.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
			if got, err := takeAll(t, w); got != 1 || err != nil {
				t.Errorf("afterwards %d events, %v", got, err)
			}
		})
	}
}

// TestNothingIsKeptForSlowWatchers: the queue of a watcher that takes nothing is bounded,
// and so is the memory that only such watchers keep alive.
func TestNothingIsKeptForSlowWatchers(t *testing.T) {
	c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 10}), newLog()
	const size = 400 << 10
	large := pod("p", strings.Repeat("x", size), "")
	var watchers []*cache.Watcher
	for i := range 300 { // each keeps an object that no other does
		w, _ := c.WatchNow("pods", cache.Scope{Name: fmt.Sprint("p", i)})
		defer w.Stop()
		if _, _, err := w.Take(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		watchers = append(watchers, w)
		c.Apply([]sqlstore.Change{l.write("a", fmt.Sprint("p", i), large)})
	}
	c.EndSlow()
	held, cut := 0, 0
	for i, w := range watchers {
		batch, _, err := w.Take(t.Context(), nil)
		if errors.Is(err, cache.ErrSlow) {
			if cut++; cut != i+1 {
				t.Errorf("watcher %d is cut off, and a slower one is not", i)
			}
		}
		held += len(batch) * size
	}
	if held > 70<<20 || held < 50<<20 {
		t.Errorf("%d MB are kept", held>>20)
	}
}

// TestMarksDoNotFall looks at the mark while the rest of a batch, of which a watcher has
// its event already, is still being applied.
func TestMarksDoNotFall(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	w, _ := c.WatchNow("pods", cache.Scope{})
	defer w.Stop()
	batch := []sqlstore.Change{l.write("a", "p", pod("p", "", ""))}
	for i := range 2000 {
		other := l.write("a", fmt.Sprint("q", i), pod("q", "", ""))
		other.Key.Resource = "zz"
		batch = append(batch, other)
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.Apply(batch) })
	defer wg.Wait()
	<-w.Ready()
	var last int64
	for last < int64(len(batch)) {
		_, mark, err := w.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if mark < max(last, 1) {
			t.Fatalf("mark %d after %d", mark, max(last, 1))
		}
		last = mark
	}
}

// TestLateFirstTake: a watch that memory reached when it was made is not cut off because
// memory has moved on before its first Take.
func TestLateFirstTake(t *testing.T) {
	l := newLog()
	c := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 2})
	w, err := c.Watch("pods", cache.Scope{}, 0, l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range 1000 {
		c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
	}
	if got, _ := readUntil(t.Context(), t, w, 0, 1000); len(got) != 1000 {
		t.Errorf("%d events of 1000", len(got))
	}
}

func TestWatchBelowTheFloor(t *testing.T) {
	l := newLog()
	c := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 2})
	for range 10 {
		c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
	}
	l.floor = 5
	w, err := c.Watch("pods", cache.Scope{}, 5, l) // exactly the floor
	if err != nil {
		t.Fatal(err)
	}
	got, _ := readUntil(t.Context(), t, w, 5, 10)
	w.Stop()
	if len(got) != 5 {
		t.Errorf("from the floor: %v", got)
	}
	var gone *sqlstore.CompactedError
	if _, err := c.Watch("pods", cache.Scope{}, 4, l); !errors.As(err, &gone) {
		t.Errorf("below the floor: %v", err)
	}
	// The floor rises while the history is read.
	if w, err = c.Watch("pods", cache.Scope{}, 6, l); err != nil {
		t.Fatal(err)
	}
	l.floor = 7
	if _, _, err := w.Take(t.Context(), nil); !errors.As(err, &gone) {
		t.Errorf("overtaken by the floor: %v", err)
	}
	w.Stop()
}

func TestWatchFromTheFuture(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	w, err := c.Watch("pods", cache.Scope{}, 3, l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range 5 {
		c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
	}
	batch, _, err := w.Take(t.Context(), nil)
	if err != nil || len(batch) != 2 || batch[0].Revision() != 4 {
		t.Errorf("%v %v", batch, err)
	}
}

func TestFramesAreMadeOnce(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	made := 0
	var watchers []*cache.Watcher
	for range 10 {
		w, _ := c.WatchNow("pods", cache.Scope{})
		watchers = append(watchers, w)
		defer w.Stop()
	}
	c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
	var first []byte
	for _, w := range watchers {
		batch, _, err := w.Take(t.Context(), nil)
		if err != nil || len(batch) != 1 {
			t.Fatal(batch, err)
		}
		frame, err := batch[0].Frame("json", func(cache.EventType, *cache.Item) ([]byte, error) {
			made++
			return []byte("frame"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = frame
		}
		if &frame[0] != &first[0] {
			t.Error("a frame of its own")
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

// counted is a log that notes how many read it at once.
type counted struct {
	cache.Log
	now, most atomic.Int64
}

func (c *counted) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	time.Sleep(time.Millisecond)
	return c.Log.Changes(ctx, after, limit, previous)
}

// TestReplaysAreFew: however many watches begin far back, few of them read the log at once.
func TestReplaysAreFew(t *testing.T) {
	c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 10}), newLog()
	for range 100 {
		c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
	}
	log := &counted{Log: l}
	var wg sync.WaitGroup
	for range 50 {
		w, err := c.Watch("pods", cache.Scope{}, 1, log)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer w.Stop()
			for got := 0; got < 99; {
				<-w.Ready()
				batch, _, err := w.Take(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				got += len(batch)
			}
		})
	}
	wg.Wait()
	if n := log.most.Load(); n > 4 {
		t.Errorf("%d read the log at once", n)
	}
}
