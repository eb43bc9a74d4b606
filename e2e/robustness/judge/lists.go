package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// marks are whole states of a scope, each kept after so many rows: as many as the scope has objects, so that a state at any
// revision costs a few times these, and all marks no more than the rows.
type marks struct {
	every  int
	states []map[string]*version
}

// leastMark is the least number of rows between two marks.
const leastMark = 128

func (p *part) marksOf(s history.Scope) *marks {
	if m := p.marks[s]; m != nil {
		return m
	}
	state := map[string]*version{}
	most := len(p.initial[s])
	live := most
	for _, v := range p.scopes[s] {
		switch was := v.before() != nil; {
		case v.deleted && was:
			live--
		case !v.deleted && !was:
			live++
		}
		most = max(most, live)
	}
	m := &marks{every: max(leastMark, most)}
	for _, v := range p.initial[s] {
		state[v.row.Key.Name] = v
	}
	m.states = append(m.states, maps.Clone(state))
	for i, v := range p.scopes[s] {
		if state[v.row.Key.Name] = v; v.deleted {
			delete(state, v.row.Key.Name)
		}
		if (i+1)%m.every == 0 {
			m.states = append(m.states, maps.Clone(state))
		}
	}
	p.marks[s] = m
	return m
}

// state is the objects of a scope that a selector chooses at a revision.
func (p *part) state(s history.Scope, sel history.Selector, revision uint64) map[string]*version {
	m := p.marksOf(s)
	rows := p.after(s, p.from, revision)
	found := maps.Clone(m.states[len(rows)/m.every])
	for _, v := range rows[len(rows)/m.every*m.every:] {
		found[v.row.Key.Name] = v
	}
	for name, v := range found {
		if v.deleted || !sel.Selects(name, v.state) {
			delete(found, name)
		}
	}
	return found
}

// same reports whether items are the state of a scope at a revision; of one that is not whole, the beginning of it.
func (p *part) same(s history.Scope, sel history.Selector, revision uint64, items []history.Item, whole bool) (lines []string, ok bool) {
	want := p.state(s, sel, revision)
	last := ""
	for i := range items {
		it := &items[i]
		v := want[it.Name]
		delete(want, it.Name)
		switch {
		case v == nil:
			lines = append(lines, fmt.Sprintf("it has %s at version %d, which is not there then", it.Name, it.State.Version))
			if v := p.at(history.Key{Resource: s.Resource, Namespace: s.Namespace, Name: it.Name}, ^uint64(0)); v != nil {
				lines = append(lines, rowLine(v.row))
			}
		case v.revision != it.State.Version || v.state.Hash != it.State.Hash:
			lines = append(lines, fmt.Sprintf("it has %s at version %d %v", it.Name, it.State.Version, it.State.Fields), rowLine(v.row))
		}
		last = max(last, it.Name)
	}
	for name, v := range want {
		if whole || name < last {
			lines = append(lines, "it lacks "+rowLine(v.row))
		}
	}
	if len(lines) > 6 {
		lines = append(lines[:6], fmt.Sprintf("and %d more differences", len(lines)-6))
	}
	return lines, len(lines) == 0
}

// lists checks lists.
func (j *judge) lists() {
	for _, l := range j.r.Lists {
		if len(l.Pages) == 0 {
			continue
		}
		property := "list"
		if l.Match == history.Exact {
			property = "exact"
		}
		revision := l.Pages[0].Version
		lines := []string{l.String()}
		if len(l.Pages) > 1 {
			j.judged("pages")
			property = "pages"
		}
		var items []history.Item
		for _, page := range l.Pages {
			items = append(items, page.Items...)
		}
		if i := slices.IndexFunc(l.Pages, func(p history.Page) bool { return p.Version != revision }); i > 0 {
			j.violate("pages", lines, "pages of one list are of versions %d and %d", revision, l.Pages[i].Version)
			continue
		}
		for i := 1; i < len(items); i++ {
			if items[i].Name <= items[i-1].Name {
				j.violate("pages", lines, "%s comes after %s", items[i].Name, items[i-1].Name)
			}
		}
		j.judged(property)
		least := uint64(0)
		switch l.Match {
		case history.Latest:
			least = j.seenBefore(l.Call)
		case history.NotOlder:
			least = l.Asked
		case history.Exact:
			if revision != l.Asked {
				j.violate("exact", lines, "a list of exactly version %d is of version %d", l.Asked, revision)
				continue
			}
		}
		if revision < least {
			j.violate("list", append(lines, j.whoSaw(least)), "a list is stale: it is of version %d, and %d had been seen or asked for", revision, least)
		}
		if j.tooNew(revision, l.Return) {
			j.violate("list", append(lines, opLines(j.writeAfter(revision, l.Return))...), "a list is of version %d before a write with a lower revision began", revision)
		}
		if since, lost := j.void(revision, l.Call); lost && since > voidTime {
			j.violate("list", lines, "a list is of version %d, which the database had lost %s before", revision, since)
		}
		if j.phantom(revision) {
			j.violate(property, lines, "a list is of version %d, which the table does not have", revision)
			continue
		}
		p := j.part(revision, revision)
		if p == nil {
			j.open("lists of versions that were compacted before they were read")
			continue
		}
		whole := l.Outcome == history.OK && !l.Pages[len(l.Pages)-1].More
		if differences, ok := p.same(l.Scope, l.Selector, revision, items, whole); !ok {
			j.violate(property, append(lines, differences...), "a list is not the state at version %d", revision)
		}
	}
}

