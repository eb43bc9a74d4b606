package seats

import (
	"sync/atomic"
	"time"
)

// Request is a request that has seats, or needs some. Its exported fields are set before Enter. Its goroutine
// calls all methods; another one may read the body, and so call Pause and Resume, even after Leave.
type Request struct {
	Level  *Level
	Flow   *Flow  // counts the request
	Hash   uint64 // of its flow: requests of a flow share queues
	User   string // whose share it counts towards
	Class  Class
	Master bool // the user has no limits, but the level may have no seats
	Begins bool // long-running, and has seats only as it begins: it does not count towards a share
	Size   int64
	Seats  int // that it needs
	// Extra are seats that stay taken for ExtraFor after it.
	Extra    int
	ExtraFor time.Duration
	// Failed is set before Leave: the request has no effects, and needs no Extra.
	Failed bool
	// Patience limits its wait in a queue.
	Patience time.Duration
	// Details are shown in dumps.
	Details any
	// Length is the length of its queue after it had joined. Enter sets it.
	Length int

	writing atomic.Int64 // when the write in progress began, by the scheduler's clock; 0: none is; or taken

	// Guarded by the scheduler's mu:
	in, seated, exempt bool
	queued             bool // it waited before it ran
	usage              *usage
	at                 int // in running, while it is seated
	queue              *queue
	before, after      *Request // in the queue
	since              time.Duration
	arrived            time.Duration
	arrival            float64
	ready              chan struct{} // closed when it has seats; set while it waits
	waited             time.Duration
}

// taken marks a write during which the seats were taken.
const taken = -1

// stuck returns when the write began, if it has taken too long, otherwise 0.
func (r *Request) stuck(now time.Duration) (since int64) {
	since = r.writing.Load()
	if since <= 0 || now-time.Duration(since) < Unmoved {
		return 0
	}
	return since
}

// lose takes the seats of a request whose write began at a time. It returns false if that write has ended:
// taking the seats and ending the write each change writing atomically, so a request cannot continue without
// seats.
func (r *Request) lose(since int64) bool { return r.writing.CompareAndSwap(since, taken) }

// work returns the expected cost of a request in seat-seconds.
func (r *Request) work() float64 {
	return float64(r.Seats)*serviceTime + float64(r.Extra)*r.ExtraFor.Seconds()
}

// Waited returns how long the request waited in a queue before Enter returned, and whether it was queued.
func (r *Request) Waited() (waited time.Duration, did bool) { return r.waited, r.queued }
