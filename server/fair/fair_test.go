package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/fair"
)

// TestQueueTurns: keys take turns, values of one key come in their order, and one that is put back comes at its old place.
func TestQueueTurns(t *testing.T) {
	var q fair.Queue[string, string]
	for _, v := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
		q.Add(v[:1], v)
	}
	next := func(want string) {
		t.Helper()
		key, v, ok := q.Next(nil)
		if v != want || ok != (want != "") || ok && key != want[:1] {
			t.Fatalf("%q of %q is next, want %q", v, key, want)
		}
	}
	next("a1")
	q.Add("d", "d1") // comes before a, which was served just now, and behind the others
	next("b1")
	next("c1")
	q.Add("c", "c2") // comes back, and behind all that wait
	q.Return("a", 1, "a1 again")
	next("d1")
	next("a1 again")
	next("b2")
	next("c2")
	ticket := q.Add("a", "a4")
	if !q.Remove("a", ticket) || q.Remove("a", ticket) || q.Remove("nobody", 1) || q.Waiting("a") != 2 || q.Len() != 2 {
		t.Errorf("%d wait, %d of them under a", q.Len(), q.Waiting("a"))
	}
	q.Add("e", "e1")
	if _, v, _ := q.Peek(func(key, _ string) bool { return key != "a" }); v != "e1" {
		t.Errorf("%q is next of those that may go", v)
	}
	if _, v, ok := q.Next(func(string, string) bool { return false }); ok {
		t.Errorf("%q goes, and none may", v)
	}
	next("a2")
	next("e1")
	next("a3")
	next("")
	if q.Len() != 0 || q.Waiting("a") != 0 {
		t.Errorf("%d are left", q.Len())
	}
}

// TestQueueOvertakesNobody: whatever values come, go and are canceled, a value waits for at most as many
// turns as there are waiting keys, in addition to those of its own key, and each comes out once.
func TestQueueOvertakesNobody(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q fair.Queue[int, int]
	type entry struct {
		key       int
		ticket    uint64
		may, been int // turns that it may wait for, and those that there were
	}
	waiting := map[int]*entry{}
	served := map[int]int{}
	for n := range 20_000 {
		switch k := random.IntN(20); {
		case random.IntN(2) == 0:
			others, own := map[int]bool{}, 0
			for _, e := range waiting {
				if others[e.key] = true; e.key == k {
					own++
				}
			}
			waiting[n] = &entry{key: k, ticket: q.Add(k, n), may: (own + 1) * (20 + 1)}
			if own == 0 {
				waiting[n].may = len(others) + 20 // each of those that are new since may come before it once
			}
		case random.IntN(10) == 0:
			for v, e := range waiting {
				if !q.Remove(e.key, e.ticket) {
					t.Fatalf("%d does not wait", v)
				}
				delete(waiting, v)
				break
			}
		default:
			key, v, ok := q.Next(nil)
			if !ok {
				if len(waiting) != 0 {
					t.Fatalf("%d are lost", len(waiting))
				}
				continue
			}
			if e := waiting[v]; e == nil || e.key != key || e.been > e.may {
				t.Fatalf("%d of %d: %+v", v, key, e)
			}
			delete(waiting, v)
			served[key]++
			for _, e := range waiting {
				e.been++
			}
		}
		if q.Len() != len(waiting) {
			t.Fatalf("%d wait, want %d", q.Len(), len(waiting))
		}
	}
	if len(served) != 20 {
		t.Errorf("%d keys had turns", len(served))
	}
}

// crowd sends requests to a gate and tracks which are admitted.
type crowd struct {
	t      *testing.T
	gate   *fair.Gate
	mu     sync.Mutex
	order  []string
	places map[string]*fair.Place
	errs   []error
}

func newCrowd(t *testing.T, l fair.Limits) *crowd {
	return &crowd{t: t, gate: fair.NewGate(l), places: map[string]*fair.Place{}}
}

// comes sends the request called name of a user, and waits until it is in or waits.
func (c *crowd) comes(ctx context.Context, user, name string, weight int64) {
	go func() {
		p, err := c.gate.Enter(ctx, user, weight)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.errs = append(c.errs, err)
			return
		}
		c.order, c.places[name] = append(c.order, name), p
	}()
	synctest.Wait()
}

