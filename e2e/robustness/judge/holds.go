package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// holds checks that no more clients have something at the same time than there is of it: an address, a port, the places of a quota.
func (j *judge) holds() {
	byWhat := map[string][]*history.Hold{}
	lost := j.beforeLoss()
	for _, h := range j.r.Holds {
		if h.From < lost {
			byWhat[h.What] = append(byWhat[h.What], h)
		}
	}
	for what, all := range byWhat {
		slices.SortFunc(all, func(a, b *history.Hold) int { return cmp.Compare(a.From, b.From) })
		var now []*history.Hold
		for _, h := range all {
			j.judged("holds")
			now = slices.DeleteFunc(now, func(other *history.Hold) bool { return other.Until != 0 && other.Until <= h.From })
			if now = append(now, h); len(now) > h.Most {
				var lines []string
				for _, h := range now {
					lines = append(lines, h.String())
				}
				j.violate("holds", lines, "%d have %s at %s, and there is enough for %d", len(now), what, h.From.Round(time.Millisecond), h.Most)
				break
			}
		}
	}
}

// owners checks that the garbage collector deletes no object that has an owner, or that was orphaned; and no owner, in the foreground,
// before an object that it waits for.
func (j *judge) owners() {
	byKey := map[history.Key]*history.Life{}
	lost := j.beforeLoss()
	for _, l := range j.r.Lives {
		byKey[l.Key] = l
	}
	for _, p := range j.parts {
		gone := map[history.Key][]*history.Row{}
		for i := range p.segment.Rows {
			if r := &p.segment.Rows[i]; r.Deleted {
				gone[r.Key] = append(gone[r.Key], r)
			}
		}
		for i := range p.segment.Rows {
			r := &p.segment.Rows[i]
			l := byKey[r.Key]
			if l == nil || !r.Deleted || r.At >= lost {
				continue
			}
			j.judged("owners")
			if r.At < l.Until {
				j.violate("owners", []string{l.String(), rowLine(r)}, "%s is gone at %s, and nothing had allowed that", r.Key, r.At.Round(time.Millisecond))
			}
			if l.Before == nil {
				continue
			}
			for _, owner := range gone[*l.Before] { // an object is made after its owner
				if owner.Created < r.Created && r.Created < owner.Revision && owner.Revision < r.Revision {
					j.violate("owners", append(rowLines(*owner, *r), l.String()), "%s is deleted in the foreground, and gone before %s", owner.Key, r.Key)
				}
			}
		}
	}
}
