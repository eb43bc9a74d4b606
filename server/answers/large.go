package answers

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/objects"
)

// NewMemoryGate makes the gate that bounds how many bytes the answers with large objects take together. Users take turns.
func NewMemoryGate(sizes budget.Sizes) *fair.Gate {
	return fair.NewGate(fair.Limits{Places: math.MaxInt32, Weight: sizes.Answers(), KeyWeight: sizes.UserAnswers(), Free: 1})
}

// formWeight bounds the memory of a large object's answer per stored byte, if the answer does not have its stored bytes.
const formWeight = 8

// asStored reports whether an answer has the stored bytes of an item.
func (q *Request) asStored(as codecs.Form, it *cache.Item) bool {
	return as.Type == codecs.JSON && as.As.Kind == "" && !as.Pretty && it.Err() == nil && objects.Clean(q.Resource, it)
}

// While others wait for room, an answer ends whose client takes fewer than leastRate bytes a second, once writes of the
// answer have taken slowAfter.
const (
	leastRate = 1 << 20
	slowAfter = 10 * time.Second
)

// slowClientWriter is a writer that counts the bytes of writes, and the time for which they wait for the client. A wait of the request
// for a seat, with which a write may end, does not count.
type slowClientWriter struct {
	http.ResponseWriter
	bytes  atomic.Int64 // also of the present write
	waited atomic.Int64 // nanoseconds, of the writes that have ended
	since  atomic.Int64 // when the present write began, in nanoseconds since epoch; 0: there is none
	epoch  time.Time
	ended  atomic.Bool // by endIfSlow
}

// count makes the request's writer count, for the answers that follow.
func (q *Request) count() {
	if q.taken == nil {
		q.taken = &slowClientWriter{ResponseWriter: q.W, epoch: time.Now()}
		q.W = q.taken
		if q.Scope != nil {
			q.Scope.Taken = q.taken.endWrite
		}
	}
}

// Unwrap serves http.ResponseController.
func (t *slowClientWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write implements io.Writer, in pieces, so that a long write is counted before its end.
func (t *slowClientWriter) Write(p []byte) (n int, err error) {
	for {
		part, wrote := p[n:min(len(p), n+Chunk)], 0
		err := t.count(len(part), func() (err error) {
			wrote, err = t.ResponseWriter.Write(part)
			return err
		})
		if n += wrote; err != nil || n == len(p) {
			return n, err
		}
	}
}

// count counts a write of n bytes.
func (t *slowClientWriter) count(n int, write func() error) error {
	t.bytes.Add(int64(n))
	t.since.Store(int64(max(time.Since(t.epoch), 1)))
	err := write()
	t.endWrite()
	return err
}

// endWrite ends the present write, unless it has ended.
func (t *slowClientWriter) endWrite() {
	if since := t.since.Swap(0); since != 0 {
		t.waited.Add(int64(time.Since(t.epoch)) - since)
	}
}

// Send calls write, which sends n bytes of the answer to a request past its writer. While the request has room, Send counts them,
// and fails with cache.ErrSlow once the client has read too slowly while others waited.
func (q *Request) Send(n int, write func() error) error {
	if q.taken == nil {
		return write()
	}
	err := q.taken.count(n, write)
	if q.taken.ended.Load() {
		return cache.ErrSlow
	}
	return err
}

// slow reports whether the client has taken too little.
func (t *slowClientWriter) slow() bool {
	waited := time.Duration(t.waited.Load())
	if since := t.since.Load(); since != 0 {
		waited += time.Since(t.epoch) - time.Duration(since)
	}
	return waited > slowAfter && float64(t.bytes.Load()) < leastRate*waited.Seconds()
}

// endIfSlow makes the present and all later writes fail if the client is slow.
func (t *slowClientWriter) endIfSlow() {
	if t.slow() && !t.ended.Swap(true) {
		_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // only writers of tests have no deadlines
	}
}

// ReserveMemory waits until there is room for the large ones of some items of an answer: for the largest, because the answer makes
// their forms one after another, or for all that must be converted, because their forms are kept. The request has no seat while it
// waits, as those that have the room may wait for one. It keeps the room until End, because the client may read slowly; if it reads
// too slowly while others wait, the answer ends.
func (a *Answers) ReserveMemory(q *Request, as codecs.Form, items ...*cache.Item) error {
	if a.Large == nil {
		return nil
	}
	weight, kept := int64(0), int64(0)
	for _, it := range items {
		size := int64(it.Size())
		switch {
		case !budget.Large(int(size)):
		case q.asStored(as, it):
			weight = max(weight, size)
		case q.Resource.LoadMayFail() && !objects.Clean(q.Resource, it):
			kept += formWeight * size
		default:
			weight = max(weight, formWeight*size)
		}
	}
	weight = max(weight, kept)
	if weight <= q.large {
		return nil
	}
	q.Done()
	q.room.Leave() // a request that waits for room while it has some could wait for another that does so
	q.room, q.large = nil, 0
	err := q.Scope.Waiting(func() (err error) {
		if q.room, err = a.Large.Enter(q.R.Context(), q.User(), weight); err == nil {
			q.large = weight
		}
		return err
	})
	if err == nil {
		q.count()
		q.room.OnContention(q.taken.endIfSlow)
	}
	return err
}

// End gives back all that the request has taken.
func (q *Request) End() {
	q.Done()
	q.room.Leave()
	q.room, q.large = nil, 0
	if q.taken == nil {
		return
	}
	if q.taken.ended.Load() {
		// All may have been written before. The next request on a connection must not find the deadline.
		_ = http.NewResponseController(q.taken.ResponseWriter).SetWriteDeadline(time.Time{})
	}
	if q.Scope != nil {
		q.Scope.Taken = nil
	}
	q.taken = nil // a watch goes on without its writer
}