func (c *crowd) goes(name string) {
	c.mu.Lock()
	p := c.places[name]
	c.mu.Unlock()
	p.Leave()
	p.Leave() // more than once does nothing
	synctest.Wait()
}

// over reports whether the turn of a request has ended.
func (c *crowd) over(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[name].TurnEnded()
}

// refused returns the errors of the requests that were not let in.
func (c *crowd) refused() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.errs)
}

func (c *crowd) want(names ...string) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.order, names) {
		c.t.Fatalf("let in were %q, want %q", c.order, names)
	}
}

// empty holds that all places and all room are there again.
func (c *crowd) empty(places int, room int64) {
	c.t.Helper()
	var all []*fair.Place
	for i := range places {
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		p, err := c.gate.Enter(ctx, fmt.Sprint("last", i), room/int64(places))
		if err != nil {
			c.t.Errorf("place %d of %d is still taken: %v", i, places, err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.Leave()
	}
}

// TestGateTurns: users take turns, however many requests one of them has sent before, and light requests do
// not wait.
func TestGateTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 1, Free: 8})
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			c.comes(t.Context(), "a", name, 8)
		}
		c.comes(t.Context(), "b", "b1", 8)
		c.comes(t.Context(), "b", "light", 7)
		c.want("a1", "light")
		for _, name := range []string{"light", "a1", "b1", "a2", "a3", "a4"} {
			c.goes(name)
		}
		c.want("a1", "light", "b1", "a2", "a3", "a4")
		c.empty(1, 8)
	})
}

// TestGateReturns: users that come back again and again do not keep others waiting.
func TestGateReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 1})
		for _, name := range []string{"b1", "b2", "x1", "y1"} {
			c.comes(t.Context(), name[:1], name, 0)
		}
		c.goes("b1")
		c.goes("x1")
		c.comes(t.Context(), "x", "x2", 0)
		c.goes("y1")
		c.comes(t.Context(), "y", "y2", 0)
		c.want("b1", "x1", "y1", "b2")
		for _, name := range []string{"b2", "x2", "y2"} {
			c.goes(name)
		}
		c.empty(1, 0)
	})
}

// TestGateShare: one user never has the whole room, and a large request is not overtaken forever.
func TestGateShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 100, Weight: 40, KeyWeight: 20})
		c.comes(t.Context(), "a", "a1", 20)
		c.comes(t.Context(), "a", "a2", 1)
		c.want("a1")
		c.comes(t.Context(), "b", "b1", 1)
		c.comes(t.Context(), "c", "c1", 1000) // counts for a share, which is not left
		c.want("a1", "b1")
		c.comes(t.Context(), "d", "d1", 1)
		c.want("a1", "b1")
		c.goes("b1")
		c.want("a1", "b1", "c1")
		c.goes("c1")
		c.want("a1", "b1", "c1", "d1")
		c.goes("a1")
		c.want("a1", "b1", "c1", "d1", "a2")
		c.goes("d1")
		c.goes("a2")
		c.empty(2, 40)
	})
}

// TestGateLeavesRoom: three users with many requests leave room for others.
func TestGateLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 100, Weight: 24, KeyWeight: 8})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		var in []string
		for _, user := range []string{"a8", "b8", "c4", "d2", "e1", "f1", "g0"} {
			for i := range 9 {
				name := fmt.Sprint(user, "-", i)
				if c.comes(ctx, user, name, 1); i < int(user[1]-'0') {
					in = append(in, name)
				}
			}
			c.want(in...)
		}
		c.goes("a8-0") // g has none yet
		c.want(append(in, "g0-0")...)
	})
}

// TestGateGivenUp: a request that has ended takes no turn, and does not stand in the way of one that fits.
func TestGateGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 2, Weight: 10})
		c.comes(t.Context(), "a", "a1", 5)
		ctx, cancel := context.WithCancel(t.Context())
		c.comes(ctx, "b", "b1", 9)
		c.comes(t.Context(), "c", "c1", 5)
		c.want("a1")
		cancel()
		c.want("a1", "c1")
		if errs := c.refused(); len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("the errors are %v", errs)
		}
		c.goes("a1")
		c.goes("c1")
		c.empty(2, 10)
	})
}

