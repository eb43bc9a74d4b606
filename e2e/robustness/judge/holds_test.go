package judge_test

import (
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func init() {
	s := time.Second
	hold := func(r *history.Round, what string, most int, from, until time.Duration) {
		r.Holds = append(r.Holds, &history.Hold{What: what, Most: most, Holder: "b", From: from, Until: until})
	}
	create := func(r *history.Round) {
		r.Streams[len(r.Streams)-1].Patient = false // it does not see this
		written(r, history.Op{Kind: history.Create, Field: "v"}, state(26, false, "v", "new26"))
	}
	// bound has the object be bound to a node.
	bound := func(r *history.Round, version uint64, value, node string) {
		st := state(version, false, "v", "new26", "bound", "new"+map[uint64]string{27: "27", 28: "28"}[version])
		st.Node = node
		written(r, history.Op{Kind: history.Bind, Field: "bound", Value: value}, st)
	}
	// patched patches the object; on is the label in the operation, is the label afterwards.
	patched := func(r *history.Round, on *bool, is bool) {
		create(r)
		written(r, history.Op{Kind: history.Set, Field: "v", On: on}, state(27, is, "v", "new27"))
	}
	// widget has the spec of a custom resource be written, and its generation be this.
	widget := func(r *history.Round, generation int64) {
		k := history.Key{Resource: "widgets.robust.rowlock.dev", Namespace: "red", Name: "other"}
		for i, kind := range []string{history.Create, history.Set} {
			id := []string{"new26", "new27"}[i]
			st := state(26+uint64(i), false, "v", id)
			st.UID, st.Generation = "u-widget", []int64{1, generation}[i]
			written(r, history.Op{Kind: kind, Field: "v"}, st).Key = k
			rows := r.Segments[0].Rows
			rows[len(rows)-1].Key, rows[len(rows)-1].Created = k, 26
		}
	}
	onNode := func(r *history.Round, kind string, items ...history.Item) {
		create(r)
		bound(r, 27, "n", "n")
		sel := history.Selector{Node: "n"}
		if kind == "" {
			r.Lists = append(r.Lists, &history.List{Scope: red, Selector: sel, Match: history.Any, Call: 4 * s, Return: 4 * s, Outcome: history.OK, Pages: []history.Page{{Version: 27, Items: items}}})
			return
		}
		st := *rowAt(r, 27).State
		r.Streams = append(r.Streams, &history.Stream{Client: "kubelet", Scope: red, Selector: sel, From: 25, Code: 200, Call: ms, Events: []history.Event{{At: 4 * s, Type: kind, Item: item("other", st)}}})
	}
	// defined has a definition be deleted at 28, and its object at this revision.
	defined := func(r *history.Round, object uint64) {
		d := history.Key{Resource: "customresourcedefinitions.apiextensions.k8s.io", Name: "relics.x"}
		o := history.Key{Resource: d.Name, Namespace: "narrow", Name: "relic"}
		segment := r.Segments[0]
		segment.Rows = append(segment.Rows, history.Row{Revision: 26, Key: d, Created: 26}, history.Row{Revision: 27, Key: o, Created: 27})
		for revision := uint64(28); revision < 30; revision++ {
			row := history.Row{Revision: revision, Key: d, Created: 26, Deleted: true}
			if revision == object {
				row.Key, row.Created = o, 27
			}
			segment.Rows = append(segment.Rows, row)
		}
		segment.To, segment.Live = 29, nil
		r.Ops = append(r.Ops, &history.Op{ID: "relic", Kind: history.Create, Key: o, Call: 3 * s, Return: 3 * s, Outcome: history.OK},
			&history.Op{ID: "undefine", Kind: history.Vacate, Key: d, Call: 4 * s, Return: 4 * s, Outcome: history.OK})
	}
	// watched has a watch without a version begin with these events, before the object of 26 is changed.
	watched := func(r *history.Round, match history.Match, events ...history.Event) {
		create(r)
		st := state(27, false, "v", "new27")
		written(r, history.Op{Kind: history.Set, Field: "v"}, st)
		events = append(events, history.Event{At: 4 * s, Type: "MODIFIED", Item: item("other", st)})
		r.Streams = append(r.Streams, &history.Stream{Client: "bare", Scope: red, Bare: true, Match: match, Code: 200, Call: 2650 * ms, Events: events})
	}
	added := func(name string, st history.State) history.Event {
		return history.Event{At: 2700 * ms, Type: "ADDED", Item: item(name, st)}
	}
	a14, s16, o26 := state(14, true, "v", "op4"), state(16, false, "op5", "op5", "op6", "op6"), state(26, false, "v", "new26")
	yes := true
	is := state(27, false, "v", "new26", "bound", "new27")
	for name, c := range map[string]lifecycleCase{
		"an address that is given back and taken": {func(r *history.Round) { hold(r, "an address", 1, 2*ms, 0) }, ""},
		"an address that two have":                {func(r *history.Round) { hold(r, "an address", 1, ms, 3*ms) }, "holds: 2 have an address at 1ms, and there is enough for 1"},
		"an address that two have after a loss":   {func(r *history.Round) { goesOn(r, 25); hold(r, "other", 1, s, 0); hold(r, "other", 1, 2*s, 0) }, ""},
		"a quota that is full":                    {func(r *history.Round) { hold(r, "q", 2, s, 0); hold(r, "q", 2, 2*s, 0) }, ""},
		"a quota that is passed":                  {func(r *history.Round) { hold(r, "q", 2, s, 0); hold(r, "q", 2, 2*s, 0); hold(r, "q", 2, 3*s, 0) }, "holds: 3 have q"},

		"a dependent that goes before its owner":        {func(r *history.Round) { r.Lives[0].Until = 14 * s }, "owners: events/green/event is gone at 13s"},
		"a dependent that goes before, after a loss":    {func(r *history.Round) { goesOn(r, 25); r.Lives[0].Until = 14 * s }, ""},
		"an object that goes with its definition":       {func(r *history.Round) { defined(r, 28) }, ""},
		"an object that outlives its definition":        {func(r *history.Round) { defined(r, 29) }, "namespaces: the customresourcedefinition relics.x is gone, and relics.x/narrow/relic is still there"},
		"a definition that goes by itself":              {func(r *history.Round) { defined(r, 28); r.Ops = r.Ops[:len(r.Ops)-1] }, "namespaces: the customresourcedefinition relics.x is deleted"},
		"a Pod that is bound":                           {func(r *history.Round) { create(r); bound(r, 27, "n", "n") }, ""},
		"a Pod that is bound twice":                     {func(r *history.Round) { create(r); bound(r, 27, "n", "n"); bound(r, 28, "m", "m") }, "writes: a Pod that is bound, or none, was bound to m"},
		"a Pod that is bound to another node":           {func(r *history.Round) { create(r); bound(r, 27, "n", "m") }, "writes: a Pod that is bound, or none, was bound to n"},
		"a Pod that gets a node by itself":              {func(r *history.Round) { patched(r, nil, false); rowAt(r, 27).State.Node = "n" }, "writes: a Pod went from node"},
		"a list of the Pods of a node":                  {func(r *history.Round) { onNode(r, "", item("other", withNode(is))) }, ""},
		"a list of the Pods of a node that lacks one":   {func(r *history.Round) { onNode(r, "") }, "list: a list is not the state at version 27"},
		"a watch of the Pods of a node":                 {func(r *history.Round) { onNode(r, "ADDED") }, ""},
		"a watch of the Pods of a node that had one":    {func(r *history.Round) { onNode(r, "MODIFIED") }, "version 27 is MODIFIED, and should be ADDED"},
		"a write that sets a label":                     {func(r *history.Round) { patched(r, &yes, true) }, ""},
		"a write that does not set a label":             {func(r *history.Round) { patched(r, &yes, false) }, "writes: a write that says whether the object has a label left it at false"},
		"a write that sets a label of which it is mute": {func(r *history.Round) { patched(r, nil, true) }, "writes: a write that says nothing of a label changed it to true"},
		"a spec that raises the generation":             {func(r *history.Round) { widget(r, 2) }, ""},
		"a spec that does not raise the generation":     {func(r *history.Round) { widget(r, 1) }, "lifecycle: a write of the spec leaves the generation at 1, after 1"},
		"a watch without a version": {func(r *history.Round) {
			watched(r, history.Latest, added("other", o26), added("register-a", a14), added("set1", s16))
		}, ""},
		"a watch without a version that lacks an object": {func(r *history.Round) {
			watched(r, history.Latest, added("other", o26), added("set1", s16))
		}, "watch-initial: a watch without a version does not begin"},
		"a watch without a version that shows an object twice": {func(r *history.Round) {
			watched(r, history.Latest, added("other", o26), added("other", o26), added("register-a", a14), added("set1", s16))
		}, "watch-initial: a watch without a version does not begin"},
		"a watch without a version of an old state": {func(r *history.Round) {
			watched(r, history.Latest, added("register-a", a14), added("set1", s16))
		}, "watch-initial: a watch without a version does not begin"},
		"a watch of any version, of an old state": {func(r *history.Round) {
			watched(r, history.Any, added("register-a", a14), added("set1", s16), added("other", o26)) // which is an event then
		}, ""},
		"a watch of any version, of a state that was there twice": {func(r *history.Round) {
			watched(r, history.Any, history.Event{At: 2700 * ms, Type: "BOOKMARK", Item: item("", history.State{Version: 26})})
			w := r.Streams[len(r.Streams)-1]
			w.Selector, w.Events = history.Selector{Name: "held"}, w.Events[:1] // it came and went
		}, ""},
		"a Pod that is marked before it goes": {func(r *history.Round) {
			k := history.Key{Resource: "pods", Namespace: "red", Name: "pod"}
			for revision := uint64(26); revision <= 28; revision++ {
				st := state(revision, false, "v", "pod")
				st.UID, st.Going = "u-pod", revision > 26
				r.Segments[0].Rows = append(r.Segments[0].Rows, history.Row{Revision: revision, Key: k, Created: 26, Deleted: revision == 28, State: &st})
			}
			r.Segments[0].To = 28
			r.Ops = append(r.Ops, &history.Op{ID: "pod", Kind: history.Create, Field: "v", Key: k, Call: 3 * s, Return: 3 * s, Outcome: history.OK},
				&history.Op{ID: "unpod", Kind: history.Delete, Key: k, Call: 4 * s, Return: 4 * s, Outcome: history.OK})
		}, ""},
		"a write that ends a marked Pod":                    {func(r *history.Round) { endPod(r, true, history.Unknown) }, ""},
		"a delete that finds a Pod gone that it has marked": {func(r *history.Round) { endPod(r, true, history.NotFound) }, ""},
		"a write of a marked Pod that is kept as it was":    {func(r *history.Round) { endPod(r, false, history.Unknown) }, "writes: an acknowledged write is not in the table"},
		"a watch without a version that was cut": {func(r *history.Round) {
			watched(r, history.Latest, added("other", o26))
			w := r.Streams[len(r.Streams)-1]
			w.Events = w.Events[:1]
		}, ""},
		"a watch without a version that misses an event": {func(r *history.Round) {
			watched(r, history.Any, added("register-a", a14), added("set1", s16))
		}, "watch-"},
		"a right that is used long after the server was started again with the right clock": {func(r *history.Round) {
			r.Accesses[1].Call, r.Accesses[1].Return = 9*s, 9*s
			fault(r, history.Fault{Clock: true, Store: true, Begin: s, From: 7900 * ms, End: 8 * s})
		}, "rights: reader was allowed a read more than 8s"},
		"a right that is used while the server was started again with the right clock": {func(r *history.Round) {
			r.Accesses[1].Call, r.Accesses[1].Return = 9*s, 9*s
			fault(r, history.Fault{Clock: true, Store: true, Begin: s, From: 5 * s, End: 8 * s})
		}, ""},
	} {
		lifecycleCases[name] = c
	}
}

// endPod has a Pod be marked, by a delete with an outcome, and a write of its status be answered after that.
func endPod(r *history.Round, gone bool, deleted history.Outcome) {
	k := history.Key{Resource: "pods", Namespace: "red", Name: "pod"}
	last := uint64(27)
	if gone {
		last++
	}
	for revision := uint64(26); revision <= last; revision++ {
		st := state(revision, false, "v", "pod")
		st.UID, st.Going = "u-pod", revision > 26
		r.Segments[0].Rows = append(r.Segments[0].Rows, history.Row{Revision: revision, Key: k, Created: 26, Deleted: revision == 28, State: &st})
	}
	r.Segments[0].To = last
	got := state(27, false, "v", "pod", "status.x", "status")
	got.UID, got.Going = "u-pod", true
	r.Ops = append(r.Ops, &history.Op{ID: "pod", Kind: history.Create, Field: "v", Key: k, Call: 3 * time.Second, Return: 3 * time.Second, Outcome: history.OK},
		&history.Op{ID: "unpod", Kind: history.Delete, Key: k, Call: 4 * time.Second, Return: 4 * time.Second, Outcome: deleted},
		&history.Op{ID: "status", Kind: history.Status, Field: "status.x", Key: k, Call: 5 * time.Second, Return: 5 * time.Second, Outcome: history.OK, Got: &got})
}

func withNode(s history.State) history.State {
	s.Node = "n"
	return s
}
