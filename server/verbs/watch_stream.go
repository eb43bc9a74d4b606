package verbs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// errGone: the client took no more.
var errGone = errors.New("client has gone")

// sink takes whole frames. What was sent reaches the client with flush at the latest.
// full says that something is kept, as the client takes no more now; defers, that a frame
// is too large to be sent without waiting, and is not to be sent now.
type sink interface {
	send(frame []byte) error
	flush() error
	full() bool
	defers(frame []byte) bool
}

// stream is one watch. Its handler holds mu, but while it waits: then the cache's
// goroutines may send what is new (push), so that the handler need not wake up.
type stream struct {
	mu       sync.Mutex
	over     bool // nothing may be sent any more
	panicked any  // what push ended with

	h *Handler
	c *Call
	o *objects.ListOptions
	v *answers.View

	watcher *cache.Watcher
	start   *objects.Collection // what there is at the beginning; nil for a watch from a version
	failed  error               // why there is nothing to watch
	shown   bool                // a table has been sent
	due     bool                // a bookmark is to be sent
	end     time.Time
	timer   *time.Timer
	alarms  atomic.Uint32
	batch   []cache.Delivery
	rest    []cache.Delivery                                   // of batch: to be sent still
	first   any                                                // the key of the first event's frame
	later   any                                                // that of all others
	make    func(cache.EventType, *cache.Item) ([]byte, error) // s.frame
	sent    func(bytes int)                                    // is told of each event
}

// events sends the initial events, then changes and bookmarks until the time is up.
func (s *stream) events(ctx context.Context, out sink) error {
	s.end = time.Now().Add(duration(s.o, s.h.WatchFor))
	if s.start != nil && s.o.SyntheticEvents() {
		if err := s.initial(ctx, out); err != nil {
			return err
		}
		if s.h.Measure != nil && s.o.InitialEvents() {
			s.h.Measure.InitialEvents(s.c.Resource, s.c.Info, time.Since(s.c.Scope.Received))
		}
	}
	s.start = nil
	if w, ok := out.(*wire); ok && w.direct != nil {
		return s.pushed(ctx, w)
	}
	s.timer = time.AfterFunc(s.next(), func() { s.alarm(ticked) })
	defer s.timer.Stop()
	defer context.AfterFunc(ctx, func() { s.alarm(ended) })()
	for {
		if err := s.drain(ctx, out); err != nil {
			return err
		}
		<-s.watcher.Ready()
		if s.alarms.Load() == 0 {
			continue
		}
		if s.alarms.Swap(0)&ended != 0 || !time.Now().Before(s.end) {
			return nil
		}
		s.due = s.o.AllowWatchBookmarks
		s.timer.Reset(s.next())
	}
}

// What may happen besides changes.
const (
	ticked uint32 = 1 << iota // the timer has
	ended                     // the context has
)

// alarm wakes the stream. It waits for one thing, as waiting for one of several
// costs each event more.
func (s *stream) alarm(what uint32) {
	s.alarms.Or(what)
	s.watcher.Wake()
}

// pushed sends changes and bookmarks where the cache's goroutines send what they can.
func (s *stream) pushed(ctx context.Context, out *wire) error {
	wake := out.direct.Wake
	asks := s.c.Resource.Custom && s.c.Resource.Schema.Asks() // no goroutine of the cache waits for a webhook
	s.watcher.SetHooks(func() {
		if asks || !s.push(ctx, out) {
			wake()
		}
	}, wake)
	unlink := context.AfterFunc(ctx, wake)
	defer unlink()
	next := time.Now().Add(s.next())
	for {
		if err := s.drain(ctx, out); err != nil {
			return err
		}
		if out.direct.Wait(next) != nil || ctx.Err() != nil {
			return nil
		}
		if now := time.Now(); !now.Before(next) {
			if !now.Before(s.end) {
				return nil
			}
			s.due = s.o.AllowWatchBookmarks
			next = now.Add(s.next())
		}
	}
}

// drain sends what waits, and the bookmark that is due. What comes meanwhile wakes the
// stream again.
func (s *stream) drain(ctx context.Context, out sink) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panicked != nil {
		panic(s.panicked)
	}
	if s.failed != nil {
		return s.failed
	}
	if out.full() {
		if err := out.flush(); err != nil {
			return err
		}
	}
	if len(s.rest) > 0 {
		if err := s.deliver(out); err != nil {
			return err
		}
	}
	for {
		mark, err := s.take(ctx)
		if err != nil {
			return err
		}
		if len(s.rest) == 0 {
			s.watcher.Written()
			if !s.due {
				return nil
			}
			// The mark was taken after the time came, with nothing left to send before it.
			s.due = false
			return s.bookmark(out, mark, false)
		}
		if err := s.deliver(out); err != nil || !s.due {
			return err
		}
	}
}

