package judge

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// version is a state of an object, or its absence, from a revision on.
type version struct {
	row      *history.Row
	revision uint64
	deleted  bool
	state    *history.State
	prev     *version // before it, in the same part of the log
	next     *version
	op       *history.Op // that wrote it; nil: not known
}

// until returns the revision from which on the version is no more.
func (v *version) until() uint64 {
	if v.next == nil {
		return ^uint64(0)
	}
	return v.next.revision
}

// part is a part of the log without a gap.
type part struct {
	segment  *history.Segment
	from, to uint64
	keys     map[history.Key][]*version   // sorted by revision
	scopes   map[history.Scope][]*version // each row once
	initial  map[history.Scope][]*version
	wide     map[history.Scope][]*version // those of all namespaces
	first    map[history.Scope][]*version // rows of all namespaces in initial
	marks    map[history.Scope]*marks
}

// rows returns the rows of a scope, and those from before the part.
func (p *part) rows(s history.Scope) (initial, rows []*version) {
	if s.Namespace == "" {
		return p.first[s], p.wide[s]
	}
	return p.initial[s], p.scopes[s]
}

// ledger is the history of the objects by the table.
type ledger struct {
	parts []*part
	ops   map[string]*history.Op
	seen  []seen // sorted by time, with the highest revision so far
	shown map[source][]seen
	calls []seen // writes by the time of their calls, with the lowest revision from there on
}

type seen struct {
	at       time.Duration
	revision uint64
}

func newLedger(r *history.Round) *ledger {
	l := &ledger{ops: map[string]*history.Op{}}
	for _, ops := range [][]*history.Op{r.Earlier, r.Ops} {
		for _, o := range ops {
			l.ops[o.ID] = o
		}
	}
	for _, s := range r.Segments {
		l.parts = append(l.parts, newPart(s))
	}
	return l
}

func newPart(s *history.Segment) *part {
	p := &part{segment: s, from: s.From, to: s.To, keys: map[history.Key][]*version{}, marks: map[history.Scope]*marks{}}
	p.scopes, p.initial = map[history.Scope][]*version{}, map[history.Scope][]*version{}
	p.wide, p.first = map[history.Scope][]*version{}, map[history.Scope][]*version{}
	add := func(r *history.Row) *version {
		v := &version{row: r, revision: r.Revision, deleted: r.Deleted, state: r.State}
		all := p.keys[r.Key]
		if len(all) > 0 {
			v.prev = all[len(all)-1]
			v.prev.next = v
		}
		p.keys[r.Key] = append(all, v)
		return v
	}
	for i := range s.Initial {
		if r := &s.Initial[i]; r.State != nil {
			v, scope := add(r), r.Key.Scope()
			p.initial[scope] = append(p.initial[scope], v)
			p.first[scope.Everywhere()] = append(p.first[scope.Everywhere()], v)
		}
	}
	for i := range s.Rows {
		if r := &s.Rows[i]; r.State != nil {
			v, scope := add(r), r.Key.Scope()
			p.scopes[scope] = append(p.scopes[scope], v)
			p.wide[scope.Everywhere()] = append(p.wide[scope.Everywhere()], v)
		}
	}
	return p
}

// part returns the part that has both revisions; nil if none has.
func (l *ledger) part(from, to uint64) *part {
	for _, p := range l.parts {
		if from >= p.from && to <= p.to {
			return p
		}
	}
	return nil
}

// phantom reports whether a revision is beyond the end of the log, which was read after all clients had ended: it does not exist.
func (l *ledger) phantom(revision uint64) bool {
	return len(l.parts) > 0 && revision > l.parts[len(l.parts)-1].to
}

// at returns the version of an object at a revision; nil: it never was there. Only for revisions of the part.
func (p *part) at(k history.Key, revision uint64) *version {
	all := p.keys[k]
	i := sort.Search(len(all), func(i int) bool { return all[i].revision > revision })
	if i == 0 {
		return nil
	}
	return all[i-1]
}

