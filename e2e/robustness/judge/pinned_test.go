package judge_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func init() {
	s := time.Second
	unseen := func(r *history.Round) { r.Streams[len(r.Streams)-1].Patient = false } // the last watch does not see what follows
	// then has another object be made at 26, and be written at 27.
	then := func(r *history.Round, o history.Op, fields ...string) {
		unseen(r)
		written(r, history.Op{Kind: history.Create, Field: "v"}, state(26, false, "v", "new26"))
		written(r, o, state(27, false, fields...))
	}
	// noted has an annotation of a custom resource be written, and its generation be this.
	noted := func(r *history.Round, generation int64) {
		then(r, history.Op{Kind: history.Set, Field: history.Note}, "v", "new26", history.Note, "new27")
		for i, revision := range []uint64{26, 27} {
			row := rowAt(r, revision)
			row.Key.Resource, row.Created = "widgets."+history.CustomGroup, 26
			row.State.UID, row.State.Generation = "u-widget", []int64{1, generation}[i]
			r.Ops[len(r.Ops)-2+i].Key = row.Key
		}
	}
	// tested has a patch that tests a version of register-a be refused.
	tested := func(r *history.Round, version uint64) {
		o := swap()
		o.Expect, o.Tests, o.Outcome, o.Code = version, true, history.Refused, http.StatusUnprocessableEntity
		r.Ops = append(r.Ops, o)
	}
	// shared has a and b apply a field together, and then one of them apply without it.
	shared := func(r *history.Round, last bool, without ...string) {
		unseen(r)
		apply := func(version uint64, by, also string, there bool, fields ...string) {
			if there {
				fields = append(fields, history.Shared, "the same")
			}
			written(r, history.Op{Kind: history.Apply, Field: by, Also: also}, state(version, false, fields...)).Client = by
		}
		apply(26, "a", history.Shared, true, "a", "new26")
		apply(27, "b", history.Shared, true, "a", "new26", "b", "new27")
		values := map[string]string{"a": "new26", "b": "new27"}
		for i, by := range without {
			version := 28 + uint64(i)
			values[by] = fmt.Sprint("new", version)
			apply(version, by, "", i+1 < len(without) || last, "a", values["a"], "b", values["b"])
		}
		for i := range r.Segments[0].Rows {
			if row := &r.Segments[0].Rows[i]; row.Revision >= 26 {
				row.Created = 26
			}
		}
	}
	// inside has the object in the namespace home be made by a request that begins so long after the delete of home was acknowledged.
	inside := func(r *history.Round, after time.Duration, server int) {
		for _, o := range r.Ops {
			if o.Key.Name == "inside" {
				o.Call = find(r, history.Vacate).Return + after
				o.Return, o.Server = o.Call+ms, server
			}
		}
	}
	a12, a14, s16 := state(12, false, "v", "op2"), state(14, true, "v", "op4"), state(16, false, "op5", "op5", "op6", "op6")
	b11 := state(11, true, "v", "op1")
	// behind has a list go on behind register-a.
	behind := func(r *history.Round, rest int, items ...history.Item) {
		last := key("register-a")
		r.Lists = append(r.Lists, &history.List{Scope: red, Match: history.Any, Server: 1, Behind: &last, Call: 4 * s, Return: 4 * s, Outcome: history.OK, Pages: []history.Page{{Version: 16, Rest: &rest, Items: items}}})
	}
	// back has a server list a state of before another one that a list had shown.
	back := func(r *history.Round, server int) {
		r.Lists = append(r.Lists, &history.List{Scope: red, Match: history.Any, Server: server, Call: 40 * ms, Return: 41 * ms, Outcome: history.OK, Pages: []history.Page{{Version: 12, Items: []history.Item{item("register-a", a12), item("register-b", b11)}}}})
	}
	cached := func(r *history.Round, name string, server int, got *history.State) {
		o := &history.Op{ID: "cached", Client: "reader", Kind: history.Get, Key: key(name), Cached: true, Server: server, Call: 37 * ms, Return: 38 * ms, Outcome: history.OK, Got: got}
		if got == nil {
			o.Outcome = history.NotFound
		}
		r.Ops = append(r.Ops, o)
	}
	// streamed has a streaming list be of version 13, which is not the newest.
	streamed := func(r *history.Round, match history.Match, asked uint64) {
		r.Streams = append([]*history.Stream{{Client: "streams", Server: 1, Scope: red, Initial: true, Match: match, Asked: asked, Code: 200, Call: 60 * ms, Events: []history.Event{
			{At: 61 * ms, Type: "ADDED", Item: item("register-a", a12)}, {At: 61 * ms, Type: "BOOKMARK", Ends: true, Item: item("", history.State{Version: 13})}}}}, r.Streams...)
	}
	// elsewhere has all but one side be listed.
	elsewhere := func(r *history.Round, side bool) {
		unseen(r)
		o26 := state(26, false, "v", "new26")
		written(r, history.Op{Kind: history.Create, Field: "v"}, o26)
		rowAt(r, 26).State.Side = side
		r.Lists = append(r.Lists, &history.List{Scope: red, Selector: history.Selector{Side: true, Not: true}, Match: history.Any, Call: 4 * s, Return: 4 * s, Outcome: history.OK, Pages: []history.Page{{Version: 26, Items: []history.Item{item("other", o26), item("register-a", a14), item("set1", s16)}}}})
	}
	// moment has a server name a revision for 40 s, after writes at 26 and 45 s.
	moment := func(r *history.Round, revision uint64) {
		then(r, history.Op{Kind: history.Set, Field: "v"}, "v", "new27")
		for i, at := range []time.Duration{26 * s, 45 * s} {
			o := r.Ops[len(r.Ops)-2+i]
			o.Call, o.Return = at, at+ms
		}
		r.Moments = append(r.Moments, &history.Moment{Of: 40 * s, Revision: revision, At: 42 * s})
	}
	// unwritten has a server name the revision behind that, which is not of the traffic.
	unwritten := func(r *history.Round) {
		moment(r, 28)
		segment := r.Segments[0]
		segment.Rows, segment.To = append(segment.Rows, history.Row{Revision: 28, Created: 28, Key: history.Key{Resource: "secrets", Namespace: "red", Name: "s"}}), 28
	}
	// guessed has an object without fields be listed that one of several requests without an answer has made.
	guessed := func(r *history.Round) {
		unseen(r)
		made := state(26, false)
		first := written(r, history.Op{Kind: history.Create}, made)
		first.Outcome, first.Got = history.Unknown, nil
		for i := range 9 {
			later := *first
			later.ID, later.Call = fmt.Sprint("later", i), 5*s
			r.Ops = append(r.Ops, &later)
		}
		r.Lists = append(r.Lists, &history.List{Scope: red, Match: history.Any, Call: 2700 * ms, Return: 2700 * ms, Outcome: history.OK, Pages: []history.Page{{Version: 26, Items: []history.Item{item("other", made), item("register-a", a14), item("set1", s16)}}}})
	}
	for name, c := range map[string]lifecycleCase{
		"an object that one of several creates without an answer has made": {guessed, ""},
		"an object that is listed before any of them began": {func(r *history.Round) {
			guessed(r)
			r.Lists[len(r.Lists)-1].Return = 2500 * ms
		}, "list: a list is of version 26 before a write"},
		"a moment":                         {func(r *history.Round) { moment(r, 26) }, ""},
		"a moment without what was before": {func(r *history.Round) { moment(r, 25) }, "exact: revision 25 is named for 40s, and 26 had been seen"},
		"a moment with what comes after":   {func(r *history.Round) { moment(r, 27) }, "exact: revision 27 is named for 40s, and a write"},
		"a moment of a write that waited for those of another server": {func(r *history.Round) {
			moment(r, 27)
			o := r.Ops[len(r.Ops)-1]
			o.Call, o.Return = 40*s, 46*s
			r.Ops[len(r.Ops)-2].Call, r.Ops[len(r.Ops)-2].Return = 45*s, 45*s+ms
		}, ""},
		"a moment of a write whose client got no answer": {func(r *history.Round) {
			moment(r, 27)
			o := r.Ops[len(r.Ops)-1]
			o.Call, o.Return, o.Outcome = 40*s, 40*s+ms, history.Unknown
			r.Ops[len(r.Ops)-2].Call, r.Ops[len(r.Ops)-2].Return = 41*s, 41*s+ms
		}, ""},
		"a moment of a clock that differs a little": {func(r *history.Round) {
			moment(r, 27)
			r.Ops[len(r.Ops)-1].Call, r.Ops[len(r.Ops)-1].Return = 40*s+60*ms, 40*s+61*ms
		}, ""},
		"a moment of a write that no client made": {func(r *history.Round) {
			unwritten(r)
			r.Ops[len(r.Ops)-1].Call, r.Ops[len(r.Ops)-1].Return = 41*s, 41*s+ms
		}, ""},
		"a moment of a write that no client made, with what comes after its name": {func(r *history.Round) { unwritten(r) }, "exact: revision 28 is named for 40s, and a write"},
		"a moment of a clock that was wrong":                                      {func(r *history.Round) { moment(r, 27); fault(r, history.Fault{Clock: true, Stamps: true}) }, ""},
		"a moment of a database that went back":                                   {func(r *history.Round) { moment(r, 27); goesOn(r, 28) }, ""},
		"a status that replaces what it names": {func(r *history.Round) {
			then(r, history.Op{Kind: history.Status, Field: "status.w", Expect: 26}, "v", "new26", "status.w", "new27")
		}, ""},
		"a status that replaces what it does not name": {func(r *history.Round) {
			then(r, history.Op{Kind: history.Status, Field: "status.w", Expect: 25}, "v", "new26", "status.w", "new27")
		}, "writes: a write that expected version 25 replaced version 26"},
		"an apply that replaces what it names": {func(r *history.Round) {
			then(r, history.Op{Kind: history.Apply, Field: "a", Expect: 26}, "v", "new26", "a", "new27")
		}, ""},
		"an apply that replaces what it does not name": {func(r *history.Round) {
			then(r, history.Op{Kind: history.Apply, Field: "a", Expect: 25}, "v", "new26", "a", "new27")
		}, "writes: a write that expected version 25 replaced version 26"},
		"an annotation": {func(r *history.Round) { noted(r, 1) }, ""},
		"an annotation that raises the generation":  {func(r *history.Round) { noted(r, 2) }, "lifecycle: a write of the status, or of metadata, changes the generation"},
		"a test of a version that is no more":       {func(r *history.Round) { tested(r, 12) }, ""},
		"a test that is refused of the version":     {func(r *history.Round) { tested(r, 14) }, "register: the operations on configmaps/red/register-a are not linearizable"},
		"a field that one of two owners gives up":   {func(r *history.Round) { shared(r, true, "b") }, ""},
		"a field that both owners give up":          {func(r *history.Round) { shared(r, false, "b", "a") }, ""},
		"a field that goes with one of two owners":  {func(r *history.Round) { shared(r, false, "b") }, "writes: 1 owners apply a field together, and that it is there is false"},
		"a field that stays behind both owners":     {func(r *history.Round) { shared(r, true, "a", "b") }, "writes: 0 owners apply a field together, and that it is there is true"},
		"a field of several owners, after a loss":   {func(r *history.Round) { shared(r, false, "b"); goesOn(r, 29) }, ""},
		"an object that is made in an ended home":   {func(r *history.Round) { inside(r, ms, 0) }, "namespaces: configmaps/home/inside is made after the deletion"},
		"an object that is made there elsewhere":    {func(r *history.Round) { inside(r, ms, 1) }, ""},
		"an object that is made there far too late": {func(r *history.Round) { inside(r, 9*s, 1) }, "namespaces: configmaps/home/inside is made after the deletion"},
		"a remainder":                               {func(r *history.Round) { behind(r, 0, item("set1", s16)) }, ""},
		"a remainder that lacks an object":          {func(r *history.Round) { behind(r, 1) }, "list: a list is not the state at version 16"},
		"a remainder that begins anew":              {func(r *history.Round) { behind(r, 0, item("register-a", a14), item("set1", s16)) }, "pages: register-a comes again behind"},
		"a remainder that counts all":               {func(r *history.Round) { behind(r, 1, item("set1", s16)) }, "pages: a page says that 1 items follow"},
		"a list of any version that goes back":      {func(r *history.Round) { back(r, 0) }, "list: a list is stale: it is of version 12, and 13 had been seen"},
		"a list of any version, of another server":  {func(r *history.Round) { back(r, 1) }, ""},
		"a list of any version, after a loss":       {func(r *history.Round) { back(r, 0); goesOn(r, 25); r.Losses[0].Begin = ms }, ""},
		"a read of any version that goes back":      {func(r *history.Round) { cached(r, "register-b", 0, &b11) }, "reads: a read is stale: it shows version 11"},
		"a read of any version, of another server":  {func(r *history.Round) { cached(r, "register-b", 1, &b11) }, ""},
		"a read of any version that finds nothing":  {func(r *history.Round) { cached(r, "register-a", 0, nil) }, "reads: a read finds nothing"},
		"a streaming list that is not too old":      {func(r *history.Round) { streamed(r, history.NotOlder, 13) }, ""},
		"a streaming list that is too old":          {func(r *history.Round) { streamed(r, history.NotOlder, 14) }, "watch-initial: a streaming list is of version 13, and 14 had been seen"},
		"a streaming list of any version":           {func(r *history.Round) { streamed(r, history.Any, 0) }, ""},
		"a list of all that is elsewhere":           {func(r *history.Round) { elsewhere(r, false) }, ""},
		"a list of all elsewhere, with another one": {func(r *history.Round) { elsewhere(r, true) }, "list: a list is not the state at version 26"},
	} {
		lifecycleCases[name] = c
	}
}
