package seats

import (
	"sync/atomic"
	"time"
)

// Kind is what a level does with requests for which it has no seats.
type Kind uint8

const (
	Exempt Kind = iota // it has seats for all
	Reject             // refuses them
	Queue              // has them wait
)

// mostQueues is how many queues a level really has. More keep flows apart no better: two of
// them share all their queues once in 10^18 times already.
const mostQueues = 4096

// mostHand is how many queues a flow may be dealt.
const mostHand = 16

// MostSeats is how many seats a request takes at most.
const MostSeats = 10

// Config is how a level is to be.
type Config struct {
	Name      string
	Kind      Kind
	Shares    int // of the seats of the server, in proportion to those of other levels
	Lendable  int // percent of its seats that others may use
	Borrowing int // percent of its seats that it may use of others; negative: no limit

	Queues, Hand int // how many there are, and how many a flow may use
	Length       int // of a queue, beyond which requests are refused
}

// Level is a number of seats, and the requests that wait for them.
type Level struct {
	config Config
	fixed  bool // its limit follows from no shares
	gone   bool // it is not configured any more, and drains
	listed bool // it is among those that the scheduler looks after
	most   atomic.Int32

	nominal, lower, upper int // the seats of its shares; without those it lends; with those it may borrow
	limit                 int // of seats at present
	target                float64

	running, used   int // requests that have seats; seats that are taken
	waiting, wanted int // requests that wait; seats that they want
	resuming        []*Request
	queues          []*queue // nil where nothing was queued yet
	backlog         []*queue // in which requests wait
	active          int      // queues in which requests wait, or of which some run
	deals           uint64

	at      time.Duration // up to when virtual and demand are known
	virtual float64       // seat-seconds that each active queue could have had
	demand  integrator
	stats   statistics
	timings Timings
	tenth   float64 // of the seats of all levels

	ran, latest float64 // virtual when a request was let in last, and that at which it was to begin

	dispatched, rejected, timedOut, cancelled uint64
}

// Fixed makes a level that has a number of seats of its own, whatever others have. It
// refuses what has no seat; without seats it is exempt.
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

// Most is how many seats one request of the level may take.
func (l *Level) Most() int { return int(l.most.Load()) }

// advance lets time pass: virtual grows by what each active queue could have had, and the
// demand so far is noted. It comes before each change of what runs or waits.
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

// room reports whether a number of seats are free. A request that needs more than there are
// runs alone.
func (l *Level) room(seats int) bool {
	switch {
	case l.config.Kind == Exempt:
		return true
	case seats > l.limit:
		return l.running == 0 && l.used == 0
	}
	return l.used+seats <= l.limit
}

// idle reports whether nothing of a level runs or waits.
func (l *Level) idle() bool { return l.used == 0 && l.running == 0 && l.waiting == 0 }
