package admission

import (
	"sync/atomic"
	"time"
)

// stopwatch takes the times of one step for an observer, if there is one.
type stopwatch struct {
	to     Observer
	timers []timers
	phase  string
	op     Operation
	begun  time.Time
	last   time.Duration // since then
}

// timers are the receivers of a plugin, or of a step, by operation and refusal: a look-up by name for each of
// two dozen plugins would be a noticeable part of a write.
type timers [4][2]atomic.Pointer[Timer]

// place returns the index of an operation's timers.
func (op Operation) place() int {
	switch op {
	case Create:
		return 0
	case Update:
		return 1
	case Delete:
		return 2
	}
	return 3
}

// find returns a timer, which ask creates the first time.
func (t *timers) find(op Operation, rejected bool, ask func() Timer) Timer {
	refused := 0
	if rejected {
		refused = 1
	}
	place := &t[op.place()][refused]
	if known := place.Load(); known != nil {
		return *known
	}
	timer := ask()
	place.Store(&timer)
	return timer
}

func (c *Chain) watch(phase string, to []timers, op Operation) stopwatch {
	w := stopwatch{to: c.Observer, timers: to, phase: phase, op: op}
	if w.to != nil {
		w.begun = time.Now()
	}
	return w
}

// passed records that the plugin at index i has finished; a refusal ends the step.
func (w *stopwatch) passed(i int, p Plugin, err error) {
	if w.to == nil {
		return
	}
	now := time.Since(w.begun) // half the cost of time.Now, for two dozen plugins
	w.timers[i].find(w.op, err != nil, func() Timer { return w.to.Plugin(p.Name(), w.phase, w.op, err != nil) }).Observe((now - w.last).Seconds())
	if w.last = now; err != nil {
		w.ended(true)
	}
}

func (w *stopwatch) ended(rejected bool) {
	if w.to == nil {
		return
	}
	timer := w.timers[len(w.timers)-1].find(w.op, rejected, func() Timer { return w.to.Step(w.phase, w.op, rejected) })
	timer.Observe(w.last.Seconds())
}