// next returns the version of the same object that follows a version, or nil.
func (p *part) next(v *version) *version {
	all := p.keys[v.row.Key]
	i := sort.Search(len(all), func(i int) bool { return all[i].revision > v.revision })
	if i == len(all) {
		return nil
	}
	return all[i]
}

// before returns the live state before a version; nil: there was none.
func (v *version) before() *history.State {
	if v.prev == nil || v.prev.deleted {
		return nil
	}
	return v.prev.state
}

// after returns the versions of a scope after a revision, up to another one.
func (p *part) after(s history.Scope, from, to uint64) []*version {
	_, all := p.rows(s)
	i := sort.Search(len(all), func(i int) bool { return all[i].revision > from })
	j := sort.Search(len(all), func(i int) bool { return all[i].revision > to })
	return all[i:j]
}

// times collects when clients saw revisions, and when writes began.
func (j *judge) times() {
	saw := func(at time.Duration, revision uint64) {
		if revision != 0 {
			j.seen = append(j.seen, seen{at, revision})
		}
	}
	for _, o := range j.r.Ops {
		if o.Outcome == history.OK && o.Got != nil {
			saw(o.Return, o.Got.Version)
		}
	}
	j.shown = map[source][]seen{}
	for _, l := range j.r.Lists {
		if len(l.Pages) == 0 {
			continue
		}
		saw(l.Return, l.Pages[0].Version)
		if l.Match != history.Exact && l.Server >= 0 {
			at := source{l.Server, l.Scope.Resource}
			j.shown[at] = append(j.shown[at], seen{l.Return, l.Pages[0].Version})
		}
	}
	for _, all := range j.shown {
		rise(all)
	}
	for _, s := range j.r.Streams {
		for i := range s.Events {
			saw(s.Events[i].At, s.Events[i].Item.State.Version)
		}
	}
	rise(j.seen)
	for _, p := range j.parts {
		for _, all := range p.keys {
			for _, v := range all {
				if v.op != nil && !v.deleted {
					j.calls = append(j.calls, seen{v.op.Call, v.revision})
				}
			}
		}
	}
	slices.SortFunc(j.calls, func(a, b seen) int { return cmp.Compare(a.at, b.at) })
	for i := len(j.calls) - 2; i >= 0; i-- {
		j.calls[i].revision = min(j.calls[i].revision, j.calls[i+1].revision)
	}
}

// rise sorts revisions by time, and makes each the highest so far.
func rise(all []seen) {
	slices.SortFunc(all, func(a, b seen) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(all); i++ {
		all[i].revision = max(all[i].revision, all[i-1].revision)
	}
}

// newest returns the highest of some revisions before a time.
func newest(all []seen, at time.Duration) uint64 {
	i := sort.Search(len(all), func(i int) bool { return all[i].at >= at })
	if i == 0 {
		return 0
	}
	return all[i-1].revision
}

// seenBefore returns the newest revision that any client had seen before a time.
func (l *ledger) seenBefore(at time.Duration) uint64 { return newest(l.seen, at) }

// source is the memory of a server that has the objects of a resource.
type source struct {
	server   int
	resource string
}

// shownBefore returns the newest revision of a list of a resource that a server had answered before a time. Reads of any version do not
// go back behind it, unless the database does.
func (j *judge) shownBefore(server int, resource string, at time.Duration) uint64 {
	if at >= j.beforeLoss() {
		return 0
	}
	return newest(j.shown[source{server, resource}], at)
}

// tooNew reports whether a revision cannot have been at a time: a write that began later has a lower one, or the same.
func (l *ledger) tooNew(revision uint64, at time.Duration) bool {
	i := sort.Search(len(l.calls), func(i int) bool { return l.calls[i].at > at })
	return i < len(l.calls) && l.calls[i].revision <= revision
}

// writeAfter returns a write that shows that a revision was too new.
func (j *judge) writeAfter(revision uint64, at time.Duration) *history.Op {
	for _, p := range j.parts {
		for _, all := range p.keys {
			for _, v := range all {
				if v.op != nil && !v.deleted && v.op.Call > at && v.revision <= revision {
					return v.op
				}
			}
		}
	}
	return nil
}
