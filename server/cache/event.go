package cache

import (
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/rowlock/rowlock/codecs/budget"
)

// EventType is ADDED, MODIFIED or DELETED.
type EventType uint8

const (
	Added EventType = iota
	Modified
	Deleted
)

func (t EventType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	}
	return "DELETED"
}

// Event is a change of an object, shared by all watchers. For Deleted, Item is the last state at the revision of the delete.
type Event struct {
	Type EventType // without regard to any selector
	Item *Item
	Prev *Item // nil for Added

	at     int64 // unix seconds of the change's arrival
	gone   atomic.Pointer[Item]
	frames atomic.Pointer[form[FrameKey]]
}

// Delivery is an event as one watcher sees it.
type Delivery struct {
	Event *Event
	Type  EventType // after the watcher's selector
	// Unsure means that the selector needs the object in another version: Resolve decides Type.
	Unsure bool
}

// Resolve resolves an unsure delivery. selected reports whether an item is selected. ok is false if the
// watcher does not see the event.
func (d Delivery) Resolve(selected func(*Item) (bool, error)) (_ Delivery, ok bool, err error) {
	e := d.Event
	var was, is bool
	if e.Prev != nil {
		if was, err = selected(e.Prev); err != nil {
			return d, false, err
		}
	}
	if e.Type != Deleted || e.Prev == nil {
		if is, err = selected(e.Item); err != nil {
			return d, false, err
		}
	}
	d.Type, ok = seen(e, was, is)
	d.Unsure = false
	return d, ok, nil
}

// Revision returns the event's place in the log.
func (d Delivery) Revision() int64 { return d.Event.Item.Revision }

// left reports whether the object left the watcher's selection.
func (d Delivery) left() bool {
	return d.Type == Deleted && d.Event.Type != Deleted && d.Event.Prev != nil
}

// Size returns the number of bytes of Item, which it does not make.
func (d Delivery) Size() int {
	if d.left() {
		return d.Event.Prev.Size()
	}
	return d.Event.Item.Size()
}

// Item returns the object that the watcher sees: for an object that left the selection, its previous state at the new revision.
func (d Delivery) Item() *Item {
	e := d.Event
	if !d.left() {
		return e.Item
	}
	if it := e.gone.Load(); it != nil {
		return it
	}
	made := e.Prev.at(e.Item.Revision)
	if made.Err() != nil && e.Prev.Err() == nil {
		return made // it may be readable for the next watcher
	}
	e.gone.CompareAndSwap(nil, made)
	return e.gone.Load()
}

// FrameKey identifies a wire form of an event. Format is a comparable value of the caller's choice.
type FrameKey struct {
	Type   EventType
	Format any
}

// Frame returns the frame of the delivery in a format. make makes it once for all watchers.
func (d Delivery) Frame(format any, make func(EventType, *Item) ([]byte, error)) ([]byte, error) {
	f := keep(&d.Event.frames, FrameKey{d.Type, format})
	if budget.Large(d.Size()) {
		f.once.Do(func() { f.value = &sharedFrame{} })
		return f.value.(*sharedFrame).get(func() ([]byte, error) { return make(d.Type, d.Item()) })
	}
	f.once.Do(func() {
		f.err = errUnmade
		f.value, f.err = make(d.Type, d.Item())
	})
	if f.err == errUnmade {
		return make(d.Type, d.Item())
	}
	b, _ := f.value.([]byte)
	return b, f.err
}

// sharedFrame is the frame of a large event. It stays in memory only as long as a watcher sends it: the event log, which counts
// the bytes of objects, does not keep it.
type sharedFrame struct {
	mu   sync.Mutex
	data weak.Pointer[byte] // its first byte
	size int
}

// get returns the frame, or makes it for all watchers that send it at the same time.
func (f *sharedFrame) get(make func() ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first := f.data.Value(); first != nil {
		return unsafe.Slice(first, f.size), nil
	}
	frame, err := make()
	if err == nil && len(frame) > 0 {
		f.data, f.size = weak.Make(&frame[0]), len(frame)
	}
	return frame, err
}

// translate returns the event as a watcher with the filter sees it; ok is false if the watcher does not see it.
func (f *Filter) translate(e *Event) (t EventType, ok bool) {
	if f.Everything() {
		return e.Type, true
	}
	was := e.Prev != nil && f.Match(e.Prev)
	return seen(e, was, (e.Type != Deleted || e.Prev == nil) && f.Match(e.Item))
}

// seen returns the type of an event for a watcher whose selection had the object before (was) and has it now (is).
func seen(e *Event, was, is bool) (t EventType, ok bool) {
	if e.Type == Deleted {
		// The last state may differ from the one before it, but no watcher has seen it.
		return Deleted, was || e.Prev == nil && is
	}
	switch {
	case is && was:
		return Modified, true
	case is:
		return Added, true
	case was:
		return Deleted, true
	}
	return 0, false
}

// eventLogBounds limit the recent events that a resource keeps.
type eventLogBounds struct {
	count int
	bytes int
	age   int64 // seconds
}

// eventLog holds the newest events in revision order: all events after floor.
type eventLog struct {
	bounds eventLogBounds
	events []*Event // from start on
	start  int
	bytes  int
	floor  int64
}

func (l *eventLog) add(e *Event) {
	l.events = append(l.events, e)
	l.bytes += e.size()
	l.trim(e.at)
}

// size returns the bytes that the event keeps in memory. The previous state of a change counts as far as it is larger than the
// present one: the event before may be gone, and watchers whose selection the object left make frames of the previous state.
func (e *Event) size() int {
	n := e.largest() + 256
	if e.Type == Deleted && e.Prev != nil {
		n += min(e.Item.Size(), e.Prev.Size())
	}
	return n
}

// largest returns the bytes of the larger one of the event's objects.
func (e *Event) largest() int {
	if e.Prev == nil {
		return e.Item.Size()
	}
	return max(e.Item.Size(), e.Prev.Size())
}

// trim drops the oldest events beyond the bounds.
func (l *eventLog) trim(now int64) {
	for n := len(l.events) - l.start; n > 0; n-- {
		e := l.events[l.start]
		if n <= l.bounds.count && l.bytes <= l.bounds.bytes && now-e.at <= l.bounds.age {
			break
		}
		l.floor = e.Item.Revision
		l.bytes -= e.size()
		l.events[l.start] = nil
		l.start++
	}
	if l.start == len(l.events) {
		l.events, l.start = nil, 0
	} else if l.start > 1024 && l.start > len(l.events)/2 {
		n := copy(l.events, l.events[l.start:])
		clear(l.events[n:])
		l.events, l.start = l.events[:n], 0
	}
}

// reread replaces a corrupt item by one of the same revision that can be read.
func (l *eventLog) reread(old, it *Item) {
	events := l.events[l.start:]
	from := sort.Search(len(events), func(i int) bool { return events[i].Item.Revision >= old.Revision })
	for i, e := range events[from:] {
		if e.Item != old && e.Prev != old {
			continue
		}
		again := &Event{Type: e.Type, Item: e.Item, Prev: e.Prev, at: e.at}
		if e.Item == old {
			again.Item = it
		} else {
			again.Prev = it
		}
		l.bytes += again.size() - e.size()
		events[from+i] = again
	}
}

// after lists the events after a revision, which must not be below the floor.
func (l *eventLog) after(revision int64) []*Event {
	events := l.events[l.start:]
	i := sort.Search(len(events), func(i int) bool { return events[i].Item.Revision > revision })
	return events[i:]
}
