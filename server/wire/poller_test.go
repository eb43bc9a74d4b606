package wire_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// counted counts how often it is resumed.
type counted struct {
	n    atomic.Int32
	came chan struct{}
}

func (c *counted) Resume() {
	c.n.Add(1)
	c.came <- struct{}{}
}

// TestPoller: connections that are parked need no goroutine each; one is resumed, once for each time
// that it is parked, when its client sends something or disconnects, or when it is closed here.
func TestPoller(t *testing.T) {
	p := wire.NewPoller()
	defer p.Close()
	const conns = 60
	before := runtime.NumGoroutine()
	came := make(chan struct{}, conns)
	all := make([]*counted, conns)
	await := func(c *counted, want int32) {
		t.Helper()
		select {
		case <-came:
		case <-time.After(2 * time.Minute):
			t.Fatal("nothing is resumed")
		}
		if n := c.n.Load(); n != want {
			t.Errorf("resumed %d times, not %d", n, want)
		}
	}
	resume := make([]func(i int), conns)
	for i := range all {
		near, far := connect(t)
		c, id := &counted{came: came}, uint64(i)<<32|7
		all[i] = c
		p.Park(near, id, c)
		resume[i] = func(kind int) {
			switch kind {
			case 0:
				_, _ = far.Write([]byte("x")) // a failure shows as one that is not resumed
				await(c, 1)
				if n, err := near.Read(make([]byte, 10)); n != 1 || err != nil {
					t.Error(n, err)
				}
				p.Park(near, id, c) // nothing is there any more
				_ = far.Close()
				await(c, 2)
			case 1:
				_ = far.Close()
				await(c, 1)
			case 2:
				_ = near.Close()
				p.Wake(id)
				p.Wake(id)
				await(c, 1)
			case 3:
				_ = near.Close()
				p.Wake(id)
				await(c, 1)
				p.Park(near, id, c) // it is closed already
				await(c, 2)
			}
		}
	}
	if n := runtime.NumGoroutine() - before; n > 5 && runtime.GOOS == "linux" {
		t.Errorf("%d goroutines for %d parked connections", n, conns)
	}
	for i, f := range resume {
		f(i % 4)
	}
	select {
	case <-came:
		t.Error("a connection is resumed again")
	default:
	}
}

// TestPollerWithoutRoom: a connection that epoll does not accept rests all the same until its client sends something.
func TestPollerWithoutRoom(t *testing.T) {
	p := wire.NewPoller()
	park := func(id uint64) (c *counted, write func()) {
		near, far := connect(t)
		c = &counted{came: make(chan struct{}, 2)}
		p.Park(near, id, c)
		return c, func() {
			if _, err := far.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.came:
			case <-time.After(2 * time.Minute):
				t.Fatal("it is not resumed")
			}
		}
	}
	_, write := park(1)
	write()
	p.Close() // from now on epoll accepts nothing
	c, write := park(2)
	if n := c.n.Load(); n != 0 {
		t.Errorf("resumed %d times before the client has sent something", n)
	}
	if write(); c.n.Load() != 1 {
		t.Errorf("resumed %d times", c.n.Load())
	}
}
