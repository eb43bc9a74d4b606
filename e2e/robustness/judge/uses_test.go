package judge_test

import (
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

func init() {
	s := time.Second
	// unseen has the last watch not see what follows.
	unseen := func(r *history.Round) { r.Streams[len(r.Streams)-1].Patient = false }
	scaled := func(version uint64, replicas string) history.State {
		return state(version, false, "v", "new26", history.Replicas, replicas)
	}
	// scale has an object be made at 26, and be scaled at 27, as the answer and the table have it.
	scale := func(r *history.Round, answer, stored history.State, change func(*history.Op)) {
		unseen(r)
		written(r, history.Op{Kind: history.Create, Field: "v"}, state(26, false, "v", "new26"))
		o := written(r, history.Op{Kind: history.Scale, Field: history.Replicas}, stored)
		o.Got = &answer
		change(o)
	}
	as := func(*history.Op) {}
	// apply has an object that two owners apply to: a at 26, and b with the contested field by force at 27, which a had.
	apply := func(r *history.Round, last history.State, change func(*history.Op)) {
		unseen(r)
		written(r, history.Op{Kind: history.Apply, Field: "a", Also: history.Contested, Force: true}, state(26, false, "a", "new26", history.Contested, "new26")).Client = "a"
		o := written(r, history.Op{Kind: history.Apply, Field: "b", Also: history.Contested, Force: true}, last)
		o.Client = "b"
		change(o)
	}
	// released has a apply at 28, after b has taken the contested field.
	released := func(r *history.Round, by string, fields ...string) {
		apply(r, state(27, false, "a", "new26", "b", "new27", history.Contested, "new27"), as)
		written(r, history.Op{Kind: history.Apply, Field: by}, state(28, false, fields...)).Client = by
	}
	refused := func(r *history.Round, asked uint64, pages ...history.Page) {
		r.Floors = []history.Floor{{At: 0, Revision: 5, Past: 5}, {At: 2 * s, Revision: 5, Past: 12}, {At: 3 * s, Revision: 5, Past: 16}}
		fault(r, history.Fault{Compacts: true, End: 4 * s})
		l := &history.List{Client: "pager", Scope: red, Match: history.Exact, Asked: asked, Pages: pages, Outcome: history.Expired, Call: s, Return: s, Refused: s}
		if asked == 0 {
			l.Match, l.Server = history.Any, 1
		}
		r.Lists = append(r.Lists, l)
	}
	// watched has an object be made so long after the right was revoked, and be shown to its user by a server.
	watched := func(r *history.Round, after time.Duration, server int) {
		unseen(r)
		o := written(r, history.Op{Kind: history.Create, Field: "v"}, state(26, false, "v", "new26"))
		o.Call = 22*ms + after
		o.Return = o.Call + ms
		r.Rights[1].Server = 1
		r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", Server: server, What: history.Watching, Version: 26, Call: time.Hour, Return: time.Hour, Code: 200})
	}
	// late has an object be made in the namespace that is gone at 23.
	late := func(r *history.Round, outcome history.Outcome) {
		k := history.Key{Resource: "configmaps", Namespace: "home", Name: "late"}
		r.Segments[0].Rows = append(r.Segments[0].Rows, history.Row{Revision: 26, Key: k, Created: 26})
		r.Segments[0].To = 26
		r.Ops = append(r.Ops, &history.Op{ID: "late", Kind: history.Create, Key: k, Call: 3 * s, Return: 4 * s, Outcome: outcome})
	}
	timed := func(r *history.Round) *history.Stream { return r.Streams[0] }
	// foreground has a dependent and its owner be deleted in the foreground, in the order of these revisions.
	foreground := func(r *history.Round, owner, dependent uint64) {
		o, d := history.Key{Resource: "configmaps", Namespace: "owned", Name: "owner"}, history.Key{Resource: "configmaps", Namespace: "owned", Name: "dependent"}
		rows := []history.Row{{Revision: 26, Key: o, Created: 26}, {Revision: 27, Key: d, Created: 27}, {}, {}}
		rows[owner-26] = history.Row{Revision: owner, Key: o, Created: 26, Deleted: true, At: 6 * s}
		rows[dependent-26] = history.Row{Revision: dependent, Key: d, Created: 27, Deleted: true, At: 6 * s}
		r.Segments[0].Rows = append(r.Segments[0].Rows, rows...)
		r.Segments[0].To = 29
		r.Lives = append(r.Lives, &history.Life{Key: d, Until: 5 * s, Before: &o})
	}
	for name, c := range map[string]lifecycleCase{
		"a Scale that is written":     {func(r *history.Round) { scale(r, scaled(27, "new27"), scaled(27, "new27"), as) }, ""},
		"a Scale with another number": {func(r *history.Round) { scale(r, scaled(27, "new28"), scaled(27, "new27"), as) }, "writes: a write is stored with another content"},
		"a Scale that replaces what it knows": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), scaled(27, "new27"), func(o *history.Op) { o.Expect = 26 })
		}, ""},
		"a Scale that replaces what it does not know": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), scaled(27, "new27"), func(o *history.Op) { o.Expect = 25 })
		}, "writes: a write that expected version 25 replaced version 26"},
		"a Scale that changes more": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), state(27, false, history.Replicas, "new27"), as)
		}, "writes: a write of one field changed another one"},
		"a Scale that is written as a dry run": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), scaled(27, "new27"), func(o *history.Op) { o.Dry = true })
		}, "writes: a dry run was stored"},
		"a Scale that is read": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), scaled(27, "new27"), as)
			got := scaled(27, "new27")
			r.Ops = append(r.Ops, &history.Op{ID: "read", Kind: history.GetScale, Key: key("other"), Call: 3 * s, Return: 3 * s, Outcome: history.OK, Got: &got})
		}, ""},
		"a Scale that is read as it was": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), scaled(27, "new27"), as)
			got := state(26, false, "v", "new26")
			r.Ops = append(r.Ops, &history.Op{ID: "read", Kind: history.GetScale, Key: key("other"), Call: 3 * s, Return: 3 * s, Outcome: history.OK, Got: &got})
		}, "reads: a read is stale"},
		"a Scale that is read with another number": {func(r *history.Round) {
			scale(r, scaled(27, "new27"), scaled(27, "new27"), as)
			got := scaled(27, "new26")
			r.Ops = append(r.Ops, &history.Op{ID: "read", Kind: history.GetScale, Key: key("other"), Call: 3 * s, Return: 3 * s, Outcome: history.OK, Got: &got})
		}, "reads: a read shows another content"},

		"a field that is taken by force": {func(r *history.Round) {
			apply(r, state(27, false, "a", "new26", "b", "new27", history.Contested, "new27"), as)
		}, ""},
		"a field that is taken without force": {func(r *history.Round) {
			apply(r, state(27, false, "a", "new26", "b", "new27", history.Contested, "new27"), func(o *history.Op) { o.Force = false })
		}, "writes: an apply without force changed contested"},
		"force that takes another field": {func(r *history.Round) {
			apply(r, state(27, false, "b", "new27", history.Contested, "new27"), as)
		}, "writes: an apply removed a, which another owner has"},
		"force that is refused": {func(r *history.Round) {
			r.Ops = append(r.Ops, &history.Op{ID: "force", Kind: history.Apply, Force: true, Key: key("other"), Call: 3 * s, Return: 3 * s, Outcome: history.Conflict})
		}, "writes: an apply by force is answered with a conflict"},
		"a contested field that its last owner no longer applies": {func(r *history.Round) {
			released(r, "b", "a", "new26", "b", "new28")
		}, ""},
		"a contested field that its last owner no longer applies, and that stays": {func(r *history.Round) {
			released(r, "b", "a", "new26", "b", "new28", history.Contested, "new27")
		}, "writes: an apply left contested"},
		"a contested field that goes with its first owner": {func(r *history.Round) {
			released(r, "a", "a", "new28", "b", "new27")
		}, "writes: an apply removed contested, which another owner has"},

		"a request that is refused without a reason": {func(r *history.Round) {
			r.Ops = append(r.Ops, &history.Op{ID: "put", Kind: history.Set, Key: key("other"), Call: 3 * s, Return: 3 * s, Outcome: history.Refused, Code: 422})
		}, "writes: a request that breaks no rule is refused"},
		"a request that is refused because it breaks a rule": {func(r *history.Round) {
			r.Ops = append(r.Ops, &history.Op{ID: "put", Kind: history.Set, Never: true, Key: key("other"), Call: 3 * s, Return: 3 * s, Outcome: history.Refused, Code: 422})
		}, ""},
		"a dry run of a delete that marks": {func(r *history.Round) { find(r, history.Mark).Dry = true }, "writes: revision 18 marks"},
		"a dry run of a release that deletes": {func(r *history.Round) {
			find(r, history.Release).Dry = true
		}, "lifecycle: an object is deleted although it has finalizers"},
		"an object whose time of creation changes": {func(r *history.Round) { rowAt(r, 18).State.Made = "later" }, "lifecycle: the time of creation changes"},

		"a list of what is gone":               {func(r *history.Round) { refused(r, 11) }, ""},
		"a list that is refused too early":     {func(r *history.Round) { refused(r, 12) }, "exact: a list of version 12 is refused with 410"},
		"a page of what is gone":               {func(r *history.Round) { refused(r, 0, history.Page{Version: 11, More: true}) }, ""},
		"a page that is refused too early":     {func(r *history.Round) { refused(r, 0, history.Page{Version: 13, More: true}) }, "exact: a list of version 13 is refused with 410"},
		"a list that is refused after a loss":  {func(r *history.Round) { refused(r, 12); goesOn(r, 25) }, ""},
		"a watch that ends without a bookmark": {func(r *history.Round) { timed(r).Events = nil }, "watch-timed: a watch that asked for bookmarks ends"},
		"a watch that is cut without a bookmark": {func(r *history.Round) {
			timed(r).Events, timed(r).Over = nil, false
		}, ""},
		"a watch that its server ends before a bookmark": {func(r *history.Round) { timed(r).Events, timed(r).End = nil, 5*s }, ""},
		"a watch that ends without a bookmark after a fault": {func(r *history.Round) {
			timed(r).Events = nil
			fault(r, history.Fault{Name: "stall", Begin: 7 * s, End: 9 * s})
		}, ""},
		"a watch that asks for no bookmarks": {func(r *history.Round) { timed(r).Events, timed(r).Unmarked = nil, true }, ""},
		"a bookmark that nobody asked for":   {func(r *history.Round) { timed(r).Unmarked = true }, "watch-timed: a bookmark comes"},
		"a watch that does not end":          {func(r *history.Round) { timed(r).End = 16 * s }, "watch-timed: a watch that asked for 10s goes on"},
		"a watch in another version": {func(r *history.Round) {
			timed(r).Events[0].Item.Served = history.CustomGroup + "/v2"
		}, "served: a watch of objects"},
		"a list in another version": {func(r *history.Round) {
			r.Lists[0].Served = history.CustomGroup + "/v2"
		}, "served: a list of objects"},

		"a write soon after a right was revoked": {func(r *history.Round) { watched(r, judge.WatchTime, 0) }, ""},
		"a write long after a right was revoked": {func(r *history.Round) { watched(r, judge.WatchTime+s, 0) }, "rights: a write that began more than 22s after"},
		"a write after a right was revoked, elsewhere": {func(r *history.Round) {
			watched(r, judge.WatchTime+judge.RightsTime, 1)
		}, ""},
		"a write long after a right was revoked, elsewhere": {func(r *history.Round) {
			watched(r, judge.WatchTime+judge.RightsTime+s, 1)
		}, "rights: a write that began more than 30s after"},
		"a write after a right was revoked, during a fault": {func(r *history.Round) {
			watched(r, judge.WatchTime+s, 0)
			fault(r, history.Fault{Store: true, Begin: 5 * s, End: 8 * s})
		}, ""},

		"an object that is made in a namespace that is gone": {func(r *history.Round) {
			late(r, history.OK)
		}, "namespaces: the create of configmaps/home/late was acknowledged, and its namespace was gone before"},
		"an object that is made in a namespace that is gone, and not acknowledged": {func(r *history.Round) {
			late(r, history.NotFound)
		}, ""},
		"a rule that is broken": {func(r *history.Round) {
			r.Accesses = append(r.Accesses, &history.Access{Subject: "a change", What: history.Rule, Want: 422, Code: 200})
		}, "rules: a server allows what no request may do: a change"},
		"a rule of an object that is not there": {func(r *history.Round) {
			r.Accesses = append(r.Accesses, &history.Access{Subject: "a change", What: history.Rule, Want: 422, Code: 404})
		}, ""},

		"an owner that is deleted in the foreground":                          {func(r *history.Round) { foreground(r, 29, 28) }, ""},
		"an owner that is deleted in the foreground before what it waits for": {func(r *history.Round) { foreground(r, 28, 29) }, "owners: configmaps/owned/owner is deleted in the foreground"},

		"a list of one side": {func(r *history.Round) {
			unseen(r)
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(26, false, "v", "new26"))
			rowAt(r, 26).State.Side = true
			r.Lists = append(r.Lists, &history.List{Scope: red, Selector: history.Selector{Side: true}, Match: history.Any, Call: 4 * s, Return: 4 * s, Outcome: history.OK, Pages: []history.Page{{Version: 26, Items: []history.Item{item("other", state(26, false, "v", "new26"))}}}})
		}, ""},
	} {
		lifecycleCases[name] = c
	}
}
