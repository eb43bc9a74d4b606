package watches

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
)

// Until a client has taken what there is, the objects that there were stay in memory,
// whatever replaces them. So it has a minute, as for a list, and more for what it has
// taken.
const (
	initialFor  = time.Minute
	initialRate = 256 << 10 // bytes a second
)

// tooSlow says whether a client that has taken so many bytes since a time is too slow.
func tooSlow(since time.Time, taken int) bool {
	return time.Since(since) > initialFor+time.Duration(taken)*time.Second/initialRate
}

// initial sends what there is, and says where it ends.
func (w *stream) initial(ctx context.Context, out output) (err error) {
	began, taken := time.Now(), 0
	pace := w.server.Answers.Pace(w.request)
	defer pace.End()
	failed := w.server.Objects.Each(w.request.Context(), w.request.Resource, w.there, w.options.Filter, cache.Position{}, func(it *cache.Item) bool {
		var frame []byte
		if frame, err = w.frame(cache.Added, it); err == nil {
			w.begun = true
			w.sent(len(frame))
			if err = pace.Next(len(frame)); err == nil {
				err = w.waiting(func() error { return out.send(frame) })
			}
			if taken += len(frame); err == nil && taken/answers.Chunk != (taken-len(frame))/answers.Chunk && tooSlow(began, taken) {
				err = cache.ErrSlow
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
	return w.waiting(func() error {
		if w.options.InitialEvents() && w.options.AllowWatchBookmarks {
			return w.bookmark(out, w.there.Revision, true)
		}
		return out.flush()
	})
}

// waiting writes what the client may take slowly: a watch that waits for it has no seat.
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

// bookmark sends a bookmark at a revision; the one that ends the initial events says so.
func (w *stream) bookmark(out output, revision int64, end bool) error {
	frame, err := w.view.Bookmark(revision, end, !w.begun)
	if err != nil {
		return err
	}
	w.begun = true
	w.sent(len(frame))
	if err := out.send(frame); err != nil {
		return err
	}
	return out.flush()
}
