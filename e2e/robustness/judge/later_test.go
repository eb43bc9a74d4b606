package judge_test

import (
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

func init() {
	s := time.Second
	due := func(r *history.Round, came, until time.Duration) {
		r.Dues = append(r.Dues, &history.Due{Property: "holds", What: "a place", Within: judge.ReturnTime, Cause: 2 * s, Came: came, Until: until})
	}
	end := func(r *history.Round, came time.Duration) {
		r.Dues = append(r.Dues, &history.Due{Property: "expiry", What: "the end of an Event", Stamped: true, Within: judge.EndTime, Cause: 2 * s, Came: came, Until: came})
	}
	free := func(r *history.Round, code int) {
		r.Accesses = append(r.Accesses, &history.Access{Subject: "another name", What: history.Free, Call: s, Return: s, Code: code})
	}
	// The objects at 25, after the first page, which ended with one before them.
	a, set := item("register-a", state(14, true, "v", "op4")), item("set1", state(16, false, "op5", "op5", "op6", "op6"))
	rest := func(r *history.Round, after string, pages ...history.Page) *history.Rest {
		one := &history.Rest{Client: "expires", Scope: red, After: history.Item{Name: after}, Token: true, Call: 2600 * ms, Outcome: history.OK, Pages: pages}
		r.Rests = append(r.Rests, one)
		return one
	}
	page := func(version uint64, items ...history.Item) history.Page {
		return history.Page{Version: version, Items: items}
	}
	// never has a deletion of the batch that breaks a rule come before the one that deletes it, which has an answer of the outcome.
	never := func(r *history.Round, outcome history.Outcome) {
		batch(r, true)
		r.Ops[len(r.Ops)-1].Call = 1900 * ms
		first := *r.Ops[len(r.Ops)-1]
		first.ID, first.Never, first.Outcome, first.Call, first.Return = "never", true, outcome, 1750*ms, 1760*ms
		r.Ops = append(r.Ops, &first)
	}
	// stored has an object be stored in one version of its resource at 26, and again at 27, in another one or not.
	stored := func(r *history.Round, again string, answer uint64) {
		r.Streams[len(r.Streams)-1].Patient = false // it does not see this
		st := state(26, false, "v", "new26")
		o := written(r, history.Op{Kind: history.Create, Field: "v"}, st)
		st.Version = answer
		o.Got = &st
		rowAt(r, 26).Stored = "v1"
		second := *rowAt(r, 26)
		next := *second.State
		next.Version = 27
		second.Revision, second.Stored, second.State = 27, again, &next
		r.Segments[0].Rows, r.Segments[0].To = append(r.Segments[0].Rows, second), 27
	}
	// writes lists writes of an object before 75 ms.
	writes := func(r *history.Round, name string, whole bool, all ...history.PastWrite) {
		r.Pasts = append(r.Pasts, &history.Past{Client: "historian", Key: key(name), Call: 70 * ms, Return: 75 * ms, Whole: whole, Writes: all})
	}
	wrote := func(change string, previous, version uint64, fields ...string) history.PastWrite {
		return history.PastWrite{Change: change, Previous: previous, State: state(version, version != 12, fields...)}
	}
	selected := func(r *history.Round, sel history.Selector, items ...history.Item) {
		r.Lists = append(r.Lists, &history.List{Client: "lister", Scope: red, Selector: sel, Match: history.Any, Call: 70 * ms, Return: 71 * ms, Outcome: history.OK, Pages: []history.Page{{Version: 16, Items: items}}})
	}
	last, middle, first := wrote("update", 12, 14, "v", "op4"), wrote("update", 10, 12, "v", "op2"), wrote("create", 0, 10, "v", "op0")
	ended, begun := wrote("delete", 11, 13, "v", "op1"), wrote("create", 0, 11, "v", "op1")
	const unlike = "exact: the list of the writes of configmaps/red/register-"
	for name, c := range map[string]lifecycleCase{
		"all writes of an object":              {func(r *history.Round) { writes(r, "register-a", true, last, middle, first) }, ""},
		"all writes of a deleted object":       {func(r *history.Round) { writes(r, "register-b", true, ended, begun) }, ""},
		"the last writes of an object":         {func(r *history.Round) { writes(r, "register-a", false, last, middle) }, ""},
		"writes of an object without one":      {func(r *history.Round) { writes(r, "register-a", true, last, first) }, unlike + "a"},
		"writes of an object without the last": {func(r *history.Round) { writes(r, "register-a", true, middle, first) }, unlike + "a"},
		"no writes of an object":               {func(r *history.Round) { writes(r, "register-a", true) }, unlike + "a"},
		"writes in another order":              {func(r *history.Round) { writes(r, "register-a", true, middle, last, first) }, unlike + "a"},
		"a deletion that is listed as a write": {func(r *history.Round) { writes(r, "register-b", true, wrote("update", 11, 13, "v", "op1"), begun) }, unlike + "b"},
		"a write of an object that was none": {func(r *history.Round) {
			writes(r, "register-a", true, last, wrote("update", 12, 13, "v", "op4"), middle, first)
		}, unlike + "a"},
		"a write with another content": {func(r *history.Round) {
			writes(r, "register-a", true, last, wrote("update", 10, 12, "v", "op1"), first)
		}, unlike + "a"},
		"a write that replaced another one": {func(r *history.Round) {
			writes(r, "register-a", true, wrote("update", 10, 14, "v", "op4"), middle, first)
		}, unlike + "a"},
		"writes that came after the list": {func(r *history.Round) {
			r.Segments[0].Rows[3].At = 72 * ms
			writes(r, "register-a", true, middle, first)
		}, ""},
		"a list of a phase in which no object is": {func(r *history.Round) { selected(r, history.Selector{Phase: "Running"}) }, ""},
		"a list of a phase with an object of another one": {func(r *history.Round) {
			selected(r, history.Selector{Phase: "Running"}, item("register-a", state(14, true, "v", "op4")))
		}, "list: a list is not the state at version 16"},
		"a list of all but a phase without an object of another one": {func(r *history.Round) { selected(r, history.Selector{Phase: "Running", Not: true}) }, "list: a list is not the state at version 16"},
		"a row with another holder than its Lease has": {func(r *history.Round) {
			a := item("register-a", state(14, true, "v", "op4"))
			a.Holder = "op2"
			selected(r, history.Selector{}, a, item("set1", state(16, false, "op5", "op5", "op6", "op6")))
		}, "list: a list is not the state at version 16"},
		"writes above the floor": {func(r *history.Round) {
			r.Floors[1].Past = 14
			writes(r, "register-a", true, last)
		}, ""},

		"a result that comes soon":                                   {func(r *history.Round) { due(r, 3*s, 3*s) }, ""},
		"a result that comes late":                                   {func(r *history.Round) { due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime) }, "holds: a place does not come within 30s"},
		"a result that does not come":                                {func(r *history.Round) { due(r, 0, 3*s+judge.ReturnTime) }, "holds: a place does not come within 30s"},
		"a result that its client did not look for until it was due": {func(r *history.Round) { due(r, 0, 3*s) }, ""},
		"a result that comes late after a fault": {func(r *history.Round) {
			due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime)
			fault(r, history.Fault{Store: true, Begin: 4 * s, End: 6 * s})
		}, ""},
		"a result that comes late as connections of clients stall": {func(r *history.Round) {
			due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime)
			fault(r, history.Fault{Begin: 4 * s, End: 6 * s})
		}, ""},
		"a result that comes late at another server than that of a fault": {func(r *history.Round) {
			due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime)
			r.Dues[len(r.Dues)-1].Alone = true
			fault(r, history.Fault{Server: 1, Store: true, Begin: 4 * s, End: 6 * s})
		}, "holds: a place does not come within 30s"},
		"a result that comes late at the server of a fault": {func(r *history.Round) {
			due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime)
			r.Dues[len(r.Dues)-1].Alone = true
			fault(r, history.Fault{Store: true, Begin: 4 * s, End: 6 * s})
		}, ""},
		"a result whose cause may be lost": {func(r *history.Round) { due(r, 0, 3*s+judge.ReturnTime); goesOn(r, 25) }, ""},

		"a result that comes late by a clock that was set": {func(r *history.Round) {
			due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime)
			r.Dues[len(r.Dues)-1].Clocked = true
			fault(r, history.Fault{Server: 1, Clock: true, Begin: 4 * s, End: 5 * s})
		}, ""},
		"a result that comes late by clocks that are right": {func(r *history.Round) {
			due(r, 3*s+judge.ReturnTime, 3*s+judge.ReturnTime)
			r.Dues[len(r.Dues)-1].Clocked = true
		}, "holds: a place does not come within 30s"},

		"an Event that ends late": {func(r *history.Round) { end(r, 3*s+judge.EndTime) }, "expiry: the end of an Event does not come within 40s"},
		"an Event that ends late after its clock was wrong": {func(r *history.Round) {
			end(r, 3*s+judge.EndTime)
			fault(r, history.Fault{Stamps: true, Clock: true, Begin: s, End: 1500 * ms})
		}, ""},
		"an Event that ends late because its clock went wrong": {func(r *history.Round) {
			end(r, 3*s+judge.EndTime)
			fault(r, history.Fault{Stamps: true, Clock: true, Begin: 4 * s, End: 6 * s})
		}, ""},

		"a request that nothing forbids":                        {func(r *history.Round) { free(r, 201) }, ""},
		"a request that nothing forbids, and that fails":        {func(r *history.Round) { free(r, 500) }, ""},
		"a request that nothing forbids, and that is forbidden": {func(r *history.Round) { free(r, 403) }, "rules: a request is refused that nothing forbids: another name"},

		"the rest of a list":                   {func(r *history.Round) { rest(r, "q", page(25, a), page(25, set)) }, ""},
		"the rest of a list that lacks one":    {func(r *history.Round) { rest(r, "q", page(25, set)) }, "pages: the rest of a list lacks objects"},
		"the rest of a list that ends early":   {func(r *history.Round) { rest(r, "q", page(25, a)) }, "pages: the rest of a list lacks objects"},
		"the rest of a list that begins again": {func(r *history.Round) { rest(r, "register-a", page(25, a), page(25, set)) }, "it has register-a after register-a"},
		"the rest of a list with an old object": {func(r *history.Round) {
			rest(r, "q", page(25, item("register-a", state(12, false, "v", "op2"))), page(25, set))
		}, "pages: the rest of a list lacks objects"},
		"the rest of a list with one that is gone": {func(r *history.Round) {
			rest(r, "held", page(25, a), page(25, item("register-b", state(11, true, "v", "op1"))), page(25, set))
		}, "it has register-b at version 11, which is not there then"},
		"the rest of a list of two versions": {func(r *history.Round) { rest(r, "q", page(24, a), page(25, set)) }, "pages: pages of the rest of a list"},
		"the rest of a list that was cut": {func(r *history.Round) {
			rest(r, "q", history.Page{Version: 25, Items: []history.Item{a}, More: true}).Outcome = history.Unknown
		}, ""},
		"the rest of a list that is stale":       {func(r *history.Round) { rest(r, "q", page(16, a), page(16, set)) }, "pages: the rest of a list is stale"},
		"the rest of a list that is not there":   {func(r *history.Round) { rest(r, "q", page(99, a)) }, "which the table does not have"},
		"a refusal of a page without a token":    {func(r *history.Round) { rest(r, "q").Token = false }, "pages: a page is refused as too old"},
		"a refusal whose token was not answered": {func(r *history.Round) { rest(r, "q") }, ""},

		"an object that is stored once more in another version":                  {func(r *history.Round) { stored(r, "v2", 27) }, ""},
		"an object that is stored once more in another version after its answer": {func(r *history.Round) { stored(r, "v2", 26) }, ""},
		"an object that is stored once more in the same version":                 {func(r *history.Round) { stored(r, "v1", 26) }, "writes: revision 27 has 0 changes"},
		"an object of a batch, and a deletion that breaks a rule and is refused": {func(r *history.Round) { never(r, history.Conflict) }, ""},
		"an object of a batch, and a deletion that breaks a rule and is done":    {func(r *history.Round) { never(r, history.OK) }, "writes: a write was acknowledged that breaks a rule"},
		"an object of a batch that goes with a deletion that breaks a rule": {func(r *history.Round) {
			never(r, history.Conflict)
			seen := state(18, true, "v", "new17")
			r.Streams = append(r.Streams, &history.Stream{Client: "sees", Scope: history.Scope{Resource: "elsewhere", Namespace: "red"}, Code: 200, Events: []history.Event{{At: 1800 * ms, Type: "DELETED", Item: item("batch-b1-0", seen)}}})
		}, "writes: configmaps/red/batch-b1-0 is deleted before a client asked"},
	} {
		lifecycleCases[name] = c
	}
}
