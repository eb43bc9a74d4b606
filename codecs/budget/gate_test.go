package budget

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd sends bodies to a gate and knows who is in.
type crowd struct {
	t     *testing.T
	gate  *Gate
	mu    sync.Mutex
	order []string
	leave map[string]func()
}

func newCrowd(t *testing.T, atOnce int) *crowd {
	c := &crowd{t: t, gate: NewGate(), leave: map[string]func(){}}
	c.gate.atOnce = atOnce
	return c
}

// comes sends the body called name of a user, and waits until it is in or in the line.
func (c *crowd) comes(ctx context.Context, user, name string, weight int64) {
	go func() {
		leave, err := c.gate.Enter(ctx, user, weight)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.order, c.leave[name] = append(c.order, name), leave
		}
	}()
	synctest.Wait()
}

func (c *crowd) goes(name string) {
	c.mu.Lock()
	leave := c.leave[name]
	c.mu.Unlock()
	leave()
	synctest.Wait()
}

func (c *crowd) want(names ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.order, names) {
		c.t.Fatalf("let in were %q, want %q", c.order, names)
	}
}

// empty holds that a gate remembers nothing of those who have left.
func (c *crowd) empty() {
	c.t.Helper()
	if g := c.gate; g.used != 0 || g.running != 0 || len(g.users) != 0 || len(g.waiting) != 0 {
		c.t.Errorf("left behind: %d bytes, %d running, %d users, %d in the line", g.used, g.running, len(g.users), len(g.waiting))
	}
}

// TestGateTurns: users take turns, however many bodies one of them has sent before.
func TestGateTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			c.comes(t.Context(), "a", name, Small)
		}
		c.comes(t.Context(), "b", "b1", Small)
		c.comes(t.Context(), "b", "light", Small-1)
		c.want("a1", "light")
		c.goes("light")
		for _, name := range []string{"a1", "b1", "a2", "a3", "a4"} {
			c.goes(name)
		}
		c.want("a1", "light", "b1", "a2", "a3", "a4")
		c.empty()
	})
}

// TestGateReturns: users who come back again and again do not keep others waiting.
func TestGateReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.comes(t.Context(), "b", "b1", Small)
		c.comes(t.Context(), "b", "b2", Small)
		c.comes(t.Context(), "x", "x1", Small)
		c.comes(t.Context(), "y", "y1", Small)
		c.goes("b1")
		c.goes("x1")
		c.comes(t.Context(), "x", "x2", Small)
		c.goes("y1")
		c.comes(t.Context(), "y", "y2", Small)
		c.want("b1", "x1", "y1", "b2")
		for _, name := range []string{"b2", "x2", "y2"} {
			c.goes(name)
		}
		c.empty()
	})
}

// TestGateShare: one user never has the whole room, and a large body is not overtaken for
// ever.
func TestGateShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100)
		c.comes(t.Context(), "a", "a1", Share)
		c.comes(t.Context(), "a", "a2", Small)
		c.want("a1")
		c.comes(t.Context(), "b", "b1", Small)
		c.comes(t.Context(), "c", "c1", Together) // counts for a share, which is not left
		c.want("a1", "b1")
		c.comes(t.Context(), "d", "d1", Small)
		c.want("a1", "b1")
		c.goes("b1")
		c.want("a1", "b1", "c1")
		c.goes("c1")
		c.want("a1", "b1", "c1", "d1")
		c.goes("a1")
		c.want("a1", "b1", "c1", "d1", "a2")
		c.goes("d1")
		c.goes("a2")
		c.empty()
	})
}

// TestGateDawdlers: who takes long, for whatever reason, does not keep others waiting.
func TestGateDawdlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.comes(t.Context(), "a", "a1", Memory)
		c.comes(t.Context(), "b", "b1", Memory)
		c.want("a1")
		time.Sleep(Turn)
		synctest.Wait()
		c.want("a1", "b1")
		c.goes("a1")
		c.goes("b1")
		c.empty()
	})
}

// TestGateGivenUp: who is gone takes no turn.
func TestGateGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.comes(t.Context(), "a", "a1", Memory)
		ctx, cancel := context.WithCancel(t.Context())
		c.comes(ctx, "b", "b1", Memory)
		c.comes(t.Context(), "c", "c1", Memory)
		cancel()
		synctest.Wait()
		c.goes("a1")
		c.want("a1", "c1")
		c.goes("c1")
		c.empty()
	})
}
