// Package seats decides which requests run now, which wait, and which are refused.
//
// A server has a number of seats, divided among levels. A request occupies seats of its level while
// it runs: one, or more if it is expensive. A level without a free seat refuses
// requests or queues them, and each queue gets a fair share of the level.
// Levels lend seats that they do not use (adjust.go).
//
// It promises: an admitted request has its seats until Leave, except while it waits for
// its client: Pause gives them back, and a request whose client does not read its answer
// loses them to the next one in line. Both get seats again before they go on, ahead
// of all later requests. No seat is lost and no waiting request is forgotten: each change
// that could let a request run looks for it, and while requests wait a timer looks too.
//
// A waiting request costs its goroutine and one channel; the queues of a level and the Limits of
// each user bound how many wait. A decision takes one lock, for much less
// time than the request, and allocates nothing while no request waits.
//
// The package has no goroutine. Its timer runs only while requests wait.
package seats

import (
	"sync"
	"sync/atomic"
	"time"
)

// Unmoved is how long a write to a client may block before the request's seats may be given
// to another request. It is also how often those who wait look for such a request.
const Unmoved = 10 * time.Millisecond

// Refusal is why a request may not run. Those of levels are named as a stock server's
// metrics name them.
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

// Limits are what the requests of one user may take, whatever their levels. Zero is no
// limit.
type Limits struct {
	Share  [2]int // requests of a class that run, or wait in a queue
	Open   [2]int // requests of a class that have begun and not ended
	Bodies int64  // bytes of the bodies of a class
	// LargeBodies is how many bytes the bodies of all users may have that are larger than Large.
	LargeBodies, Large int64
	// Most is how many requests of a class all users are thought to have at once. It limits
	// nothing: Kinds are parts of it.
	Most [2]int
}

// Scheduler gives seats to requests.
type Scheduler struct {
	limits Limits
	seats  int                  // of all levels that have shares of them
	now    func() time.Duration // since some moment, and never 0

	runs [2]atomic.Int64 // how many requests of a class have seats, those of exempt levels aside

	mu       sync.Mutex
	shared   []*Level // whose limits follow from shares
	fixed    []*Level
	users    map[user]*usage
	spare    []*usage   // to be used again
	running  []*Request // that have seats
	extras   []extra    // seats that are taken for a while after their requests, the next to be free first
	adjusted time.Duration
	kinds    Kinds
	passed   time.Duration // up to when kinds are known
	queued   [2]int        // requests of a class that wait in queues
	fair     float64
	waiters  int   // requests that wait in queues or for seats that they lost
	large    int64 // bytes of the large bodies of requests that have begun and not ended
	armed    bool
	timer    *time.Timer
}

type user struct {
	name  string
	class Class
}

// usage is what a user has of a class.
type usage struct {
	running int // requests that have seats, or wait in a queue for their first
	open    int // requests that have begun and not ended
	bodies  int64
}

// extra are seats of a level that are free at a time.
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

// Runs is how many requests of a class have seats.
func (s *Scheduler) Runs(c Class) int { return int(s.runs[c].Load()) }

// Usage is how many requests have seats, how many wait for some, and how many users have
// requests, each class for itself.
func (s *Scheduler) Usage() (running, waiting, users int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running), s.waiters, len(s.users)
}

// catchUp does what was due by now: seats become free, and levels lend and borrow anew.
// Like all methods in lower case it is called with s.mu held.
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

// keep has seats taken for a while longer.
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

// look finds seats for those who wait: those that have become free meanwhile, and those of
// requests whose clients have stopped to take their answers.
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
