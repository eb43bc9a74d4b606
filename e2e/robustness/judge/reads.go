package judge

import (
	"math"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// reads checks single reads.
func (j *judge) reads() {
	for _, o := range j.r.Ops {
		if !o.Reads() || o.Key.Loose() || o.Outcome != history.OK && o.Outcome != history.NotFound {
			continue
		}
		least := o.AtLeast
		switch {
		case o.Cached:
			least = j.shownBefore(o.Server, o.Key.Resource, o.Call)
		case o.AtLeast == 0:
			least = j.seenBefore(o.Call)
		}
		if o.Outcome == history.NotFound {
			j.absent(o, least)
			continue
		}
		if j.phantom(o.Got.Version) {
			j.violate("reads", opLines(o), "a read shows version %d of %s, which the table does not have", o.Got.Version, o.Key)
			continue
		}
		v, known := j.version(o.Key, o.Got.Version)
		if !known && (len(j.parts) == 0 || o.Got.Version > j.parts[0].from || least < j.parts[0].from) {
			j.open("reads of versions that were compacted before they were read")
			continue
		}
		j.judged("reads")
		if !known { // the table begins with another one
			j.violate("reads", append(opLines(o), j.whoSaw(least)), "a read is stale: it shows version %d, which was no more at %d, and %d had been seen or asked for", o.Got.Version, j.parts[0].from, least)
			continue
		}
		since, lost := j.void(o.Got.Version, o.Call)
		switch {
		case lost && since > voidTime:
			j.violate("reads", opLines(o), "a read shows version %d of %s, which the database had lost %s before", o.Got.Version, o.Key, since)
		case v == nil || v.deleted || v.revision != o.Got.Version:
			lines := opLines(o)
			if v != nil {
				lines = append(lines, rowLine(v.row))
			}
			j.violate("reads", lines, "a read shows version %d of %s, which never was", o.Got.Version, o.Key)
		case !shows(o, v.state):
			j.violate("reads", append(opLines(v.op, o), rowLine(v.row)), "a read shows another content than version %d has", v.revision)
		case j.until(v, o.Return) <= least:
			j.violate("reads", append(append(opLines(v.op, o), rowLine(v.next.row)), j.whoSaw(least)), "a read is stale: it shows version %d, which ended at %d, and %d had been seen or asked for", v.revision, v.until(), least)
		case !j.lives(v, least):
			j.violate("reads", append(opLines(v.op, o), rowLine(v.row), j.whoSaw(least)), "a read is stale: it shows version %d, which is no more at %d, and %d had been seen or asked for", v.revision, least, least)
		case j.tooNew(v.revision, o.Return):
			j.violate("reads", opLines(o, j.writeAfter(v.revision, o.Return)), "a read shows version %d before a write with a lower revision began", v.revision)
		}
	}
}

// Bounds of the revision that a server names for a time. Packed rows have times in whole seconds.
const (
	clocksDiffer = 100 * time.Millisecond
	wholeSecond  = time.Second
	settled      = history.Retention + history.LogRetention // after which no row is left of a time when a clock was wrong
)

// moments checks the revisions that servers name for times: they have all writes that were seen before, and none that began afterwards.
func (j *judge) moments() {
	for _, m := range j.r.Moments {
		if len(j.r.Losses) > 0 || j.r.Misdated > 0 && m.Of < j.r.Misdated+settled || slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool { return f.Stamps }) {
			j.open("revisions of times at which the database may have lost commits, or had a wrong clock")
			continue
		}
		j.judged("exact")
		if seen := j.seenBefore(m.Of - wholeSecond - clocksDiffer); seen > m.Revision {
			j.violate("exact", []string{m.String(), j.whoSaw(seen)}, "revision %d is named for %s, and %d had been seen before", m.Revision, m.Of.Round(time.Millisecond), seen)
		}
		if after, of := j.committedOf(m); j.tooNew(m.Revision, after) {
			j.violate("exact", append([]string{m.String()}, opLines(j.writeAfter(m.Revision, after), of)...), "revision %d is named for %s, and a write with a lower revision, or that one, began afterwards", m.Revision, m.Of.Round(time.Millisecond))
		}
	}
}

// committedOf returns until when the revision that a server names for a time may have been committed, and its write if that is known. One
// of several servers waits for the others' commits after it has read its clock, so the revision may have the time and be above writes that
// began later. The clients know no bound for a write without an answer, or for one that is not theirs.
func (j *judge) committedOf(m *history.Moment) (time.Duration, *history.Op) {
	after := m.Of + clocksDiffer
	for _, p := range j.parts {
		for _, all := range p.keys {
			for _, v := range all {
				switch {
				case v.revision != m.Revision:
				case v.op == nil || v.op.Call <= after && v.op.Outcome == history.Unknown:
					return m.At, v.op
				case v.op.Call <= after:
					return max(after, v.op.Return), v.op
				default:
					return after, v.op
				}
			}
		}
	}
	return m.At, nil
}

// version returns the version of an object at a revision at which a read shows it. Not known: that is between parts of the log, or
// before them, and no part begins with it.
func (j *judge) version(k history.Key, revision uint64) (v *version, known bool) {
	if p := j.part(revision, revision); p != nil {
		return p.at(k, revision), true
	}
	for _, p := range j.parts {
		if v := p.at(k, p.from); v != nil && v.revision == revision {
			return v, true
		}
	}
	return nil, false
}

// until is the revision from which on a version was no more, as a reader may see it at a time: what replaced it may be lost.
func (j *judge) until(v *version, at time.Duration) uint64 {
	for _, l := range j.r.Losses {
		if end := v.until(); at > l.Begin && v.revision <= l.Found && end > l.Found && end <= l.Found+leftOut {
			return math.MaxUint64
		}
	}
	return v.until()
}

// lives reports whether a version that is the last of its part of the log is still there in later parts, which begin up to
// a revision.
func (j *judge) lives(v *version, revision uint64) bool {
	for _, p := range j.parts {
		if p.from <= v.revision || p.from > revision {
			continue
		}
		if w := p.at(v.row.Key, p.from); w == nil || w.deleted || w.revision != v.revision {
			return false
		}
	}
	return true
}

// absent checks a read that found nothing.
func (j *judge) absent(o *history.Op, least uint64) {
	if len(j.parts) == 0 {
		return
	}
	p := j.parts[len(j.parts)-1]
	if least < p.from {
		j.open("reads that found nothing, of a time that was compacted before it was read")
		return
	}
	j.judged("reads")
	v := p.at(o.Key, least)
	if v == nil || v.deleted {
		return
	}
	// It was there at the revision that had been seen: it must have been deleted since.
	for n := v.next; n != nil; n = n.next {
		if n.deleted {
			if j.tooNew(n.revision, o.Return) {
				break
			}
			return
		}
	}
	lines := append(opLines(v.op, o), rowLine(v.row))
	if v.next != nil {
		lines = append(lines, rowLine(v.next.row))
	}
	j.violate("reads", append(lines, j.whoSaw(least)), "a read finds nothing, and %s was there at revision %d, which had been seen or asked for", o.Key, least)
}
