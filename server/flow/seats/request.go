package seats

import (
	"sync/atomic"
	"time"
)

// Request is a request that has seats, or wants some. Its fields in upper case are set
// before Enter; it belongs to the goroutine of the request, which calls all methods. Another
// one may read the body, and so call Pause and Resume, even after Leave.
type Request struct {
	Level  *Level
	Flow   *Flow  // counts it
	Hash   uint64 // of its flow: requests of a flow share queues
	User   string // whose share it counts for
	Class  Class
	Master bool // the user has no limits, but the level may have no seats
	Begins bool // it lasts, and has seats only as it begins: it counts for no share
	Size   int64
	Seats  int // that it takes
	// Extra are seats that are taken for ExtraFor after it.
	Extra    int
	ExtraFor time.Duration
	// Failed is set before Leave: nothing follows the request, and it needs no Extra.
	Failed bool
	// Patience is how long it may wait in a queue.
	Patience time.Duration
	// Details are shown of requests in a dump.
	Details any
	// Length is that of its queue once it had joined it. Enter sets it.
	Length int

	writing atomic.Int64 // when the write that is going on began, by the scheduler's clock; 0: none is; or taken

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

// stuck is when the write began that has lasted for too long, else 0.
func (r *Request) stuck(now time.Duration) (since int64) {
	since = r.writing.Load()
	if since <= 0 || now-time.Duration(since) < Unmoved {
		return 0
	}
	return since
}

// lose has whoever ends the write that began at a time hear that the seats were taken. It is
// false if that write has ended: who takes seats and who ends a write each change writing in
// one step, so that nobody goes on without.
func (r *Request) lose(since int64) bool { return r.writing.CompareAndSwap(since, taken) }

// work is what a request is expected to take, in seat-seconds.
func (r *Request) work() float64 {
	return float64(r.Seats)*serviceTime + float64(r.Extra)*r.ExtraFor.Seconds()
}

// Waited is how long the request waited in a queue before Enter returned, and whether it
// was in one.
func (r *Request) Waited() (waited time.Duration, did bool) { return r.waited, r.queued }