// TestGateTurnsEnd: a request that takes long, for whatever reason, does not keep others waiting, but keeps its room; and a
// place stays empty for the time that the gate's owner sets.
func TestGateTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		open.Store(1)
		var rested []time.Duration
		c := newCrowd(t, fair.Limits{Open: func() int { return int(open.Load()) }, Turn: 2 * time.Second, Weight: 2, Pause: func(took time.Duration) time.Duration {
			rested = append(rested, took)
			return time.Second
		}})
		for _, name := range []string{"a1", "b1", "c1"} {
			c.comes(t.Context(), name[:1], name, 1)
		}
		c.want("a1")
		time.Sleep(2 * time.Second)
		c.want("a1")
		if !c.over("a1") {
			t.Error("the turn is not over")
		}
		time.Sleep(time.Second)
		c.want("a1", "b1")
		time.Sleep(time.Second)
		c.goes("b1")
		time.Sleep(time.Second)
		c.want("a1", "b1", "c1")
		if want := []time.Duration{2 * time.Second, time.Second}; !slices.Equal(rested, want) {
			t.Errorf("the turns took %v, want %v", rested, want)
		}
		open.Store(0)
		c.goes("a1")
		c.goes("c1")
		c.comes(t.Context(), "d", "d1", 1)
		time.Sleep(time.Minute)
		c.want("a1", "b1", "c1")
		open.Store(1)
		c.comes(t.Context(), "e", "e1", 1)
		c.want("a1", "b1", "c1", "d1")
		c.goes("d1")
		time.Sleep(time.Minute)
		c.want("a1", "b1", "c1", "d1", "e1")
		c.goes("e1")
		time.Sleep(time.Minute)
		c.empty(1, 2)
	})
}

// contentionEvery is how often a gate calls the functions of OnContention.
const contentionEvery = time.Second

// TestGateWanted: who has room hears that others wait for it, until it leaves, and not of those who wait for their own share.
func TestGateWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 100, Weight: 4, KeyWeight: 2})
		c.comes(t.Context(), "a", "a1", 2)
		c.comes(t.Context(), "b", "b1", 2)
		var first, second atomic.Int64
		c.places["a1"].OnContention(func() { first.Add(1) })
		c.places["b1"].OnContention(func() { second.Add(1) })
		heard := func(want int64) {
			t.Helper()
			if a, b := first.Load(), second.Load(); a != want || b != want {
				t.Errorf("they heard %d and %d times that another waits, want %d", a, b, want)
			}
		}
		c.comes(t.Context(), "a", "a2", 2)
		time.Sleep(time.Minute + contentionEvery/2)
		c.want("a1", "b1")
		heard(0)
		c.comes(t.Context(), "c", "c1", 1)
		time.Sleep(3 * contentionEvery)
		heard(3)
		c.goes("b1")
		time.Sleep(time.Minute)
		heard(3)
		c.goes("a1")
		c.want("a1", "b1", "c1", "a2")
		c.goes("c1")
		c.goes("a2")
		time.Sleep(time.Minute)
		c.empty(2, 4)
	})
}

// TestTryEnter: a request that does not wait is let in if there is a place for it, and overtakes none that waits.
func TestTryEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, fair.Limits{Places: 2, Weight: 4})
		first, ok := c.gate.TryEnter("a", 3)
		if !ok {
			t.Fatal("it is not let in")
		}
		if _, ok := c.gate.TryEnter("a", 2); ok {
			t.Error("there is more room than there should be")
		}
		c.comes(t.Context(), "b", "b1", 2)
		if _, ok := c.gate.TryEnter("a", 1); ok {
			t.Error("one that waits is overtaken")
		}
		first.Leave()
		c.want("b1")
		c.goes("b1")
		c.empty(2, 4)
	})
}

// TestNoGate: without a gate everything is let in.
func TestNoGate(t *testing.T) {
	var g *fair.Gate
	p, err := g.Enter(t.Context(), "a", 1<<40)
	if err != nil || p.TurnEnded() {
		t.Error(err, p.TurnEnded())
	}
	p.OnContention(func() { t.Error("nothing waits") })
	p.Leave()
	if p, ok := g.TryEnter("a", 1<<40); !ok || p.TurnEnded() {
		t.Error(ok, p.TurnEnded())
	}
}
