package judge

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// streams checks every watch by itself: from the version that it was asked for to the last that it showed. As
// clients resume from there, properties hold over reconnections if they hold for each stream.
func (j *judge) streams() {
	for _, s := range j.r.Streams {
		if s.Code == http.StatusOK {
			j.stream(s)
			j.timed(s)
			j.served(s)
		}
		j.refused(s)
	}
}

// refused checks a watch that was answered, or ended, with 410: its place must lie before the floor. The client does not
// know the place better than by the last version that it was shown, nor the judge the floor better than by its next reading:
// both only spare the server.
func (j *judge) refused(s *history.Stream) {
	place, at := s.From, time.Duration(-1)
	if s.Code == http.StatusGone {
		at = s.Begun
	}
	begun := !s.Initial // behind the initial events, which are in no order
	for i := range s.Events {
		e := &s.Events[i]
		begun = begun || e.Ends
		if begun {
			place = max(place, e.Item.State.Version)
		}
		if e.Type == "ERROR" && e.Code == http.StatusGone {
			at = e.At
		}
	}
	if at < 0 || !begun {
		return
	}
	i := sort.Search(len(j.r.Floors), func(i int) bool { return j.r.Floors[i].At >= at })
	if i == len(j.r.Floors) {
		j.open("watches that ended with 410 after the floor was last read")
		return
	}
	j.judged("watch-resumable")
	floor := j.r.Floors[i].Revision
	if place < floor {
		return
	}
	if slices.ContainsFunc(j.r.Reloads, func(r *history.Reload) bool { return r.Server == s.Server && r.Begin <= at && s.Call <= r.End }) {
		j.open("watches that ended with 410 while the server loaded all objects anew")
		return
	}
	j.violate("watch-resumable", around(s, len(s.Events)), "a watch at version %d ended with 410, and the log still reached back to %d", place, floor)
}

// around shows a violation: the stream, and the events around one of them.
func around(s *history.Stream, i int, more ...string) []string {
	lines := []string{s.String()}
	for k := max(0, i-2); k < min(len(s.Events), i+2); k++ {
		lines = append(lines, "  "+s.Events[k].String())
	}
	return append(lines, more...)
}

func (j *judge) stream(s *history.Stream) {
	from, events, ok := s.From, s.Events, true
	switch {
	case s.Initial:
		from, events, ok = j.initial(s)
	case s.Bare:
		from, events, ok = j.bare(s)
	}
	if !ok {
		return
	}
	offset := len(s.Events) - len(events)
	last, mark := from, uint64(0)
	if s.Initial || s.Bare {
		mark = from
	}
	seen := map[uint64]string{}
	for i := range events {
		e := &events[i]
		at := e.Item.State.Version
		switch e.Type {
		case "ERROR":
			continue
		case "INVALID":
			j.violate("watch-atomic", around(s, offset+i), "what a watch sent is no event: %s", s.Reason)
			return
		case "BOOKMARK":
			j.judged("watch-bookmarkable")
			if at < last {
				j.violate("watch-ordered", around(s, offset+i), "a bookmark at version %d comes after version %d", at, last)
			}
			mark = max(mark, at)
		default:
			j.judged("watch-ordered")
			j.judged("watch-unique")
			switch name, twice := seen[at]; {
			case twice && name == e.Item.Name:
				j.violate("watch-unique", around(s, offset+i), "the event of version %d came twice", at)
			case twice:
				j.violate("watch-atomic", around(s, offset+i), "version %d has events of two objects", at)
			case at <= mark:
				j.violate("watch-bookmarkable", around(s, offset+i), "an event of version %d comes after a bookmark at %d", at, mark)
			case at <= last:
				j.violate("watch-ordered", around(s, offset+i), "an event of version %d comes after version %d", at, last)
			}
			seen[at] = e.Item.Name
		}
		last = max(last, at)
		j.judged("watch-future")
		if j.tooNew(at, e.At) {
			j.violate("watch-future", around(s, offset+i, opLines(j.writeAfter(at, e.At))...), "version %d came before a write of it, or of a version before it, began", at)
		}
		if since, lost := j.void(at, e.At); lost && since > voidTime {
			j.violate("watch-future", around(s, offset+i), "version %d came, which the database had lost %s before", at, since)
		}
		if j.phantom(at) {
			j.violate("watch-future", around(s, offset+i), "version %d came, which the table does not have", at)
			return
		}
	}
	p := j.part(from, last)
	if p == nil {
		j.open("watches of versions that were compacted before they were read")
		return
	}
	j.compare(s, p, from, last, events)
	if s.Patient {
		j.prompt(s, p, from, events)
	}
}

// PromptTime bounds the delay of an event after the acknowledgement of its write, not counting faults that kept the
// server from its database, or clients from the server, and times when one of them did not run.
const PromptTime = 10 * time.Second

// prompt checks that the events of a watch come in time.
func (j *judge) prompt(s *history.Stream, p *part, from uint64, events []history.Event) {
	came := map[uint64]time.Duration{}
	for i := range events {
		if e := &events[i]; e.Type != "BOOKMARK" {
			came[e.Item.State.Version] = e.At
		}
	}
	for _, v := range p.after(s.Scope, from, p.to) {
		if v.op == nil || v.op.Outcome != history.OK || expected(v, s.Selector) == "" {
			continue
		}
		due := max(v.op.Return, s.Begun) + PromptTime
		if due >= s.End {
			continue
		}
		j.judged("watch-prompt")
		at, ok := came[v.revision]
		if !ok {
			at = s.End
		}
		if at > due && j.quiet(due-PromptTime, at, s.Server) > PromptTime {
			j.violate("watch-prompt", around(s, len(s.Events), append(rowLines(*v.row), opLines(v.op)...)...), "the event of version %d did not come within %s", v.revision, PromptTime)
		}
	}
}

