// Package heap tunes the garbage collector of the process (debug.SetGCPercent) for a server that holds its objects in
// memory.
//
// The runtime's default, as much garbage as live bytes, is wrong at both ends: with few objects the collector runs many
// times a second under load, with many the process holds twice the memory that it needs. The rules instead:
//
//   - Under load the heap may grow by a minimum headroom, beyond it by half of the live bytes, and by at most 256 MB.
//   - After the load an eighth of that is enough, or half of the scannable bytes if that is more: packed objects have no
//     pointers.
//   - A start makes five times as much garbage as it retains. It may have as much garbage as live bytes, up to 256 MB;
//     with Expect the collector does not run before the heap has the expected size.
//   - When the process is idle, the collector runs once and free memory goes back to the system: the runtime would wait
//     minutes, and thousands of idle watches would keep the stacks that they grew at their beginning.
//   - A minute after a load the collector runs once more, for caches that expired since. Memory from the start goes back
//     when Run begins.
//
// GOGC in the environment switches all this off. The settings apply to the whole process: Run is for a program whose only
// purpose is one server, called once, after the server has loaded its objects. A program that embeds servers has its own
// settings.
//
// Goroutines: that of Start, ended by Startup.Run or its context; the program starts Run.
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
	busyFrom  = 2    // collections between two looks that mean load
	busyTime  = 0.05 // seconds of processor time that collections take of each second, which do
	calmAfter = 30   // checks without load after which the load has ended

	tidyAfter = 3        // looks with next to nothing allocated after which garbage is collected
	little    = 1 << 20  // bytes between two looks that are next to nothing
	fraction  = 128      // so is this fraction of the live bytes: a server checks its objects in the background
	worth     = 8 << 20  // bytes of garbage and of free memory from which on collecting is worthwhile, a sixteenth of the live bytes,
	worthAny  = 32 << 20 // or these, however much lives

	// Cached values stay for up to a minute after their use (compiled schemas, OpenAPI documents), and
	// nothing reports when they are dropped.
	settledAfter = 65 // checks after a collection until another one, for values that were dropped in the meantime

	headroom = 32 << 20  // bytes of garbage that load may always make
	most     = 256 << 20 // and the most that there may be of it, however much lives: more would be collected less often
	least    = 4         // percent of the live bytes: collecting a huge heap takes longer than producing that much
	small    = 32 << 20  // a live heap for which the runtime's rule is adequate
)

const (
	liveBytes   = "/gc/heap/live:bytes"
	scanBytes   = "/gc/scan/heap:bytes"
	collections = "/gc/cycles/total:gc-cycles"
	spentTime   = "/cpu/classes/gc/total:cpu-seconds"
	objectBytes = "/memory/classes/heap/objects:bytes"
	freeBytes   = "/memory/classes/heap/free:bytes"
	allocated   = "/gc/heap/allocs:bytes"
)

// Percent returns the value for GOGC with a number of live bytes, some of which the collector scans.
func Percent(live, scanned uint64, busy bool) int {
	room := max(headroom, live/2)
	if !busy {
		if live <= small {
			return 100
		}
		room = max(headroom/2, live/8, scanned/2)
	}
	return int(min(max(min(room, most)*100/max(live, 1), least), 1000))
}

// startLook is the interval of checks during a start, which makes some 200 MB of garbage a second.
const startLook = 100 * time.Millisecond

// Startup is the time in which a program loads its store.
type Startup struct {
	stop   context.CancelFunc // nil: everything is left to GOGC
	over   <-chan struct{}
	expect chan uint64
}

// Start keeps garbage small until Run is called, or ctx ends. It is for a program that begins to load its
// store.
func Start(ctx context.Context) *Startup {
	if os.Getenv("GOGC") != "" {
		return &Startup{}
	}
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	s := &Startup{stop: stop, over: over, expect: make(chan uint64)}
	go func() {
		defer close(over)
		s.starting(ctx)
	}()
	return s
}

// Expect announces that the objects about to be read will take about that many bytes. The collector does not run before
// the heap has reached that size, as next to nothing of it would be garbage. It may be called once.
func (s *Startup) Expect(bytes int64) {
	if s.stop == nil || bytes < expectFrom {
		return
	}
	select {
	case s.expect <- uint64(bytes):
	case <-s.over:
	}
}

// Run is the package's Run, for the time after the store was read.
func (s *Startup) Run(ctx context.Context) error {
	if s.stop != nil {
		s.stop()
		<-s.over
	}
	return Run(ctx)
}

// expectFrom is from how many bytes on a start is worth the trouble.
const expectFrom = 64 << 20

