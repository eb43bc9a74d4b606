package packing

import (
	"context"
	"runtime"
	"time"
)

// A round of packing visits all objects, which takes a tenth of a second for a million of them, and packs some, which may take
// seconds. It holds no lock, but there may be only two processors, and the runtime polls the network when one is idle. So a
// round rests after about a millisecond of work. It measures work in steps, not by a clock, which would also measure the load
// of the machine: visiting an object is a step, of 0.08 to 0.28 µs.
const (
	packSteps = 8192             // between two rests
	packRest  = time.Millisecond // timers are no finer on idle processors
	StepBytes = 64               // bytes that are packed in a step
	StepsEach = 16               // further steps for each packed object
)

// Pace counts the steps of a round.
type Pace struct {
	Ctx    context.Context
	Hurry  func() bool // the round cannot wait: it yields, but does not rest
	Rest   func(ctx context.Context, hurry bool)
	Every  int           // steps between two rests
	Steps  int           // since the last rest
	Rested time.Duration // in all
}

// NewPace begins a round. hurry means that the round cannot wait.
func NewPace(ctx context.Context, hurry func() bool) *Pace {
	return &Pace{Ctx: ctx, Hurry: hurry, Rest: TakeRest, Every: packSteps}
}

// Step counts a visited object, and the bytes that were packed of it. It returns false if ctx has ended.
func (p *Pace) Step(packed int) bool {
	if p.Steps++; packed > 0 {
		p.Steps += StepsEach + packed/StepBytes
	}
	if p.Steps < p.Every {
		return true
	}
	p.Steps = 0
	began := time.Now()
	p.Rest(p.Ctx, p.Hurry())
	p.Rested += time.Since(began)
	return p.Ctx.Err() == nil
}

// TakeRest rests for a moment, or only yields if the round is in a hurry.
func TakeRest(ctx context.Context, hurry bool) {
	if hurry {
		runtime.Gosched()
		return
	}
	rest := time.NewTimer(packRest)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
	}
}
