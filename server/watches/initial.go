package watches

import (
	"slices"
	"time"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
)

// Until a client has read the initial events, their objects stay in memory even if they are replaced. So the client has a
// minute, as for a list, and more in proportion to the bytes that it has read.
const (
	initialFor  = time.Minute
	initialRate = 256 << 10 // bytes a second
)

// readPace measures how fast a client reads: its bytes, and how long their writes took, without the waits of the server itself.
type readPace struct {
	bytes int
	took  time.Duration
}

// send calls write, which writes n bytes, and measures it.
func (p *readPace) send(n int, write func() error) error {
	began := time.Now()
	err := write()
	p.bytes, p.took = p.bytes+n, p.took+time.Since(began)
	return err
}

// tooSlow reports whether the client has taken too long to read.
func (p *readPace) tooSlow() bool {
	return p.took > initialFor+time.Duration(p.bytes)*time.Second/initialRate
}

// initial sends the current objects, and the bookmark that ends them if the client wants one.
func (w *stream) initial(out output) (err error) {
	pace := &readPace{}
	turn := w.server.Answers.Turn(w.request)
	defer turn.End()
	defer w.request.End()
	failed := w.server.Objects.Each(w.request.Context(), w.request.Resource, w.there, w.options.Filter, cache.Position{}, func(it *cache.Item) bool {
		var frame []byte
		if err = w.server.Answers.ReserveMemory(w.request, w.view.Negotiated(), it); err == nil {
			frame, err = w.event(cache.Added, it)
		}
		if err == nil {
			w.begun = true
			w.sent(len(frame))
			if err = turn.Next(len(frame)); err == nil {
				err = w.sendInitial(out, frame, pace)
			}
		}
		return err == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return w.request.Scope.Waiting(func() error {
		return w.request.Send(0, func() error {
			if w.options.InitialEvents() && w.options.AllowWatchBookmarks {
				return w.bookmark(out, w.there.Revision, true)
			}
			return out.flush()
		})
	})
}

// sendInitial sends an initial event, in pieces if the output splits it.
func (w *stream) sendInitial(out output, frame []byte, pace *readPace) error {
	size := max(1, len(frame))
	if out.splits() {
		size = answers.Chunk
	}
	for piece := range slices.Chunk(frame, size) {
		before := pace.bytes
		err := w.request.Scope.Waiting(func() error {
			return w.request.Send(len(piece), func() error {
				return pace.send(len(piece), func() error { return out.send(piece) })
			})
		})
		if err != nil {
			return err
		}
		if pace.bytes/answers.Chunk != before/answers.Chunk && pace.tooSlow() {
			return cache.ErrSlow
		}
	}
	return nil
}
