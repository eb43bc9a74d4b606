package packing

import (
	"context"
	"runtime"
	"time"
)

// A round of packing looks at all objects, which takes a tenth of a second for a million of them, and packs for as long as that
// takes, which may be seconds. Nobody waits for it at a lock, but there may be two processors, and what came from the network
// is looked at when one of them has nothing else to do. So the round rests each time that it has done about a millisecond's
// work. It goes by steps, as a clock would tell how busy the machine is: looking at an object is one, of 0.08 to 0.28 µs.
const (
	packSteps = 8192             // between two rests
	packRest  = time.Millisecond // timers of idle processors tell no shorter times
	StepBytes = 64               // that are packed in a step
	StepsEach = 16               // for each object that is packed, besides
)

// Pace counts the steps of a round.
type Pace struct {
	Ctx    context.Context
	Hurry  func() bool // the round cannot wait: others may run in between, but nobody rests
	Rest   func(ctx context.Context, hurry bool)
	Every  int           // steps between two rests
	Steps  int           // since the last rest
	Rested time.Duration // in all
}

// NewPace begins a round. hurry says that it cannot wait.
func NewPace(ctx context.Context, hurry func() bool) *Pace {
	return &Pace{Ctx: ctx, Hurry: hurry, Rest: TakeRest, Every: packSteps}
}

// Step notes an object that was looked at, and how many bytes of it were packed, if it was tried; false: ctx has ended.
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

// TakeRest rests for a moment, or where a round is in a hurry lets others run.
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
