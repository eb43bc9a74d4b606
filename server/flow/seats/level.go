package seats

import (
	"sync/atomic"
	"time"
)

// Kind is the treatment of requests for which a level has no seats.
type Kind uint8

const (
	Exempt Kind = iota // has no limit
	Reject             // refuses them
	Queue              // queues them
)

// maxQueues is the maximum number of queues of a level. More would not separate flows better: two of them
// share all their queues once in 10^18 times already.
const maxQueues = 4096

// maxHand is the maximum number of queues of a flow.
const maxHand = 16

// MostSeats is the maximum number of seats of a request.
const MostSeats = 10

// Config configures a level.
type Config struct {
	Name      string
	Kind      Kind
	Shares    int // of the seats of the server, in proportion to those of other levels
	Lendable  int // percent of its seats that others may use
	Borrowing int // percent of its seats that it may borrow; negative: no limit

	Queues, Hand int // number of queues, and of queues that one flow may use
	Length       int // of a queue, beyond which requests are refused
}

// Level has a number of seats, and requests that wait for them.
type Level struct {
	config Config
	fixed  bool // its limit does not depend on shares
	gone   bool // it is no longer configured, and drains
	listed bool // it is in the scheduler's lists
	most   atomic.Int32

	nominal, lower, upper int // seats of its shares; the rest after lending; the maximum with borrowing
	limit                 int // of seats at present
	target                float64

	running, used   int // requests that have seats; seats that are taken
	waiting, wanted int // requests that wait; the seats that they need
	resuming        []*Request
	queues          []*queue // nil until the first request is queued
	backlog         []*queue // with waiting requests
	active          int      // queues with waiting or running requests
	deals           uint64

	at      time.Duration // virtual and demand are known up to here
	virtual float64       // seat-seconds that each active queue could have used
	demand  integrator
	stats   statistics
	timings Timings
	tenth   float64 // of the seats of all levels

	ran, latest float64 // virtual when a request was last admitted, and when that should have begun

	dispatched, rejected, timedOut, cancelled uint64
}

// Fixed returns a level with a fixed number of seats, independent of other levels. It refuses requests without a seat; with
// zero seats it is exempt.
func (s *Scheduler) Fixed(name string, seats int) *Level {
	l := &Level{config: Config{Name: name, Kind: Reject}, fixed: true, nominal: seats, lower: seats, upper: seats, limit: seats, at: s.now(), timings: newTimings()}
	if seats <= 0 {
		l.config.Kind = Exempt
	}
	l.most.Store(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fixed = append(s.fixed, l)
	return l
}

// Exempt reports whether all requests of the level run at once.
func (l *Level) Exempt() bool { return l.config.Kind == Exempt }

// Most returns the maximum number of seats for one request of the level.
func (l *Level) Most() int { return int(l.most.Load()) }

// advance accounts for passed time: virtual grows by the seats that each active queue could have had, and the
// demand is recorded. It precedes each change of running or waiting requests.
func (l *Level) advance(now time.Duration) {
	by := (now - l.at).Seconds()
	if by <= 0 {
		return
	}
	if l.active > 0 {
		l.virtual += by * float64(min(l.used+l.wanted, l.limit)) / float64(l.active)
	}
	l.demand.add(by, float64(l.used+l.wanted))
	l.pass(now - l.at)
	l.at = now
}

// room reports whether a number of seats are free. A request that needs more than there are runs alone.
func (l *Level) room(seats int) bool {
	switch {
	case l.config.Kind == Exempt:
		return true
	case seats > l.limit:
		return l.running == 0 && l.used == 0
	}
	return l.used+seats <= l.limit
}

// idle reports whether the level has no running or waiting requests.
func (l *Level) idle() bool { return l.used == 0 && l.running == 0 && l.waiting == 0 }
