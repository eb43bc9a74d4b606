package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const ms = time.Millisecond

// line is a queue with a clock that only the test moves, whose keys are "namespace/name".
type line struct {
	*testing.T
	reconcile.Queue[string, string]
	now   time.Duration
	woken int
	do    func(key string) (reconcile.Result, error) // nil: nothing, with success
}

func newLine(t *testing.T) *line {
	l := &line{T: t}
	l.Clock = func() time.Time { return time.Unix(1000, 0).Add(l.now) }
	l.Turn = func(key string) string { namespace, _, _ := strings.Cut(key, "/"); return namespace }
	l.MaxDebounceFactor = 5
	l.Debounce, l.MinBackoff, l.MaxBackoff = time.Second, 2*time.Second, 6*time.Second
	l.Wake = func() { l.woken++ }
	return l
}

// expect moves the clock, and has one worker reconcile the due keys.
func (l *line) expect(now time.Duration, want ...string) {
	l.Helper()
	l.now = now
	l.AddDue()
	var names []string
	var worker sync.WaitGroup
	l.StartWorkers(&worker, 1, func(key string) (r reconcile.Result, err error) {
		names = append(names, key)
		if l.do != nil {
			return l.do(key)
		}
		return r, nil
	})
	if worker.Wait(); fmt.Sprint(names) != fmt.Sprint(want) {
		l.Errorf("after %v: %v, want %v", now, names, want)
	}
}

// empty fails unless nothing is left.
func (l *line) empty() {
	l.Helper()
	if due, next := l.AddDue(); due > 0 || next > 0 {
		l.Errorf("%d keys are due, the next after %v", due, next)
	}
}

// A key is due once it has settled, but one that keeps changing after five times as long.
func TestSettling(t *testing.T) {
	l := newLine(t)
	l.Add("a/x", 0)
	l.now = 500 * ms
	l.Add("a/y", 0)
	l.now = 600 * ms
	l.Add("a/x", 0)
	l.expect(1500*ms - 1)
	l.expect(1500*ms, "a/y")
	l.expect(1600*ms, "a/x")
	l.empty()
	for i := range 10 {
		l.now = 2*time.Second + time.Duration(i)*500*ms
		l.Add("a/x", 0)
	}
	l.expect(7*time.Second - 1)
	l.expect(7*time.Second, "a/x")
	l.Add("a/x", 0)
	l.Forget("a/x")
	l.empty()
}

// A key that fails waits longer each time, whatever changes, but for a revision that did not fail.
func TestBackoff(t *testing.T) {
	l := newLine(t)
	fail := func(string) (r reconcile.Result, err error) { return r, errors.New("no") }
	l.do = fail
	l.Add("a/x", 7)
	now := time.Second
	l.expect(now, "a/x")
	for _, backoff := range []time.Duration{2, 4, 6, 6} { // seconds
		if got, waits := l.Backoff("a/x"); got != backoff*time.Second || !waits {
			t.Errorf("it waits (%v) for %v, want %v seconds", waits, got, backoff)
		}
		l.Add("a/x", 7)
		l.Add("a/x", 0)
		l.expect(now + backoff*time.Second - 1)
		now += backoff * time.Second
		l.expect(now, "a/x")
	}
	l.Add("a/x", 8)
	now += time.Second
	l.expect(now, "a/x")
	l.AddAfter("a/x", 0) // for what the key depends on, and not the key itself, has changed
	l.do = nil
	l.expect(now, "a/x")
	l.empty()

	l.AddRateLimited("a/x") // without a worker
	l.expect(now + 2*time.Second - 1)
	l.expect(now+2*time.Second, "a/x")
	l.empty()
}

