package cores_test

import (
	"math"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/cores"
)

func model(n int) cores.Model {
	return cores.Model{
		Cores: n, Clients: 64 * n, Request: 100 * time.Microsecond, Most: 256, Feed: 5 * time.Microsecond,
		Groups: []cores.Group{
			{Rows: 1, Processor: 100 * time.Microsecond, Disk: 200 * time.Microsecond},
			{Rows: 256, Processor: 2600 * time.Microsecond, Disk: 200 * time.Microsecond},
		},
	}
}

// near checks that got is within a part of want.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s is %.0f, not %.0f", what, got, want)
	}
}

// TestFew: with few processors, the processor time of a write determines the rate.
func TestFew(t *testing.T) {
	m := model(1)
	r := m.Run(2 * time.Second)
	// In a group of g rows a write takes 100 + 5 + (90 + 9.8 g) / g microseconds.
	near(t, "the rate on one core", r.Rate, 1e6/(105+(90.2+9.8*r.Rows)/r.Rows), 0.05)
	if r.Busy < 0.9 {
		t.Errorf("a processor that is the limit is idle: %+v", r)
	}
}

// TestMany: with many processors the commit is the limit, and groups have the largest size.
func TestMany(t *testing.T) {
	m := model(64)
	r := m.Run(2 * time.Second)
	near(t, "the limit", m.Limit(), 256/2800e-6, 0.001)
	near(t, "the rate on 64 cores", r.Rate, m.Limit(), 0.05)
	if r.Commit < 0.95 || r.Rows < 240 || r.Busy > 0.5 {
		t.Errorf("the commit is not what all wait for: %+v", r)
	}
}

// TestFeed: a feed that is slower than the commit is the limit.
func TestFeed(t *testing.T) {
	m := model(64)
	m.Feed = 50 * time.Microsecond
	near(t, "the limit", m.Limit(), 20000, 0.001)
	near(t, "the rate", m.Run(2*time.Second).Rate, 20000, 0.05)
}

// TestAlone: one client waits for each station in turn.
func TestAlone(t *testing.T) {
	m := model(2)
	m.Clients = 1
	r := m.Run(time.Second)
	if want := 405 * time.Microsecond; r.Latency != want || r.Rows != 1 {
		t.Errorf("one client: %v in groups of %v, not %v in groups of 1", r.Latency, r.Rows, want)
	}
}