// caches checks the objects that informers hold in the end.
func (j *judge) caches() {
	for _, c := range j.r.Caches {
		j.judged("cache")
		if c.Wrong != "" && len(j.r.Losses) == 0 {
			j.violate("cache", nil, "%s: %s", c.Client, c.Wrong)
		}
		p := j.part(j.r.Final, j.r.Final)
		if p == nil {
			j.open("caches of informers at a version that was compacted before it was read")
			continue
		}
		differences, ok := p.same(c.Scope, history.Selector{}, j.r.Final, c.Items, true)
		if !ok { // a write without an answer may come to pass late
			_, ok = p.same(c.Scope, history.Selector{}, p.to, c.Items, true)
		}
		if !ok {
			j.violate("cache", differences, "the cache of %s of %s/%s is not the state at version %d", c.Client, c.Scope.Resource, c.Scope.Namespace, j.r.Final)
		}
	}
}

// RightsTime is how long a right may be used after its end was acknowledged: the time in which every server that reaches
// its database has heard of it. Times when faults keep that server from its database do not count. The server that acknowledged
// it knows at once.
const RightsTime = 8 * time.Second

// rights checks that no user reads an object without a right to it.
func (j *judge) rights() {
	type span struct {
		from, to time.Duration // from the first grant to the acknowledgement of the revocation
		server   int           // that acknowledged it, from 1 on; 0: not known
	}
	spans := map[string]*span{}
	for _, r := range j.r.Rights {
		s := spans[r.Subject]
		if s == nil {
			s = &span{from: r.Call, to: 1<<63 - 1}
			spans[r.Subject] = s
		}
		if r.Granted {
			s.from = min(s.from, r.Call)
		} else if r.Outcome == history.OK {
			s.to, s.server = r.Return, r.Server
		}
	}
	lost := j.beforeLoss()
	for _, a := range j.r.Accesses {
		j.judged("rights")
		if a.Code < 200 || a.Code >= 300 {
			continue
		}
		if s := spans[a.Subject]; s != nil && s.from < lost && a.Return > lost && a.What == "read" {
			j.open("uses of rights whose changes the database may have lost")
			continue
		}
		lines := func() (lines []string) {
			for _, r := range j.r.Rights {
				if r.Subject == a.Subject {
					lines = append(lines, r.String())
				}
			}
			return append(lines, a.String())
		}
		s := spans[a.Subject]
		switch {
		case a.What != "read":
			j.violate("rights", lines(), "%s never had the right to this read", a.Subject)
		case s == nil || a.Return < s.from:
			j.violate("rights", lines(), "%s was allowed a read before the right was granted", a.Subject)
		case a.Server == s.server-1 && a.Call > s.to:
			j.violate("rights", lines(), "%s was allowed a read after the revocation, at the server that had acknowledged it", a.Subject)
		case a.Call > s.to && a.Call > j.calm(s.to, RightsTime, a.Server):
			j.violate("rights", lines(), "%s was allowed a read more than %s after the revocation was acknowledged", a.Subject, RightsTime)
		}
	}
}

// calm is the time when so much time has passed without faults that kept a server from running or from its database.
func (j *judge) calm(at, want time.Duration, server int) time.Duration {
	end := at + want
	for changed := true; changed; {
		changed = false
		busy := time.Duration(0)
		for _, f := range j.r.Faults {
			if f.Store && (f.Server == server || f.Server < 0) && f.Begin < end && f.End > at {
				busy += min(f.End, end) - max(f.Begin, at)
			}
		}
		if next := at + want + busy; next > end && busy > 0 {
			end, changed = next, true
		}
	}
	return end
}
