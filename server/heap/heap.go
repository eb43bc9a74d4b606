// Package heap decides how much garbage the process may pile up before it is
// collected.
//
// The runtime's rule, as much garbage as there are live bytes, is wrong at both
// ends for a server that keeps its objects in memory: with few objects it collects
// many times a second under load, with many it holds twice what it needs. So under
// load there is a floor of headroom, and beyond it half of what lives; when the
// load has gone, less again. What lies about once nothing happens is collected then:
// the runtime would wait minutes, and thousands of idle watches keep the stacks that
// they grew at their beginning. GOGC in the environment switches all this off.
// Once the start is over, the pages of the program that only it needed leave the
// resident set.
//
// All this is the process's: Run is for a program whose only purpose is one server, and
// runs once in it. A program that embeds servers has a garbage collector of its own.
//
// Goroutines: none of its own; Run is for the program to start.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	look      = time.Second
	busyFrom  = 2  // collections between two looks that mean load
	calmAfter = 30 // looks without load after which it has gone

	tidyAfter = 3       // looks with next to nothing allocated after which garbage is collected
	little    = 1 << 20 // bytes between two looks that are next to nothing
	worth     = 8 << 20 // bytes of garbage that are worth it

	headroom = 32 << 20 // bytes of garbage that load may always make
	small    = 32 << 20 // a live heap for which the runtime's rule will do
)

const (
	liveBytes   = "/gc/heap/live:bytes"
	collections = "/gc/cycles/total:gc-cycles"
	objectBytes = "/memory/classes/heap/objects:bytes"
)

// Percent is what GOGC should be for a number of live bytes.
func Percent(live uint64, busy bool) int {
	switch {
	case busy:
		room := max(headroom, live/2)
		return int(min(room*100/max(live, 1), 1000))
	case live <= small:
		return 100
	}
	return 50
}

// Run keeps the runtime's setting in step until ctx ends, and then restores it.
func Run(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		<-ctx.Done()
		return nil
	}
	now := 100
	defer debug.SetGCPercent(debug.SetGCPercent(now))
	samples := []metrics.Sample{{Name: liveBytes}, {Name: collections}, {Name: objectBytes}}
	metrics.Read(samples)
	before := samples[1].Value.Uint64()
	tick := time.NewTicker(look)
	defer tick.Stop()
	calm := calmAfter
	var t tidy
	leaves := leaving{do: leaveProgram}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		metrics.Read(samples)
		cycles := samples[1].Value.Uint64() - before
		before += cycles
		calm = min(calm+1, calmAfter)
		// Load that is felt at a roomy setting is load at a narrow one too.
		if cycles >= busyFrom || cycles > 0 && calm < calmAfter {
			calm = 0
		}
		if t.due(samples[0].Value.Uint64(), samples[2].Value.Uint64(), cycles) {
			debug.FreeOSMemory()
			metrics.Read(samples)
			before = samples[1].Value.Uint64()
		}
		leaves.look(t.quiet)
		want := Percent(samples[0].Value.Uint64(), calm < calmAfter)
		if want < now*9/10 || want > now*11/10 {
			// Stops the world for a moment: not for small differences.
			debug.SetGCPercent(want)
			now = want
		}
	}
}

// leaving gives back what of the program only the start needed: when that is over, as far as
// can be told, and when nothing has happened for a while for the first time.
type leaving struct {
	do   func() error
	done int
}

func (l *leaving) look(quiet int) {
	if l.done == 0 || l.done == 1 && quiet >= tidyAfter {
		l.done++
		_ = l.do() // where it fails, some megabytes more are resident
	}
}

// tidy tells when nothing happens and there is something to collect.
type tidy struct {
	quiet int
	bytes uint64 // at the last look
}

func (t *tidy) due(live, bytes, cycles uint64) bool {
	if grown := bytes - min(bytes, t.bytes); cycles > 0 || grown > little {
		t.quiet = 0
	} else {
		t.quiet++
	}
	t.bytes = bytes
	return t.quiet >= tidyAfter && bytes > live+max(worth, live/8)
}