// starting keeps the runtime's setting in step until ctx ends, and then restores it.
func (s *Startup) starting(ctx context.Context) {
	now, expected := 100, uint64(0)
	defer debug.SetGCPercent(debug.SetGCPercent(now))
	set := func(want int) {
		debug.SetGCPercent(want)
		now = want
	}
	tick := time.NewTicker(startLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case expected = <-s.expect:
			set(startPercent(measure().live, expected))
		case <-tick.C:
			if want := startPercent(measure().live, expected); want < now*9/10 {
				set(want)
			}
		}
	}
}

// startPercent returns the value for GOGC during a start, with that many bytes live and expected.
func startPercent(live, expected uint64) int {
	usual := max(min(100, most*100/max(live, 1)), least)
	// The runtime counts from 4 MB on, however little lives.
	base := max(live, 4<<20)
	if goal := expected + most; expected > 0 && goal > base {
		usual = max(usual, (goal-base)*100/base)
	}
	return int(usual)
}

// usage holds the runtime's figures of the heap, in bytes, the number of collections, and their processor
// time in seconds.
type usage struct {
	live, scanned, collections, objects, free uint64
	allocated                                 uint64 // since the beginning

	spent float64
}

func measure() (u usage) {
	into := [...]struct {
		name string
		to   *uint64
	}{{liveBytes, &u.live}, {scanBytes, &u.scanned}, {collections, &u.collections}, {objectBytes, &u.objects}, {freeBytes, &u.free}, {allocated, &u.allocated}}
	var samples [len(into) + 1]metrics.Sample
	for i := range into {
		samples[i].Name = into[i].name
	}
	samples[len(into)].Name = spentTime
	metrics.Read(samples[:])
	for i := range into {
		*into[i].to = samples[i].Value.Uint64()
	}
	u.spent = samples[len(into)].Value.Float64()
	return u
}

// worthwhile returns how much garbage and free memory is worth it.
func (u usage) worthwhile() uint64 { return max(worth, min(u.live/16, worthAny)) }

// reserve reports whether collecting, and returning free memory to the system, is worth it.
func (u usage) reserve() bool {
	return u.objects-min(u.objects, u.live)+u.free > u.worthwhile()
}

// Run keeps the runtime's setting in step until ctx ends, and then restores it.
func Run(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		<-ctx.Done()
		return nil
	}
	now := 100
	defer debug.SetGCPercent(debug.SetGCPercent(now))
	u := measure()
	if u.live > small && u.reserve() {
		debug.FreeOSMemory()
		u = measure()
	}
	before := u
	tick := time.NewTicker(look)
	defer tick.Stop()
	calm := calmAfter
	var t tidy
	var load load
	for {
		want := Percent(u.live, u.scanned, calm < calmAfter)
		if want < now*9/10 || want > now*11/10 {
			// Stops the world for a moment: not for small differences.
			debug.SetGCPercent(want)
			now = want
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		u = measure()
		cycles, spent := u.collections-before.collections, u.spent-before.spent
		before = u
		calm = min(calm+1, calmAfter)
		if load.felt(cycles, spent, calm < calmAfter) {
			calm = 0
		}
		if t.due(u, cycles) {
			debug.FreeOSMemory()
			u = measure()
			before = u
		}
	}
}

// load reports whether the number or the cost of collections indicates load. A collection of a large heap takes long even
// if it is rare, so its cost is divided by the time since the previous one.
type load struct{ since int }

func (l *load) felt(cycles uint64, spent float64, still bool) bool {
	if l.since = min(l.since+1, calmAfter); cycles == 0 {
		return false
	}
	since := l.since
	l.since = 0
	// Load that is felt at a roomy setting is load at a narrow one too.
	return cycles >= busyFrom || spent >= busyTime*float64(since) || still
}

// tidy reports whether the process is idle and has garbage to collect or memory to release.
type tidy struct {
	quiet int
	bytes uint64 // at the last look

	since   int    // looks since a collection
	settled uint64 // bytes allocated until the last collection for dropped values
}

func (t *tidy) due(u usage, cycles uint64) bool {
	if t.since++; cycles > 0 {
		t.since = 0
	}
	if grown := u.objects - min(u.objects, t.bytes); cycles > 0 || grown > max(little, u.live/fraction) {
		t.quiet = 0
	} else {
		t.quiet++
	}
	t.bytes = u.objects
	if t.quiet < tidyAfter {
		return false
	}
	if t.since >= settledAfter && u.live > small && u.allocated-t.settled > u.live/2 {
		t.since, t.settled = 0, u.allocated
		return true
	}
	return u.reserve()
}
