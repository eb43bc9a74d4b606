package verbs

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unique"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// errGone: the client took no more.
var errGone = errors.New("client has gone")

// sink takes whole frames. What was sent reaches the client with flush at the latest.
type sink interface {
	send(frame []byte) error
	flush() error
}

// stream is one watch.
type stream struct {
	h       *Handler
	c       *Call
	o       *listOptions
	v       *view
	include table.Include

	watcher *cache.Watcher
	start   *cache.Snapshot // what there is at the beginning; nil for a watch from a version
	failed  error           // why there is nothing to watch
	shown   bool            // a table has been sent
	due     bool            // a bookmark is to be sent
	end     time.Time
	timer   *time.Timer
	alarms  atomic.Uint32
	batch   []cache.Delivery
	first   any                                                // the key of the first event's frame
	later   any                                                // that of all others
	make    func(cache.EventType, *cache.Item) ([]byte, error) // s.frame
	sent    func(bytes int)                                    // is told of each event
}

// events sends the initial events, then changes and bookmarks until the time is up.
func (s *stream) events(ctx context.Context, out sink) error {
	s.end = time.Now().Add(s.o.duration(s.h.WatchFor))
	if s.start != nil && s.o.synthetic() {
		if err := s.initial(out); err != nil {
			return err
		}
		if s.h.Measure != nil && s.o.initial() {
			s.h.Measure.InitialEvents(s.c.Resource, s.c.Info, time.Since(s.c.Scope.Received))
		}
	}
	s.start = nil
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

// drain sends what waits, and the bookmark that is due. What comes meanwhile signals
// Ready again.
func (s *stream) drain(ctx context.Context, out sink) error {
	for {
		batch, mark, err := s.watcher.Take(ctx, s.batch)
		if s.batch = batch; err != nil {
			return err
		}
		if len(batch) == 0 {
			s.watcher.Come()
			if !s.due {
				return nil
			}
			// The mark was taken after the time came, with nothing left to send before it.
			s.due = false
			return s.bookmark(out, mark, false)
		}
		if err := s.deliver(out, batch); err != nil || !s.due {
			return err
		}
	}
}

// next is the time until a bookmark is due, or the end.
func (s *stream) next() time.Duration {
	left := time.Until(s.end)
	if !s.o.AllowWatchBookmarks || left <= bookmarkBefore {
		return left
	}
	return min(bookmarkEvery, left-bookmarkBefore)
}

// initial sends what there is, and says where it ends.
func (s *stream) initial(out sink) (err error) {
	s.start.Select(s.o.filter, s.o.namespace, cache.Position{}, func(it *cache.Item) bool {
		if s.o.name != "" && it.Name != s.o.name {
			return true
		}
		var frame []byte
		if frame, err = s.frame(cache.Added, it); err == nil {
			s.shown = true
			s.sent(len(frame))
			err = out.send(frame)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if s.o.initial() && s.o.AllowWatchBookmarks {
		return s.bookmark(out, s.start.Revision, true)
	}
	return out.flush()
}

// deliver sends a batch of changes.
func (s *stream) deliver(out sink, batch []cache.Delivery) error {
	for _, d := range batch {
		key := s.later
		if !s.shown {
			key = s.first
		}
		frame, err := d.Frame(key, s.make)
		if err != nil {
			return err
		}
		s.shown = true
		s.sent(len(frame))
		if err := out.send(frame); err != nil {
			return err
		}
	}
	s.watcher.Come()
	return out.flush()
}

// frameKey tells apart how watches show an event.
type frameKey struct {
	r       *kinds.Resource
	form    codecs.Form
	include table.Include
	first   bool // of a watch as tables
}

// prepare makes ready what every event needs.
func (s *stream) prepare() {
	key := frameKey{r: s.v.r, form: s.v.form, include: s.include}
	// Handles are compared faster than what they stand for, and need no memory.
	s.later = unique.Make(key)
	key.first = key.form.IsTable()
	s.first = unique.Make(key)
	s.make = s.frame
}
