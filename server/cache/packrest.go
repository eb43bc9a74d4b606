package cache

import (
	"context"
	"runtime"
	"time"
)

// packRests is for how long packing rests behind a round, in times that it worked: a round looks at
// all objects, and among a million writers would have one each second.
const packRests = 20

// keepPacked packs what is not read, in rounds, until ctx ends.
func (c *Cache) keepPacked(ctx context.Context) {
	pack := time.NewTicker(time.Second)
	defer pack.Stop()
	weigh := time.NewTicker(10 * time.Second)
	defer weigh.Stop()
	var rested time.Time
	if c.plain.filling() { // by what was loaded first
		c.Pack(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-pack.C:
			if c.plain.crowded() && (!time.Now().Before(rested) || c.plain.overflows()) {
				began, pace := time.Now(), c.packPace(ctx)
				c.pack(pace)
				rested = time.Now().Add(packRests * (time.Since(began) - pace.rested))
			}
		case <-weigh.C:
			if c.plain.filling() {
				c.Pack(ctx)
			}
		}
	}
}

// A round of packing looks at all objects, which takes a tenth of a second for a million of them, and packs for as long as that
// takes, which may be seconds. Nobody waits for it at a lock, but there may be two processors, and what came from the network
// is looked at when one of them has nothing else to do. So the round rests each time that it has done about a millisecond's
// work. It goes by steps, as a clock would tell how busy the machine is: looking at an object is one, of 0.08 to 0.28 µs.
const (
	packSteps = 8192             // between two rests
	packRest  = time.Millisecond // timers of idle processors tell no shorter times
	stepBytes = 64               // that are packed in a step
	stepsEach = 16               // for each object that is packed, besides
)

// packPace counts the steps of a round.
type packPace struct {
	ctx    context.Context
	hurry  func() bool // the round cannot wait: others may run in between, but nobody rests
	rest   func(ctx context.Context, hurry bool)
	every  int           // steps between two rests
	steps  int           // since the last rest
	rested time.Duration // in all
}

func (c *Cache) packPace(ctx context.Context) *packPace {
	return &packPace{ctx: ctx, hurry: c.plain.overflows, rest: takeRest, every: packSteps}
}

// step notes an object that was looked at, and how many bytes of it were packed, if it was tried; false: ctx has ended.
func (p *packPace) step(packed int) bool {
	if p.steps++; packed > 0 {
		p.steps += stepsEach + packed/stepBytes
	}
	if p.steps < p.every {
		return true
	}
	p.steps = 0
	began := time.Now()
	p.rest(p.ctx, p.hurry())
	p.rested += time.Since(began)
	return p.ctx.Err() == nil
}

func takeRest(ctx context.Context, hurry bool) {
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
