package cache

import "sort"

// eventLogBounds limit the recent events that a resource keeps.
type eventLogBounds struct {
	count int
	bytes int
	age   int64 // seconds
}

// eventLog holds the newest events in revision order: all of those after floor.
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

func (e *Event) size() int {
	n := e.Item.Size() + 256
	if e.Type == Deleted && e.Prev != nil {
		n += e.Prev.Size()
	}
	return n
}

// trim drops what lies beyond the bounds.
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

// reread puts an item in the place of another that is of the same revision and can be read now.
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

// after lists the events after a revision, which must not lie below the floor.
func (l *eventLog) after(revision int64) []*Event {
	events := l.events[l.start:]
	i := sort.Search(len(events), func(i int) bool { return events[i].Item.Revision > revision })
	return events[i:]
}
