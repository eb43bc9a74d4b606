package packing

import (
	"context"
	"runtime"
	"time"
)

// A round of packing visits all objects, which takes a tenth of a second for a million of them, and packs some, which may take
// seconds. It holds no lock, but there may be only two processors, and the runtime polls the network when one is idle. So a
// round pauses after about a millisecond of work. It measures work in steps, not by a clock, which would also measure the load
// of the machine: visiting an object is a step, of 0.08 to 0.28 µs.
const (
	packSteps = 8192             // between two pauses
	packPause = time.Millisecond // timers are no finer on idle processors
	StepBytes = 64               // bytes that are packed in a step
	StepsEach = 16               // further steps for each packed object
)

// Throttle counts the steps of a round.
type Throttle struct {
	Ctx    context.Context
	Urgent func() bool // the round cannot wait: it yields, but does not pause
	Pause  func(ctx context.Context, urgent bool)
	Every  int           // steps between two pauses
	Steps  int           // since the last pause
	Paused time.Duration // in all
}

// NewThrottle begins a round. urgent means that the round cannot wait.
func NewThrottle(ctx context.Context, urgent func() bool) *Throttle {
	return &Throttle{Ctx: ctx, Urgent: urgent, Pause: Pause, Every: packSteps}
}

// Step counts a visited object, and the bytes that were packed of it. It returns false if ctx has ended.
func (p *Throttle) Step(packed int) bool {
	if p.Steps++; packed > 0 {
		p.Steps += StepsEach + packed/StepBytes
	}
	if p.Steps < p.Every {
		return true
	}
	p.Steps = 0
	began := time.Now()
	p.Pause(p.Ctx, p.Urgent())
	p.Paused += time.Since(began)
	return p.Ctx.Err() == nil
}

// Pause pauses for a moment, or only yields if the round is urgent.
func Pause(ctx context.Context, urgent bool) {
	if urgent {
		runtime.Gosched()
		return
	}
	timer := time.NewTimer(packPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
