package judge

import (
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// early is by how much less history may be kept than for its time: by how much the clock of PostgreSQL may be misjudged.
const early = time.Second

// ahead is by how much less it may be kept where a clock is set: a server that starts takes a clock that is ahead of the newest write by
// less for a right one.
const ahead = 10 * time.Second

// overdueAfter bounds how long a write stays in the log, without the time of all faults, as commands of an operator hold history too. One
// server looks for old writes every two seconds, and raises the floor once in the time for which the log is kept.
const overdueAfter = 3*history.LogRetention + 6*time.Second

// retention checks that compaction deletes no history before its time, unless an operator asked for that: every write at or below a
// floor must have begun so long before the floor was read.
func (j *judge) retention() {
	if len(j.r.Losses) > 0 {
		j.open("readings of the floors in a round in which revisions were left out")
		return
	}
	var writes []*version // by revision
	for _, p := range j.parts {
		for _, scope := range p.scopes {
			for _, v := range scope {
				if v.op != nil {
					writes = append(writes, v)
				}
			}
		}
	}
	slices.SortFunc(writes, func(a, b *version) int { return int(a.revision) - int(b.revision) })
	newest := make([]*version, len(writes)) // up to each, the one whose request began last
	for i, v := range writes {
		if newest[i] = v; i > 0 && newest[i-1].op.Call > v.op.Call {
			newest[i] = newest[i-1]
		}
	}
	j.overdue(writes)
	early := early
	if slices.ContainsFunc(j.r.Faults, j.startsAhead) {
		early += ahead
	}
	for _, kept := range []struct {
		what  string
		long  time.Duration
		floor func(*history.Floor) uint64
	}{
		{"events", history.LogRetention, func(f *history.Floor) uint64 { return f.Revision }},
		{"old states", history.Retention, func(f *history.Floor) uint64 { return f.Past }},
	} {
		asked := uint64(0) // how far operators have compacted
		for i := range j.r.Floors {
			if i+1 == len(j.r.Floors) {
				break // when it was read is not known
			}
			f, next := &j.r.Floors[i], &j.r.Floors[i+1]
			floor := kept.floor(f)
			if i == 0 || j.compacted(j.r.Floors[i-1].At, next.At) {
				asked = max(asked, floor)
			}
			j.judged("retention")
			n, _ := slices.BinarySearchFunc(writes, floor+1, func(v *version, at uint64) int { return int(v.revision) - int(at) })
			if floor <= asked || n == 0 {
				continue
			}
			if v := newest[n-1]; next.At-v.op.Call < kept.long-early {
				j.violate("retention", append(opLines(v.op), rowLine(v.row)), "%s up to revision %d are gone at %s, less than %s after revision %d was written", kept.what, floor, next.At, kept.long, v.revision)
			}
		}
	}
}

// startsAhead reports whether a server may have started while a fault set its clock, or so little before that its compaction began then.
func (j *judge) startsAhead(clock *history.Fault) bool {
	return clock.Clock && slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool {
		return f.Store && f.Begin <= clock.End && f.End >= clock.Begin-ahead
	})
}

// compacted reports whether an operator compacted the database between two times.
func (j *judge) compacted(from, to time.Duration) bool {
	return slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool { return f.Compacts && f.Begin <= to && f.End >= from })
}

// overdue checks that the log does not reach back to writes whose time is long over.
func (j *judge) overdue(writes []*version) {
	if len(j.r.Floors) == 0 {
		return
	}
	if slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool { return f.Clock }) || j.r.Misdated > 0 {
		j.open("floors of the log after clocks were set: then servers may measure ages by less time than has passed")
		return
	}
	last := &j.r.Floors[len(j.r.Floors)-1]
	for _, v := range slices.Backward(writes) {
		// The first delete of a Pod counts as the write of whatever ends it: only an answer that shows the version has come after it.
		if v.op.Got == nil || v.op.Got.Version != v.revision || last.At <= j.calm(touched, v.op.Return, overdueAfter, every) {
			continue
		}
		if j.judged("retention"); v.revision > last.Revision {
			j.violate("retention", append(opLines(v.op), rowLine(v.row)), "the log reaches back to revision %d at %s, and revision %d was acknowledged more than %s before", last.Revision, last.At.Round(time.Millisecond), v.revision, overdueAfter)
		}
		return
	}
}
