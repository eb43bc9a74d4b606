// Package seats decides which requests run now, which wait, and which are refused.
//
// A server has a number of seats, divided among levels. A request occupies seats of its level while it runs:
// one, or more if it is expensive. A level without a free seat refuses requests or queues them, and each
// queue gets a fair share of the level. Levels lend seats that they do not use (adjust.go).
//
// An admitted request has its seats until Leave, except while it waits for its client, for memory or for a turn: Pause
// gives them back, and a request that waits between Sending and Sent loses them to the next one in line. Both get seats
// again before they go on, ahead of all later requests. No seat is lost and no waiting request is forgotten: each change
// that could let a request run looks for it, and while requests wait a timer looks too.
//
// A waiting request costs its goroutine and one channel; the queues of a level and the Limits of each user
// bound how many wait. A decision takes one lock, for much less time than the request, and allocates nothing
// while no request waits.
//
// The package has no goroutine. Its timer runs only while requests wait.
package seats

import (
	"sync"
	"sync/atomic"
	"time"
)

// Unmoved is the time for which a write to a client, or another wait, may block before the request loses its seats to another
// request. It is also the interval at which queued requests look for such a request.
const Unmoved = 10 * time.Millisecond

// Refusal is the reason why a request may not run. Refusals of levels have the names that a stock server's
// metrics use.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Refusals by the limits of a level, and by those of a user.
const (
	Concurrency Refusal = "concurrency-limit"
	QueueFull   Refusal = "queue-full"
	TimedOut    Refusal = "time-out"
	Cancelled   Refusal = "cancelled"

	Share  Refusal = "requests-of-user"
	Slow   Refusal = "slow-requests-of-user"
	Bodies Refusal = "bodies-of-user"
	Large  Refusal = "large-bodies"
)

// Class distinguishes requests that read from those that write: a user has a share of each.
type Class uint8

const (
	Reading Class = iota
	Writing
)

// Limits bound the requests of one user, in all levels. Zero is no limit.
type Limits struct {
	Share  [2]int // running or queued requests of a class
	Open   [2]int // requests of a class in progress, including those that wait for their client
	Bodies int64  // bytes of the bodies of a class
	// LargeBodies bounds the bytes of bodies larger than Large, of all users together.
	LargeBodies, Large int64
	// Most is the expected maximum of concurrent requests of a class. It limits nothing: Kinds are relative
	// to it.
	Most [2]int
}

// Scheduler gives seats to requests.
type Scheduler struct {
	limits Limits
	seats  int                  // of all levels with shares
	now    func() time.Duration // since some moment, and never 0

	runs [2]atomic.Int64 // requests of a class that have seats, without those of exempt levels

	mu       sync.Mutex
	shared   []*Level // whose limits depend on shares
	fixed    []*Level
	users    map[user]*usage
	spare    []*usage   // for reuse
	running  []*Request // that have seats
	extras   []extra    // seats taken for a while after their requests, sorted by the time at which they are free
	adjusted time.Duration
	kinds    Kinds
	passed   time.Duration // kinds are known up to here
	queued   [2]int        // requests of a class that are queued
	fair     float64
	waiters  int   // requests that are queued or wait for seats that they lost
	large    int64 // bytes of large bodies of requests in progress
	armed    bool
	timer    *time.Timer
}

type user struct {
	name  string
	class Class
}

// usage counts a user's requests of a class.
type usage struct {
	running int // requests that have seats, or wait in a queue for their first
	open    int // requests in progress
	bodies  int64
}

// extra are seats of a level that become free at a time.
type extra struct {
	at    time.Duration
	level *Level
	seats int
}

// New makes a scheduler with a number of seats for the levels of Configure.
func New(seats int, l Limits, now func() time.Duration) *Scheduler {
	began := now()
	return &Scheduler{
		limits: l, seats: seats, now: now, users: make(map[user]*usage), spare: make([]*usage, 0, 64),
		adjusted: began, passed: began, kinds: newKinds(),
	}
}

// Runs returns the number of requests of a class that have seats.
func (s *Scheduler) Runs(c Class) int { return int(s.runs[c].Load()) }

// Usage returns, by class, how many requests have seats, how many wait for some, and how many users have
// requests.
func (s *Scheduler) Usage() (running, waiting, users int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running), s.waiters, len(s.users)
}

// catchUp frees the seats that are due, and lets levels lend and borrow. Like all unexported methods, it must be called
// with s.mu held.
func (s *Scheduler) catchUp() (now time.Duration) {
	now = s.now()
	for len(s.extras) > 0 && s.extras[0].at <= now {
		e := s.extras[0]
		s.extras = append(s.extras[:0], s.extras[1:]...)
		e.level.advance(now)
		e.level.used -= e.seats
		s.dispatch(e.level, now, false)
	}
	if now-s.adjusted >= adjustEvery {
		s.adjust(now)
	}
	return now
}

// keep keeps seats taken for a while.
func (s *Scheduler) keep(e extra) {
	at := len(s.extras)
	for at > 0 && s.extras[at-1].at > e.at {
		at--
	}
	s.extras = append(s.extras, extra{})
	copy(s.extras[at+1:], s.extras[at:])
	s.extras[at] = e
}

// arm starts the timer while requests wait.
func (s *Scheduler) arm() {
	if s.waiters == 0 || s.armed {
		return
	}
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(Unmoved, s.look)
	} else {
		s.timer.Reset(Unmoved)
	}
}

// look finds seats for waiting requests: those that have become free in the meantime, and those of requests
// whose clients do not read their answers.
func (s *Scheduler) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	now := s.catchUp()
	for _, list := range [2][]*Level{s.shared, s.fixed} {
		for _, l := range list {
			for _, r := range l.resuming {
				if r.usage != nil && !r.Master && s.full(r) {
					s.preempt(l, r, true, now)
				}
			}
			s.dispatch(l, now, true)
		}
	}
	s.arm()
}
