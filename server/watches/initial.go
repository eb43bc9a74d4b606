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

// tooSlow reports whether a client that took so long to read a number of bytes is too slow.
func tooSlow(took time.Duration, taken int) bool {
	return took > initialFor+time.Duration(taken)*time.Second/initialRate
}

// initial sends the current objects, and the bookmark that ends them if the client wants one.
func (w *stream) initial(out output) (err error) {
	began, taken := time.Now(), 0
	turn := w.server.Answers.Turn(w.request)
	defer turn.End()
	defer w.request.End()
	failed := w.server.Objects.Each(w.request.Context(), w.request.Resource, w.there, w.options.Filter, cache.Position{}, func(it *cache.Item) bool {
		var frame []byte
		if err = w.server.Answers.ReserveMemory(w.request, w.view.Negotiated(), it); err == nil {
			frame, err = w.frame(cache.Added, it)
		}
		if err == nil {
			w.begun = true
			w.sent(len(frame))
			if err = turn.Next(len(frame)); err == nil {
				err = w.sendInitial(out, frame, began, taken)
			}
			taken += len(frame)
		}
		return err == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return w.waiting(func() error {
		return w.request.Send(0, func() error {
			if w.options.InitialEvents() && w.options.AllowWatchBookmarks {
				return w.bookmark(out, w.there.Revision, true)
			}
			return out.flush()
		})
	})
}

// sendInitial sends an initial event, in pieces if the output splits it, to a client that has taken a number of bytes since a
// time.
func (w *stream) sendInitial(out output, frame []byte, began time.Time, taken int) error {
	size := max(1, len(frame))
	if out.splits() {
		size = answers.Chunk
	}
	for piece := range slices.Chunk(frame, size) {
		err := w.waiting(func() error { return w.request.Send(len(piece), func() error { return out.send(piece) }) })
		if err != nil {
			return err
		}
		before := taken
		if taken += len(piece); taken/answers.Chunk != before/answers.Chunk && tooSlow(time.Since(began), taken) {
			return cache.ErrSlow
		}
	}
	return nil
}

// waiting calls write, which may wait for the client; the watch has no seat during that.
func (w *stream) waiting(write func() error) error {
	seat := w.request.Scope.Seat
	if seat == nil {
		return write()
	}
	seat.Sending()
	err := write()
	if late := seat.Sent(); err == nil {
		err = late
	}
	return err
}
