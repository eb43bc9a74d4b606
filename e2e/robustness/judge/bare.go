package judge

import (
	"slices"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// bare finds where the state ends with which a watch without a version begins, and returns its version and the events behind it: the
// first events are ADDED, and together a state that existed before the next event. A stream that was cut in the state shows nothing.
func (j *judge) bare(s *history.Stream) (from uint64, rest []history.Event, ok bool) {
	first := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Type != "ADDED" })
	if first < 0 || s.Events[first].Type == "ERROR" || s.Events[first].Type == "INVALID" {
		return 0, nil, false
	}
	var items []history.Item
	newest := []uint64{0} // of the items before each place
	for i := range first {
		it := s.Events[i].Item
		items, newest = append(items, it), append(newest, max(newest[i], it.State.Version))
	}
	least := j.shownBefore(s.Server, s.Scope.Resource, s.Call)
	if s.Match == history.Latest {
		least = j.seenBefore(s.Call)
	}
	j.judged("watch-initial")
	for k := first; k >= 0; k-- { // how many events are the state
		if k < first && (items[k].State.Version <= newest[k] || k+1 < first && items[k].State.Version >= items[k+1].State.Version) {
			break // what follows the state is newer, and in order
		}
		next := s.Events[k].Item.State.Version
		if s.Events[k].Type == "BOOKMARK" {
			next++ // it may be of the version of the state
		}
		p := j.part(next-1, next-1)
		if p == nil {
			j.open("watches without a version of states that were compacted before they were read")
			return 0, nil, false
		}
		at := max(newest[k], least, p.from)
		if at >= next {
			continue
		}
		candidates := []uint64{at}
		for _, v := range p.after(s.Scope, at, next-1) {
			candidates = append(candidates, v.revision)
		}
		for _, at := range slices.Backward(candidates) { // the last: what came between is in no event
			if _, same := p.same(s.Scope, s.Selector, s.Form, at, items[:k], true, nil); same {
				return at, s.Events[k:], true
			}
		}
	}
	lines := around(s, first)
	if least != 0 {
		lines = append(lines, j.whoSaw(least))
	}
	j.violate("watch-initial", lines, "a watch without a version does not begin with a state that existed at %d or later", least)
	return 0, nil, false
}
