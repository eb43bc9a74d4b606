package seats

import (
	"math"
	"time"
)

// Timing is a histogram of a value over time.
type Timing struct {
	Bounds []float64
	Spent  [16]time.Duration // time with values up to each bound and above the previous one; the last one: above all
	Sum    float64           // over nanoseconds
}

// Most bounds that a Timing has.
var _ = [16]time.Duration{len(bySeats): 0, len(byRequests): 0, len(byDemand): 0, len(byKind): 0}

// The bounds of a stock server.
var (
	bySeats    = [...]float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}
	byRequests = [...]float64{0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1}
	byDemand   = [...]float64{0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6}
	byKind     = [...]float64{0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}
)

// add records a value for a time. Values are usually small, so the search starts with the first bounds.
func (t *Timing) add(lasted time.Duration, much float64) {
	i := 0
	for i < len(t.Bounds) && much > t.Bounds[i] {
		i++
	}
	t.Spent[i] += lasted
	t.Sum += much * float64(lasted)
}

// Timings are the times of a level, as fractions of its present limits.
type Timings struct {
	Seats   Timing // taken seats, of its seats
	Running Timing // running requests, of its seats
	Waiting Timing // waiting requests, of the places in its queues
	Wanted  Timing // needed seats, of its seats
}

func newTimings() Timings {
	return Timings{
		Seats: Timing{Bounds: bySeats[:]}, Running: Timing{Bounds: byRequests[:]},
		Waiting: Timing{Bounds: byRequests[:]}, Wanted: Timing{Bounds: byDemand[:]},
	}
}

// pass records the state of the level for a time.
func (l *Level) pass(lasted time.Duration) {
	seats := float64(l.limit)
	if l.limit <= 0 {
		seats = math.Max(1, math.Round(l.tenth))
	}
	places := float64(max(1, l.config.Queues*l.config.Length))
	t := &l.timings
	t.Seats.add(lasted, float64(l.used)/seats)
	t.Running.add(lasted, float64(l.running)/seats)
	t.Waiting.add(lasted, float64(l.waiting)/places)
	t.Wanted.add(lasted, float64(l.used+l.wanted)/seats)
}

// Kinds are the running and queued requests of each class over time, as fractions of the limit of the class.
type Kinds struct{ Running, Waiting [2]Timing }

func newKinds() (k Kinds) {
	for c := range k.Running {
		k.Running[c].Bounds, k.Waiting[c].Bounds = byKind[:], byKind[:]
	}
	return k
}

// passKinds records the number of requests of each class until now. It precedes each change of them.
func (s *Scheduler) passKinds(now time.Duration) {
	lasted := now - s.passed
	if lasted <= 0 {
		return
	}
	s.passed = now
	for c := range s.kinds.Running {
		limit := float64(max(1, s.limits.Most[c]))
		s.kinds.Running[c].add(lasted, float64(s.runs[c].Load())/limit)
		s.kinds.Waiting[c].add(lasted, float64(s.queued[c])/limit)
	}
}

// Kinds returns the record until now.
func (s *Scheduler) Kinds() Kinds {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passKinds(s.catchUp())
	return s.kinds
}
