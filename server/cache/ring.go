package cache

import "sort"

// ringBounds limit the recent events that a shelf keeps.
type ringBounds struct {
	count int
	bytes int
	age   int64 // seconds
}

// ring holds the newest events in revision order: all of those after floor.
type ring struct {
	bounds ringBounds
	events []*Event // from start on
	start  int
	bytes  int
	floor  int64
}

func (r *ring) add(e *Event) {
	r.events = append(r.events, e)
	r.bytes += e.size()
	r.trim(e.at)
}

func (e *Event) size() int {
	n := len(e.Item.JSON) + 256
	if e.Type == Deleted && e.Prev != nil {
		n += len(e.Prev.JSON)
	}
	return n
}

// trim drops what lies beyond the bounds.
func (r *ring) trim(now int64) {
	for n := len(r.events) - r.start; n > 0; n-- {
		e := r.events[r.start]
		if n <= r.bounds.count && r.bytes <= r.bounds.bytes && now-e.at <= r.bounds.age {
			break
		}
		r.floor = e.Item.Revision
		r.bytes -= e.size()
		r.events[r.start] = nil
		r.start++
	}
	if r.start == len(r.events) {
		r.events, r.start = nil, 0
	} else if r.start > 1024 && r.start > len(r.events)/2 {
		n := copy(r.events, r.events[r.start:])
		clear(r.events[n:])
		r.events, r.start = r.events[:n], 0
	}
}

// after lists the events after a revision, which must not lie below the floor.
func (r *ring) after(revision int64) []*Event {
	events := r.events[r.start:]
	i := sort.Search(len(events), func(i int) bool { return events[i].Item.Revision > revision })
	return events[i:]
}
