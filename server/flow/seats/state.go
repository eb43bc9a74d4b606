package seats

import (
	"errors"
	"slices"
	"sort"
	"time"
)

// Flow counts the requests of a flow schema in a level. Its fields belong to the scheduler; Counts reads
// them.
type Flow struct{ Counts }

// Counts are the counters of a Flow.
type Counts struct {
	Dispatched            uint64
	Rejected              [4]uint64 // by Reasons
	Running, Seats        int
	Waiting, WaitingSeats int
	Unplaced              uint64 // times at which the next request to run found no room
}

// Reasons are the refusals of levels.
var Reasons = [4]Refusal{Concurrency, QueueFull, TimedOut, Cancelled}

func (f *Flow) reject(err error) {
	var why Refusal
	if errors.As(err, &why) {
		if i := slices.Index(Reasons[:], why); i >= 0 {
			f.Rejected[i]++
		}
	}
}

// Counts reads the counters of flows at one moment.
func (s *Scheduler) Counts(flows []*Flow) []Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Counts, len(flows))
	for i, f := range flows {
		list[i] = f.Counts
	}
	return list
}

// State is the state of a level at one moment.
type State struct {
	Name                                      string
	Kind                                      Kind
	Draining, Idle                            bool
	Nominal, Lower, Upper, Limit              int
	Running, Used, Waiting, Wanted            int
	Dispatched, Rejected, TimedOut, Cancelled uint64
	High, Average, Deviation, Smoothed        float64
	Target                                    float64
	Active                                    int // queues with waiting requests
	Virtual, Ran, Latest                      float64
	Next, Discounted                          [2]float64 // least and greatest virtual time of those queues, without and with running requests
	Timings                                   Timings

	Queues   []QueueState
	Requests []RequestState
}

// QueueState is the state of a queue at one moment.
type QueueState struct {
	Index, Waiting, Running, Used int
	Start                         float64 // virtual time at which its next request begins
	Seats                         int     // that waiting requests need
	Work                          float64 // seat-seconds that wait
}

// RequestState is a request that waits or runs.
type RequestState struct {
	Queue, Place int // -1: not queued
	Running      bool
	Of           *Request // its exported fields may be read
	Arrived, Ran time.Duration
}

// Depth is the level of detail of States.
type Depth uint8

const (
	OfLevels Depth = iota
	WithQueues
	WithRequests
)

// States returns the levels with shares, by name; and the fraction of their targets that they have been given.
func (s *Scheduler) States(d Depth) (list []State, fair float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.catchUp()
	for _, l := range s.shared {
		l.advance(now)
		t := State{
			Name: l.config.Name, Kind: l.config.Kind, Draining: l.gone, Idle: l.idle(),
			Nominal: l.nominal, Lower: l.lower, Upper: l.upper, Limit: l.limit,
			Running: l.running, Used: l.used, Waiting: l.waiting, Wanted: l.wanted,
			Dispatched: l.dispatched, Rejected: l.rejected, TimedOut: l.timedOut, Cancelled: l.cancelled,
			High: l.stats.High, Average: l.stats.Average, Deviation: l.stats.Deviation, Smoothed: l.stats.Smoothed,
			Target: l.target, Active: len(l.backlog),
			Virtual: l.virtual, Ran: l.ran, Latest: l.latest, Timings: l.timings,
		}
		t.Next, t.Discounted = l.bounds()
		if d >= WithQueues {
			t.Queues = l.queueStates()
		}
		if d >= WithRequests {
			t.Requests = s.requestStates(l)
		}
		list = append(list, t)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, s.fair
}

// bounds returns the least and the greatest virtual time of queues with waiting requests: as it is, and without
// the expected cost of running requests.
func (l *Level) bounds() (next, discounted [2]float64) {
	for i, q := range l.backlog {
		less := q.start - float64(q.used)*serviceTime
		if i == 0 {
			next, discounted = [2]float64{q.start, q.start}, [2]float64{less, less}
			continue
		}
		next = [2]float64{min(next[0], q.start), max(next[1], q.start)}
		discounted = [2]float64{min(discounted[0], less), max(discounted[1], less)}
	}
	return next, discounted
}

func (l *Level) queueStates() (list []QueueState) {
	if l.config.Kind == Queue {
		list = make([]QueueState, max(len(l.queues), min(l.config.Queues, maxQueues)))
	}
	for i := range list {
		list[i].Index = i
		if i >= len(l.queues) || l.queues[i] == nil {
			continue
		}
		q := l.queues[i]
		list[i] = QueueState{Index: i, Waiting: q.length, Running: q.running, Used: q.used, Start: q.start, Seats: q.seats, Work: q.work}
	}
	return list
}

// requestStates returns the waiting and running requests of each queue, and those of no queue.
func (s *Scheduler) requestStates(l *Level) (list []RequestState) {
	for _, q := range l.queues {
		if q == nil {
			continue
		}
		place := 0
		for r := q.first; r != nil; r = r.after {
			list = append(list, RequestState{Queue: q.index, Place: place, Of: r, Arrived: r.arrived})
			place++
		}
	}
	for _, r := range s.running {
		if r.Level != l {
			continue
		}
		state := RequestState{Queue: -1, Place: -1, Running: true, Of: r, Arrived: r.arrived, Ran: r.arrived + r.waited}
		if r.queue != nil {
			state.Queue = r.queue.index
		}
		list = append(list, state)
	}
	// Waiting requests are already sorted by queue and place.
	sort.SliceStable(list, func(i, j int) bool { return uint(list[i].Queue) < uint(list[j].Queue) })
	return list
}
