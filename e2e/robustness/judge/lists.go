package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
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
	initial, rows := p.rows(s)
	state := map[string]*version{}
	most := len(initial)
	live := most
	for _, v := range rows {
		switch was := v.before() != nil; {
		case v.deleted && was:
			live--
		case !v.deleted && !was:
			live++
		}
		most = max(most, live)
	}
	m := &marks{every: max(leastMark, most)}
	for _, v := range initial {
		state[v.row.Key.Name] = v
	}
	m.states = append(m.states, maps.Clone(state))
	for i, v := range rows {
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

// state returns the objects of a scope that a selector chooses at a revision.
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

// behind returns the part of a state that is behind an object, in the order of lists; nil: all of it.
func (p *part) behind(s history.Scope, sel history.Selector, revision uint64, k *history.Key) map[string]*version {
	found := p.state(s, sel, revision)
	if k != nil {
		maps.DeleteFunc(found, func(_ string, v *version) bool {
			return place(s, v.row.Key.Namespace, v.row.Key.Name) <= place(s, k.Namespace, k.Name)
		})
	}
	return found
}

// place returns the sort key of an object in a list of a scope.
func place(s history.Scope, namespace, name string) string {
	if s.Namespace == "" {
		return namespace + "\x00" + name // before those of a namespace with a longer name
	}
	return name
}

// same reports whether items are the state of a scope at a revision; of one that is not whole, the beginning of it. No two
// objects of a scope have the same name, in all its namespaces. With behind, they are those after that object.
func (p *part) same(s history.Scope, sel history.Selector, form history.Form, revision uint64, items []history.Item, whole bool, behind *history.Key) (lines []string, ok bool) {
	want := p.behind(s, sel, revision, behind)
	last := ""
	for i := range items {
		it := &items[i]
		v := want[it.Name]
		delete(want, it.Name)
		switch {
		case v == nil:
			lines = append(lines, fmt.Sprintf("it has %s at version %d, which is not there then", it.Name, it.State.Version))
			if v := p.at(history.Key{Resource: s.Resource, Namespace: cmp.Or(s.Namespace, it.Namespace), Name: it.Name}, ^uint64(0)); v != nil {
				lines = append(lines, rowLine(v.row))
			}
		case v.revision != it.State.Version || form.HashOf(v.state) != it.State.Hash:
			lines = append(lines, fmt.Sprintf("it has %s at version %d %v", it.Name, it.State.Version, it.State.Fields), rowLine(v.row))
		case it.Holder != "" && it.Holder != v.state.Fields["holder"]:
			lines = append(lines, fmt.Sprintf("it shows the holder %s of %s at version %d", it.Holder, it.Name, it.State.Version), rowLine(v.row))
		}
		last = max(last, place(s, it.Namespace, it.Name))
	}
	for name, v := range want {
		if whole || place(s, v.row.Key.Namespace, name) < last {
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
		j.expired(l)
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
			if before, it := place(l.Scope, items[i-1].Namespace, items[i-1].Name), place(l.Scope, items[i].Namespace, items[i].Name); it <= before {
				j.violate("pages", lines, "%s comes after %s", strings.ReplaceAll(it, "\x00", "/"), strings.ReplaceAll(before, "\x00", "/"))
			}
		}
		if l.Served != "" {
			j.judged("served")
			if i := slices.IndexFunc(items, func(it history.Item) bool { return it.Served != l.Served }); i >= 0 {
				j.violate("served", append(lines, items[i].Name), "a list of objects of %s has one of %q", l.Served, items[i].Served)
			}
		}
		j.judged(property)
		least := uint64(0)
		switch l.Match {
		case history.Latest:
			least = j.seenBefore(l.Call)
		case history.NotOlder:
			least = l.Asked
		case history.Any:
			least = j.shownBefore(l.Server, l.Scope.Resource, l.Call)
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
		if l.Behind != nil {
			last := place(l.Scope, l.Behind.Namespace, l.Behind.Name)
			if i := slices.IndexFunc(items, func(it history.Item) bool { return place(l.Scope, it.Namespace, it.Name) <= last }); i >= 0 {
				j.violate("pages", lines, "%s comes again behind %s", items[i].Name, l.Behind)
				continue
			}
		}
		if differences, ok := p.same(l.Scope, l.Selector, l.Form, revision, items, whole, l.Behind); !ok {
			j.violate(property, append(lines, differences...), "a list is not the state at version %d", revision)
		}
		j.limited(l, p, revision)
	}
}

// expired checks a list, or a page, that was answered with 410: its revision must lie before the floor of old states, which the judge knows
// by its next reading.
func (j *judge) expired(l *history.List) {
	revision := l.Asked
	if len(l.Pages) > 0 {
		revision = l.Pages[0].Version
	}
	if l.Refused == 0 || len(j.r.Losses) > 0 {
		return
	}
	i := sort.Search(len(j.r.Floors), func(i int) bool { return j.r.Floors[i].At >= l.Refused })
	if i == len(j.r.Floors) {
		j.open("lists that were refused with 410 after the floor was last read")
		return
	}
	j.judged("exact")
	if floor := j.r.Floors[i].Past; revision >= floor {
		j.violate("exact", []string{l.String()}, "a list of version %d is refused with 410 at %s, and old states are there from %d on", revision, l.Refused.Round(time.Millisecond), floor)
	}
}

// limited checks that no page has more items than were asked for, and what the pages say of the items that follow.
func (j *judge) limited(l *history.List, p *part, revision uint64) {
	came := 0
	for _, page := range l.Pages {
		came += len(page.Items)
		if l.Limit > 0 && len(page.Items) > l.Limit {
			j.violate("pages", []string{l.String()}, "a page has %d items, and %d were asked for", len(page.Items), l.Limit)
		}
		if page.Rest == nil {
			continue
		}
		if rest := len(p.behind(l.Scope, l.Selector, revision, l.Behind)) - came; *page.Rest != rest {
			j.violate("pages", []string{l.String()}, "a page says that %d items follow at version %d, and %d do", *page.Rest, revision, rest)
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
		differences, ok := p.same(c.Scope, history.Selector{}, history.Whole, j.r.Final, c.Items, true, nil)
		if !ok { // a write without an answer may come to pass late
			_, ok = p.same(c.Scope, history.Selector{}, history.Whole, p.to, c.Items, true, nil)
		}
		if !ok {
			j.violate("cache", differences, "the cache of %s of %s/%s is not the state at version %d", c.Client, c.Scope.Resource, c.Scope.Namespace, j.r.Final)
		}
	}
}