// initial takes the initial events of a streaming list, and returns the version and the events behind it.
func (j *judge) initial(s *history.Stream) (from uint64, rest []history.Event, ok bool) {
	var items []history.Item
	for i := range s.Events {
		e := &s.Events[i]
		switch {
		case e.Ends:
			from = e.Item.State.Version
			j.judged("watch-initial")
			least := s.Asked
			switch s.Match {
			case history.Latest:
				least = j.seenBefore(s.Call)
			case history.Any:
				least = j.shownBefore(s.Server, s.Scope.Resource, s.Call)
			}
			if from < least {
				j.violate("watch-initial", append(around(s, i), j.whoSaw(least)), "a streaming list is of version %d, and %d had been seen before it, or was asked for", from, least)
			}
			if j.phantom(from) {
				j.violate("watch-initial", around(s, i), "a streaming list is of version %d, which the table does not have", from)
				return 0, nil, false
			} else if p := j.part(from, from); p == nil {
				j.open("streaming lists of versions that were compacted before they were read")
			} else if lines, same := p.same(s.Scope, s.Selector, s.Form, from, items, true, nil); !same {
				j.violate("watch-initial", append(around(s, i), lines...), "the initial events are not the state at version %d", from)
			}
			return from, s.Events[i+1:], true
		case e.Type == "ADDED":
			items = append(items, e.Item)
		case e.Type == "ERROR":
			return 0, nil, false
		default:
			j.violate("watch-initial", around(s, i), "a streaming list begins with %s", e.Type)
			return 0, nil, false
		}
	}
	return 0, nil, false // cut before its end
}

// expected returns the type of the event that a selector sees of a version; "": none.
func expected(v *version, sel history.Selector) string {
	name := v.row.Key.Name
	before := v.before()
	was := before != nil && sel.Selects(name, before)
	is := !v.deleted && sel.Selects(name, v.state)
	switch {
	case was && is:
		return "MODIFIED"
	case was:
		return "DELETED"
	case is:
		return "ADDED"
	}
	return ""
}

// compare holds the events of a stream against the log.
func (j *judge) compare(s *history.Stream, p *part, from, last uint64, events []history.Event) {
	type got struct {
		event *history.Event
		index int
	}
	came := map[uint64]got{}
	first := uint64(0)
	var marks []got // the bookmarks
	for i := range events {
		e := &events[i]
		switch e.Type {
		case "ADDED", "MODIFIED", "DELETED":
			came[e.Item.State.Version] = got{e, len(s.Events) - len(events) + i}
			if first == 0 {
				first = e.Item.State.Version
			}
		case "BOOKMARK":
			marks = append(marks, got{e, len(s.Events) - len(events) + i})
		}
	}
	for _, v := range p.after(s.Scope, from, last) {
		want := expected(v, s.Selector)
		g, there := came[v.revision]
		delete(came, v.revision)
		if want == "" && !there {
			continue
		}
		j.judged("watch-filtered")
		row := func() string { return rowLine(v.row) }
		switch e := g.event; {
		case want == "":
			j.violate("watch-filtered", around(s, g.index, row()), "an event came of version %d, which is not selected", v.revision)
		case !there:
			j.missing(s, v, first, func() (int, uint64, bool) {
				for _, m := range marks {
					if m.event.Item.State.Version >= v.revision {
						return m.index, m.event.Item.State.Version, true
					}
				}
				return 0, 0, false
			})
		case e.Item.Name != v.row.Key.Name:
			j.violate("watch-atomic", around(s, g.index, row()), "the event of version %d is of another object", v.revision)
		case e.Type != want:
			j.violate("watch-filtered", around(s, g.index, row()), "the event of version %d is %s, and should be %s", v.revision, e.Type, want)
		case want == "DELETED":
			if j.judged("watch-previous"); e.Item.State.Hash != s.Form.HashOf(v.before()) && !(v.deleted && e.Item.State.Hash == s.Form.HashOf(v.state)) {
				j.violate("watch-previous", around(s, g.index, rowLine(v.prev.row), row()), "the event of version %d has not the last state of %s", v.revision, v.row.Key.Name)
			}
		default:
			if j.judged("watch-atomic"); e.Item.State.Hash != s.Form.HashOf(v.state) {
				j.violate("watch-atomic", around(s, g.index, row()), "the event of version %d has another content than the write", v.revision)
			}
		}
	}
	j.judged("watch-reliable")
	if first != 0 {
		j.judged("watch-resumable")
	}
	for revision, g := range came {
		j.violate("watch-filtered", around(s, g.index), "an event came of version %d, which is of no object in the scope", revision)
	}
}

func (j *judge) missing(s *history.Stream, v *version, first uint64, marked func() (int, uint64, bool)) {
	index := len(s.Events)
	for i := range s.Events {
		if s.Events[i].Item.State.Version > v.revision {
			index = i
			break
		}
	}
	lines := around(s, index, rowLine(v.row))
	if v.prev != nil {
		lines = append(lines, "before: "+rowLine(v.prev.row))
	}
	what := fmt.Sprintf("the event of version %d is missing", v.revision)
	switch _, mark, ok := marked(); {
	case first == 0 || v.revision < first:
		if ok && first == 0 {
			j.violate("watch-bookmarkable", lines, "%s, and a bookmark at %d came", what, mark)
			return
		}
		j.violate("watch-resumable", lines, "%s, which begins at %d with %d", what, s.From, first)
	case ok:
		j.violate("watch-bookmarkable", lines, "%s, and a bookmark at %d came", what, mark)
	default:
		j.violate("watch-reliable", lines, "%s", what)
	}
}