// take asks for the next deliveries, once all before have been sent.
func (s *stream) take(ctx context.Context) (mark int64, err error) {
	s.batch, mark, err = s.watcher.Take(ctx, s.batch)
	s.rest = s.batch
	return mark, err
}

// push sends what waits, as far as that needs no waiting; else it returns false, and
// the handler goes on.
func (s *stream) push(ctx context.Context, out *wire) (done bool) {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			s.panicked, done = p, false // it costs this request, not those of others
		}
	}()
	if s.over {
		return true
	}
	if s.failed != nil || s.panicked != nil || out.stuck || len(s.rest) > 0 || !s.watcher.InMemory() {
		return false
	}
	if _, s.failed = s.take(ctx); s.failed != nil {
		return false
	}
	out.eager = true
	s.failed = s.deliver(out)
	out.eager = false
	return s.failed == nil && !out.stuck
}

// next is the time until a bookmark is due, or the end.
func (s *stream) next() time.Duration {
	left := time.Until(s.end)
	if !s.o.AllowWatchBookmarks || left <= bookmarkBefore {
		return left
	}
	return min(bookmarkEvery, left-bookmarkBefore)
}

// Until a client has taken what there is, the objects that there were stay in memory,
// whatever replaces them. So it has a minute, as for a list, and more for what it has
// taken.
const (
	initialFor  = time.Minute
	initialRate = 256 << 10 // bytes a second
)

// lingers says whether a client that has taken so many bytes since a time is too slow.
func lingers(since time.Time, taken int) bool {
	return time.Since(since) > initialFor+time.Duration(taken)*time.Second/initialRate
}

// initial sends what there is, and says where it ends.
func (s *stream) initial(ctx context.Context, out sink) (err error) {
	begun, taken := time.Now(), 0
	turn := s.h.Answers.Pace(&s.c.Request)
	defer turn.End()
	failed := s.h.Objects.Each(s.c.Context(), s.c.Resource, s.start, s.o.Filter, cache.Position{}, func(it *cache.Item) bool {
		var frame []byte
		if frame, err = s.frame(cache.Added, it); err == nil {
			s.shown = true
			s.sent(len(frame))
			if err = turn.Next(len(frame)); err == nil {
				err = out.send(frame)
			}
			if taken += len(frame); err == nil && taken/answers.Chunk != (taken-len(frame))/answers.Chunk && lingers(begun, taken) {
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
	if s.o.InitialEvents() && s.o.AllowWatchBookmarks {
		return s.bookmark(out, s.start.Revision, true)
	}
	return out.flush()
}

// deliver sends the rest of the batch, or what the client takes of it without delay.
func (s *stream) deliver(out sink) error {
	for len(s.rest) > 0 && !out.full() {
		d := s.rest[0]
		if d.Unsure {
			settled, ok, err := s.settle(d)
			if err != nil {
				return err
			}
			if d = settled; !ok {
				s.rest = s.rest[1:]
				continue
			}
		}
		key := s.later
		if !s.shown {
			key = s.first
		}
		frame, err := d.Frame(key, s.make)
		if err != nil {
			return err
		}
		if out.defers(frame) {
			break
		}
		s.rest = s.rest[1:]
		s.shown = true
		s.sent(len(frame))
		if err := out.send(frame); err != nil {
			return err
		}
	}
	s.watcher.Written()
	return out.flush()
}

// settle decides what the watcher sees of an event that needs a closer look.
func (s *stream) settle(d cache.Delivery) (cache.Delivery, bool, error) {
	return d.Settle(func(it *cache.Item) (bool, error) {
		return s.h.Objects.Selects(s.c.Context(), s.c.Resource, s.o.Filter, it)
	})
}

// prepare makes ready what every event needs.
func (s *stream) prepare() {
	// Handles are compared faster than what they stand for, and need no memory.
	s.first, s.later = unique.Make(s.v.Key(true)), unique.Make(s.v.Key(false))
	s.make = s.frame
}

// frame is one event in the wire form of the watch.
func (s *stream) frame(t cache.EventType, it *cache.Item) ([]byte, error) {
	return s.v.Event(t.String(), it, !s.shown)
}

// bookmark sends a bookmark at a revision; the one that ends the initial events says so.
func (s *stream) bookmark(out sink, revision int64, end bool) error {
	frame, err := s.v.Bookmark(revision, end, !s.shown)
	if err != nil {
		return err
	}
	s.shown = true
	s.sent(len(frame))
	if err := out.send(frame); err != nil {
		return err
	}
	return out.flush()
}