// A key is due at a time that was planned, or earlier if it changes; one that rests has changes wait, and is forgotten
// if there are none.
func TestPlansAndRests(t *testing.T) {
	l := newLine(t)
	l.AddAfter("a/x", time.Hour)
	l.AddAfter("a/x", time.Minute)
	l.AddAfter("a/x", time.Hour)
	l.expect(time.Minute - 1)
	l.Add("a/x", 0)
	l.do = func(string) (r reconcile.Result, err error) { return reconcile.Result{Pause: time.Minute}, nil }
	l.expect(time.Minute, "a/x")
	l.do = nil
	l.expect(3 * time.Minute)
	l.empty()
	l.AddAfter("a/x", 0)
	l.do = func(string) (r reconcile.Result, err error) {
		return reconcile.Result{Pause: time.Minute, After: time.Second}, nil
	}
	l.expect(3*time.Minute, "a/x")
	l.do = nil
	l.Add("a/x", 0)
	l.expect(4*time.Minute - 1)
	l.expect(4*time.Minute, "a/x")
	l.empty()
	l.AddAfter("a/x", 1<<63-1)
	l.expect(100000 * time.Hour)
	l.now = -time.Hour // the clock is set back
	l.Add("a/x", 0)
	l.expect(-time.Hour+time.Second, "a/x")
	l.empty()
}

// Namespaces take turns, and urgent keys go first.
func TestTurns(t *testing.T) {
	l := newLine(t)
	l.Debounce = 0
	for i := range 4 {
		l.Add(fmt.Sprint("a/", i), 0)
	}
	for _, key := range []string{"b/0", "c/0", "b/1"} {
		l.Add(key, 0)
	}
	l.AddUrgent("b/1")
	l.AddUrgent("d/0")
	l.expect(0, "b/1", "d/0", "a/0", "b/0", "c/0", "a/1", "a/2", "a/3")
	if l.woken == 0 {
		t.Error("nobody was woken")
	}
}

// A key that becomes urgent while it is due counts in the depth of the urgent queue only.
func TestUrgentDepth(t *testing.T) {
	l := newLine(t)
	l.Debounce = 0
	metrics := reconcile.NewMetrics(l.Clock)
	l.Meter, l.Urgent = metrics.Of("due"), metrics.Of("urgent")
	check := func(want map[string]float64) {
		t.Helper()
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				if name := m.Label; f.GetName() == "workqueue_depth" && m.Gauge.GetValue() != want[name[0].GetValue()] {
					t.Errorf("%s keys: a depth of %v, want %v", name[0].GetValue(), m.Gauge.GetValue(), want)
				}
			}
		}
	}
	for range 3 {
		l.Add("a/x", 0)
		l.Add("a/y", 0)
		l.AddUrgent("a/x")
		check(map[string]float64{"due": 1, "urgent": 1})
		l.expect(0, "a/x", "a/y")
		check(nil)
	}
}

// One worker has a key at a time, and the key is reconciled again if it is touched meanwhile.
func TestAgainMeanwhile(t *testing.T) {
	l := newLine(t)
	l.Debounce = 0
	tries := 0
	l.do = func(key string) (r reconcile.Result, err error) {
		if tries++; tries == 1 {
			l.Add(key, 0)
			l.Add(key, 0)
			l.Forget(key)
		}
		return r, nil
	}
	l.Add("a/x", 0)
	l.expect(0, "a/x", "a/x")
	l.empty()
}

// There are so many workers at most, which end when nothing is due that may be worked on.
func TestWorkers(t *testing.T) {
	l := newLine(t)
	l.Debounce = 0
	var mu sync.Mutex
	heavy := 0
	l.Admit = func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(key, "heavy/") {
			if heavy == 1 {
				return false
			}
			heavy++
		}
		return true
	}
	for i := range 10 {
		l.Add(fmt.Sprint("a/", i), 0)
		l.Add(fmt.Sprint("heavy/", i), 0)
	}
	working, most, done := 0, 0, 0
	do := func(key string) (r reconcile.Result, err error) {
		mu.Lock()
		working++
		most = max(most, working)
		mu.Unlock()
		time.Sleep(ms)
		mu.Lock()
		defer mu.Unlock()
		working--
		done++
		if strings.HasPrefix(key, "heavy/") {
			heavy--
		}
		return r, nil
	}
	var group sync.WaitGroup
	for done < 20 {
		l.StartWorkers(&group, 3, do)
		l.StartWorkers(&group, 3, do)
		group.Wait()
	}
	if most > 3 || most < 2 {
		t.Errorf("%d at once", most)
	}
	l.empty()
}
