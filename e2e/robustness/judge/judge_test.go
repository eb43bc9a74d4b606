package judge_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

const ms = time.Millisecond

var red = history.Scope{Resource: "configmaps", Namespace: "red"}

func key(name string) history.Key {
	return history.Key{Resource: "configmaps", Namespace: "red", Name: name}
}

func state(version uint64, on bool, fields ...string) history.State {
	s := history.State{Version: version, On: on, Fields: map[string]string{}}
	for i := 0; i < len(fields); i += 2 {
		s.Fields[fields[i]] = fields[i+1]
	}
	s.Hash, s.Meta = fmt.Sprint(on, fields), fmt.Sprint("metadata ", on)
	return s
}

func item(name string, s history.State) history.Item { return history.Item{Name: name, State: s} }

func row(name string, created uint64, s history.State) history.Row {
	return history.Row{Revision: s.Version, Key: key(name), Created: created, State: &s}
}

// taken has leads taken from holders that have renewed them.
func taken(r *history.Round, times int) { takenLeft(r, times, time.Second) }

func takenLeft(r *history.Round, times int, left time.Duration) {
	for range times {
		r.Leads = append(r.Leads, history.Lead{At: 10 * time.Second, Name: "compactor", From: "a", To: "b", Left: left})
	}
}

// toggled has an object that is set to a at version 20, and to b at 21, be set to a again, which is answered with a version.
func toggled(r *history.Round, version uint64) {
	for i, s := range []history.State{state(20, false, "v", "a"), state(21, false, "v", "b"), state(version, false, "v", "a"), state(version, false, "v", "a")} {
		o := &history.Op{ID: fmt.Sprint("toggle", i), Client: "toggler", Kind: history.Set, Key: key("toggle-1"), Field: "v", Value: s.Fields["v"], Call: time.Duration(200+i) * ms, Return: time.Duration(200+i) * ms, Outcome: history.OK, Got: &s}
		if i == 0 {
			o.Kind = history.Create
		} else if i == 3 {
			o.Kind, s.Version, s.Fields = history.Get, max(version, 21), map[string]string{"v": map[bool]string{true: "a", false: "b"}[version > 21]}
		}
		r.Ops = append(r.Ops, o)
	}
}

// goesOn has the table go on at a revision far behind, with one object, and may list the revisions that the database had lost.
func goesOn(r *history.Round, found ...uint64) {
	r.Segments = append(r.Segments, &history.Segment{From: 2_000_000, To: 2_000_000, Initial: []history.Row{row("register-a", 10, state(14, true, "v", "op4"))}})
	for _, f := range found {
		r.Losses = append(r.Losses, &history.Loss{Begin: 500 * ms, End: 600 * ms, Found: f})
	}
}

// get reads set1.
func get(at time.Duration, s history.State) *history.Op {
	return &history.Op{Client: "reader", Kind: history.Get, Key: key("set1"), Call: at, Return: at + ms, Outcome: history.OK, Got: &s}
}

// clean returns a round without a violation. Object a is there at revision 10; then b is created at 11, a changed at 12 and
// leaves the selection, b deleted at 13, a swapped at 14, and set1 begins at 15 and grows at 16.
func clean() *history.Round {
	a10, b11 := state(10, true, "v", "op0"), state(11, true, "v", "op1")
	a12, a14 := state(12, false, "v", "op2"), state(14, true, "v", "op4")
	s15, s16 := state(15, false, "op5", "op5"), state(16, false, "op5", "op5", "op6", "op6")
	gone := row("register-b", 11, b11)
	gone.Revision, gone.Deleted = 13, true
	segment := &history.Segment{From: 10, To: 16, Initial: []history.Row{row("register-a", 10, a10)},
		Rows: []history.Row{row("register-b", 11, b11), row("register-a", 10, a12), gone, row("register-a", 10, a14), row("set1", 15, s15), row("set1", 15, s16)},
		Live: []history.Row{row("register-a", 10, a14), row("set1", 15, s16)}}
	op := func(id, kind, name string, call time.Duration, got *history.State, outcome history.Outcome) *history.Op {
		o := &history.Op{ID: id, Client: "writer", Kind: kind, Key: key(name), Call: call * ms, Return: (call + 5) * ms, Outcome: outcome, Got: got}
		if kind == history.Create || kind == history.Set || kind == history.Swap {
			o.Field = "v"
		}
		if got != nil {
			o.On = &got.On
		}
		return o
	}
	swap := op("op4", history.Swap, "register-a", 40, &a14, history.OK)
	swap.Expect = 12
	swap.Audit, swap.Code = "Metadata", 200
	recorded := func(stage string, code int) *history.Audited {
		return &history.Audited{ID: swap.ID, Stage: stage, Level: "Metadata", Verb: "update", User: "admin", Key: swap.Key, Code: code}
	}
	first := op("op5", history.Create, "set1", 50, &s15, history.OK)
	first.Field = "op5"
	second := op("op6", history.Set, "set1", 60, &s16, history.OK)
	second.Field = "op6"
	event := func(at time.Duration, kind, name string, s history.State) history.Event {
		return history.Event{At: at * ms, Type: kind, Item: item(name, s)}
	}
	at := func(s history.State, version uint64) history.State { s.Version = version; return s }
	mark := func(t time.Duration, version uint64) history.Event {
		return history.Event{At: t * ms, Type: "BOOKMARK", Item: item("", history.State{Version: version})}
	}
	return &history.Round{Holders: 1, Number: 1, Final: 16, Segments: []*history.Segment{segment}, Floors: []history.Floor{{At: 0, Revision: 5}, {At: 200 * ms, Revision: 5}},
		Ops: []*history.Op{
			op("op1", history.Create, "register-b", 10, &b11, history.OK),
			op("op2", history.Set, "register-a", 20, &a12, history.OK),
			op("op3", history.Delete, "register-b", 30, nil, history.OK),
			swap, first, second,
			op("g1", history.Get, "register-a", 26, &a12, history.OK),
			op("g2", history.Get, "register-b", 36, nil, history.NotFound),
			op("g3", history.Get, "set1", 70, &s16, history.OK),
			op("op7", history.Set, "register-b", 80, nil, history.NotFound),
			op("op8", history.Create, "register-c", 90, nil, history.Unknown),
			op("op9", history.Create, "register-d", 91, nil, history.Refused),
		},
		Streams: []*history.Stream{
			{Client: "all", Scope: red, From: 10, Code: 200, Call: 1 * ms, Events: []history.Event{
				event(14, "ADDED", "register-b", b11), event(24, "MODIFIED", "register-a", a12), event(34, "DELETED", "register-b", at(b11, 13)),
				mark(38, 13), event(44, "MODIFIED", "register-a", a14), event(54, "ADDED", "set1", s15), event(64, "MODIFIED", "set1", s16), mark(66, 16)}},
			{Client: "some", Scope: red, Selector: history.Selector{On: true}, From: 10, Code: 200, Call: 1 * ms, Events: []history.Event{
				event(14, "ADDED", "register-b", b11), event(24, "DELETED", "register-a", at(a10, 12)), event(34, "DELETED", "register-b", at(b11, 13)), event(44, "ADDED", "register-a", a14)}},
			{Client: "streamed", Scope: red, Initial: true, Code: 200, Call: 39 * ms, Events: []history.Event{
				event(39, "ADDED", "register-a", a12), {At: 39 * ms, Type: "BOOKMARK", Ends: true, Item: item("", history.State{Version: 13})}, event(44, "MODIFIED", "register-a", a14)}},
		},
		Lists: []*history.List{
			{Client: "lister", Scope: red, Call: 30 * ms, Return: 36 * ms, Outcome: history.OK, Pages: []history.Page{{Version: 13, Items: []history.Item{item("register-a", a12)}}}},
			{Client: "pager", Scope: red, Call: 66 * ms, Return: 67 * ms, Outcome: history.OK, Pages: []history.Page{
				{Version: 16, More: true, Items: []history.Item{item("register-a", a14)}}, {Version: 16, Items: []history.Item{item("set1", s16)}}}},
			{Client: "past", Scope: red, Match: history.Exact, Asked: 11, Call: 80 * ms, Return: 81 * ms, Outcome: history.OK, Pages: []history.Page{
				{Version: 11, Items: []history.Item{item("register-a", a10), item("register-b", b11)}}}},
		},
		Checks: []*history.Check{{Property: "encryption", What: "a row"}, {Property: "migrations", What: "an object"}, {Property: "fairness", What: "a request"}},
		Audits: []*history.Audited{recorded("RequestReceived", 0), recorded("ResponseComplete", 200)},
		Caches: []*history.Cache{{Client: "informer", Scope: red, Items: []history.Item{item("register-a", a14), item("set1", s16)}}},
		Rights: []*history.Right{
			{Subject: "reader", Granted: true, Call: 10 * ms, Return: 12 * ms, Outcome: history.OK},
			{Subject: "reader", Call: 20 * ms, Return: 22 * ms, Outcome: history.OK},
		},
		Accesses: []*history.Access{
			{Subject: "reader", What: "read", Call: 5 * ms, Return: 6 * ms, Code: 403},
			{Subject: "reader", What: "read", Call: 15 * ms, Return: 16 * ms, Code: 200},
			{Subject: "reader", What: "never", Call: 15 * ms, Return: 16 * ms, Code: 403},
		},
	}
}

// TestProperties makes one change to a history without a violation.
func TestProperties(t *testing.T) {
	t.Parallel()
	all, some, streamed := 0, 1, 2
	events := func(r *history.Round, stream int) *[]history.Event { return &r.Streams[stream].Events }
	without := func(r *history.Round, stream, i int) {
		e := events(r, stream)
		*e = slices.Delete(*e, i, i+1)
	}
	floor := func(r *history.Round, revision uint64) {
		fault(r, history.Fault{Name: "compact", Server: -1, Compacts: true, Begin: 20 * ms, End: 110 * ms})
		r.Floors = []history.Floor{{At: 0, Revision: 5}, {At: 40 * ms, Revision: revision}, {At: 80 * ms, Revision: revision}, {At: 100 * ms, Revision: 16}}
	}
	refuse := func(r *history.Round, from, to uint64) {
		floor(r, to)
		r.Streams = append(r.Streams, &history.Stream{Client: "refused", Scope: red, From: from, Code: 410, Call: 39 * ms, Begun: 41 * ms})
	}
	expire := func(r *history.Round, stream int, to uint64) {
		floor(r, to)
		e := events(r, stream)
		*e = append(*e, history.Event{At: 70 * ms, Type: "ERROR", Code: 410})
	}
	cases := map[string]struct {
		change func(*history.Round)
		want   string // "": no violation
	}{
		"nothing": {func(*history.Round) {}, ""},
		"an open write that came to pass": {func(r *history.Round) {
			r.Ops[0].Outcome, r.Ops[0].Got = history.Unknown, nil
		}, ""},
		"an open write of an earlier round": {func(r *history.Round) {
			o := r.Ops[5]
			r.Ops, r.Earlier = slices.Delete(r.Ops, 5, 6), []*history.Op{o}
			o.Outcome, o.Got = history.Unknown, nil
		}, ""},
		"a watch that was cut": {func(r *history.Round) { *events(r, all) = (*events(r, all))[:2] }, ""},
		"a list whose second page is gone": {func(r *history.Round) {
			r.Lists[1].Pages, r.Lists[1].Outcome = r.Lists[1].Pages[:1], history.Expired
		}, ""},
		"a gap in the table":     {func(r *history.Round) { r.Table = []string{"revision 13 follows 11"} }, "revisions"},
		"a table that went back": {func(r *history.Round) { r.Segments = append(r.Segments, &history.Segment{From: 12, To: 12}) }, "revisions"},
		"a deleted object back":  {func(r *history.Round) { r.Segments[0].Live = append(r.Segments[0].Live, r.Segments[0].Rows[0]) }, "compaction"},
		"a live object lost":     {func(r *history.Round) { r.Segments[0].Live = r.Segments[0].Live[:1] }, "compaction"},
		"a write lost":           {func(r *history.Round) { lost := *r.Ops[5]; lost.ID = "op66"; r.Ops = append(r.Ops, &lost) }, "writes"},
		"another content":        {func(r *history.Round) { g := *r.Ops[1].Got; g.Hash = "other"; r.Ops[1].Got = &g }, "writes"},
		"a refused write done":   {func(r *history.Round) { r.Ops[1].Outcome, r.Ops[1].Got = history.Refused, nil }, "writes"},
		"a write twice": {func(r *history.Round) {
			s := state(17, true, "v", "op4")
			r.Segments[0].Rows = append(r.Segments[0].Rows, row("register-b", 17, s))
			r.Segments[0].Live = append(r.Segments[0].Live, row("register-b", 17, s))
			r.Segments[0].To = 17
		}, "writes"},
		"a write of a revision that does not exist": {func(r *history.Round) {
			lost := *r.Ops[5]
			got := state(17, false, "op66", "op66")
			lost.ID, lost.Field, lost.Got = "op66", "op66", &got
			r.Ops = append(r.Ops, &lost)
		}, "writes"},
		"a write by nobody":                       {func(r *history.Round) { r.Ops = slices.Delete(r.Ops, 4, 5) }, "writes"},
		"a swap of another version":               {func(r *history.Round) { r.Ops[3].Expect = 10 }, "writes"},
		"a lost update":                           {func(r *history.Round) { delete(r.Segments[0].Rows[5].State.Fields, "op5") }, "writes"},
		"a deletion undone":                       {func(r *history.Round) { again := *r.Ops[2]; again.ID = "op33"; r.Ops = append(r.Ops, &again) }, "writes"},
		"a deletion by nobody":                    {func(r *history.Round) { r.Ops[2].Outcome = history.Refused }, "writes"},
		"revisions against time":                  {func(r *history.Round) { r.Ops[1].Call, r.Ops[1].Return = 47*ms, 48*ms }, "order"},
		"a stale read":                            {func(r *history.Round) { r.Ops[6].Call, r.Ops[6].Return = 50*ms, 51*ms }, "reads"},
		"a stale read without an object":          {func(r *history.Round) { r.Ops[7].Call, r.Ops[7].Return = 17*ms, 18*ms }, "reads"},
		"a read of the future":                    {func(r *history.Round) { r.Ops[6].Call, r.Ops[6].Return = 8*ms, 9*ms }, "reads"},
		"a read of a version that does not exist": {func(r *history.Round) { g := state(17, false, "op5", "op5"); r.Ops[8].Got = &g }, "reads"},
		"a read of what never was":                {func(r *history.Round) { g := state(13, true); r.Ops[6].Got = &g }, "reads"},
		"registers that are not linearizable": {func(r *history.Round) {
			r.Ops[7].Key = key("register-a")
			r.Ops[7].Call, r.Ops[7].Return = 36*ms, 37*ms
		}, "register"},
		"a write that changes nothing is acknowledged where it would": {func(r *history.Round) { toggled(r, 20) }, "register"},
		"a write that changes nothing":                                {func(r *history.Round) { toggled(r, 22) }, ""},
		"a member lost":                                               {func(r *history.Round) { g := state(15, false, "op5", "op5"); r.Ops[8].Got = &g }, "set"},
		"events out of order":                                         {func(r *history.Round) { e := *events(r, all); e[0], e[1] = e[1], e[0] }, "watch-ordered"},
		"an event twice":                                              {func(r *history.Round) { e := events(r, some); *e = slices.Insert(*e, 1, (*e)[0]) }, "watch-unique"},
		"an event with another content":                               {func(r *history.Round) { (*events(r, all))[1].Item.State.Hash = "other" }, "watch-atomic"},
		"two events of a revision": {func(r *history.Round) {
			e := events(r, all)
			two := (*e)[0]
			two.Item.Name = "z"
			*e = slices.Insert(*e, 1, two)
		}, "watch-atomic"},
		"an event missed":                              {func(r *history.Round) { without(r, some, 1) }, "watch-reliable"},
		"the first event missed":                       {func(r *history.Round) { without(r, some, 0) }, "watch-resumable"},
		"a watch of a compacted version":               {func(r *history.Round) { refuse(r, 10, 11) }, ""},
		"a watch refused that the log reaches back to": {func(r *history.Round) { refuse(r, 11, 11) }, "watch-resumable"},
		"a watch of a version that is compacted just now": {func(r *history.Round) {
			refuse(r, 10, 11)
			r.Floors[1].Revision = 10 // the last reading before the answer
		}, ""},
		"a watch refused after the floor was last read": {func(r *history.Round) {
			refuse(r, 11, 11)
			r.Floors = r.Floors[:2]
		}, ""},
		"a watch refused while the server loads all anew": {func(r *history.Round) {
			refuse(r, 11, 11)
			r.Reloads = []*history.Reload{{Server: 0, Begin: 35 * ms, End: 41 * ms}}
		}, ""},
		"a watch refused while another server loads all anew": {func(r *history.Round) {
			refuse(r, 11, 11)
			r.Reloads = []*history.Reload{{Server: 1, Begin: 35 * ms, End: 41 * ms}}
		}, "watch-resumable"},
		"a watch refused long after the server loaded all anew": {func(r *history.Round) {
			refuse(r, 11, 11)
			r.Reloads = []*history.Reload{{Server: 0, Begin: 30 * ms, End: 38 * ms}}
		}, "watch-resumable"},
		"a watch ended that the log reaches back to": {func(r *history.Round) { expire(r, all, 16) }, "watch-resumable"},
		"a watch ended at a compacted version":       {func(r *history.Round) { expire(r, all, 17) }, ""},
		"a streaming list ended":                     {func(r *history.Round) { expire(r, streamed, 14) }, "watch-resumable"},
		"a bookmark that overtakes":                  {func(r *history.Round) { e := *events(r, all); e[2], e[3] = e[3], e[2] }, "watch-bookmarkable"},
		"a bookmark over a missing event":            {func(r *history.Round) { without(r, all, 6) }, "watch-bookmarkable"},
		"a DELETED without the last state":           {func(r *history.Round) { (*events(r, some))[1].Item.State = state(12, false, "v", "op2") }, "watch-previous"},
		"the wrong type":                             {func(r *history.Round) { (*events(r, some))[3].Type = "MODIFIED" }, "watch-filtered"},
		"an event that is not selected":              {func(r *history.Round) { e := events(r, some); *e = append(*e, (*events(r, all))[5]) }, "watch-filtered"},
		"an event from the future":                   {func(r *history.Round) { (*events(r, all))[0].At = 8 * ms }, "watch-future"},
		"a bookmark from the future": {func(r *history.Round) {
			(*events(r, all))[3].At = 28 * ms
			(*events(r, all))[3].Item.State.Version = 14
		}, "watch-future"},
		"a bookmark of a version that does not exist":       {func(r *history.Round) { (*events(r, all))[7].Item.State.Version = 17 }, "watch-future"},
		"a streaming list of a version that does not exist": {func(r *history.Round) { (*events(r, streamed))[1].Item.State.Version = 17 }, "watch-initial"},
		"a streaming list of no state":                      {func(r *history.Round) { without(r, streamed, 0) }, "watch-initial"},
		"a stale streaming list":                            {func(r *history.Round) { r.Streams[streamed].Call = 46 * ms }, "watch-initial"},
		"a list of no state":                                {func(r *history.Round) { r.Lists[0].Pages[0].Version = 14 }, "list"},
		"a list of a version that does not exist":           {func(r *history.Round) { r.Lists[0].Pages[0].Version = 17 }, "list"},
		"a stale list":                                      {func(r *history.Round) { r.Lists[0].Call = 50 * ms; r.Lists[0].Return = 51 * ms }, "list"},
		"pages of two revisions":                            {func(r *history.Round) { r.Lists[1].Pages[1].Version = 17 }, "pages"},
		"a page with newer objects": {func(r *history.Round) {
			r.Lists[1].Pages[0].Version, r.Lists[1].Pages[1].Version = 15, 15
			r.Lists[1].Match = history.Any
		}, "pages"},
		"an old state that was not":            {func(r *history.Round) { r.Lists[2].Pages[0].Items = r.Lists[2].Pages[0].Items[:1] }, "exact"},
		"a cache that is not the store":        {func(r *history.Round) { r.Caches[0].Items = r.Caches[0].Items[:1] }, "cache"},
		"a cache that went back":               {func(r *history.Round) { r.Caches[0].Wrong = "update a at version 3 after 4" }, "cache"},
		"a right before its grant":             {func(r *history.Round) { r.Accesses[0].Code = 200 }, "rights"},
		"a right that outlives its revocation": {func(r *history.Round) { r.Accesses[1].Call, r.Accesses[1].Return = 9*time.Second, 9*time.Second }, "rights"},
		"a right that outlives its revocation where that was acknowledged": {func(r *history.Round) {
			r.Rights[1].Server, r.Accesses[1].Server = 2, 1
			r.Accesses[1].Call, r.Accesses[1].Return = 23*ms, 24*ms
		}, "rights"},
		"a right of which another server does not know yet that it is revoked": {func(r *history.Round) {
			r.Rights[1].Server, r.Accesses[1].Server = 2, 0
			r.Accesses[1].Call, r.Accesses[1].Return = 23*ms, 24*ms
		}, ""},
		"a right while a server was cut off": {func(r *history.Round) {
			r.Accesses[1].Call, r.Accesses[1].Return = 9*time.Second, 9*time.Second
			r.Faults = []*history.Fault{{Name: "stall", Store: true, Begin: 1 * time.Second, End: 4 * time.Second}}
		}, ""},
		"a right while another server was cut off": {func(r *history.Round) {
			r.Accesses[1].Call, r.Accesses[1].Return = 9*time.Second, 9*time.Second
			r.Faults = []*history.Fault{{Name: "stall", Server: 1, Store: true, Begin: 1 * time.Second, End: 4 * time.Second}}
		}, "rights"},
		"a right that never was": {func(r *history.Round) { r.Accesses[2].Code = 200 }, "rights"},
		"a read of what was no more when the table was read first": {func(r *history.Round) {
			old := get(20*ms, state(7, true, "v", "op"))
			old.AtLeast = 10
			r.Ops = append(r.Ops, old)
		}, "reads"},
		"a read of what was before": {func(r *history.Round) {
			old := get(20*ms, state(7, true, "v", "op"))
			old.Cached = true
			r.Ops = append(r.Ops, old)
		}, ""},
		"a dry run that is stored": {func(r *history.Round) {
			r.Ops[slices.IndexFunc(r.Ops, func(o *history.Op) bool { return o.ID == "op2" })].Dry = true
		}, "writes"},
		"a delete with the UID of no object": {func(r *history.Round) {
			r.Ops = append(r.Ops, &history.Op{ID: "never", Kind: history.Delete, Never: true, Key: key("register-a"), Outcome: history.OK, Call: ms, Return: 2 * ms})
		}, "writes"},
		"leads taken from holders that renew them":    {func(r *history.Round) { taken(r, 2) }, "leads"},
		"leads taken from holders that were too late": {func(r *history.Round) { takenLeft(r, 2, -time.Millisecond) }, ""},
		"a lead taken while a machine stood still":    {func(r *history.Round) { taken(r, 1) }, ""},
		"leads taken from holders that had been killed": {func(r *history.Round) {
			taken(r, 2)
			r.Faults = []*history.Fault{{Name: "kill", Store: true, Begin: 8 * time.Second, End: 9 * time.Second}}
		}, ""},
		"revisions left out":                     {func(r *history.Round) { goesOn(r) }, "revisions"},
		"revisions left out where some are lost": {func(r *history.Round) { goesOn(r, 15) }, ""},
		"an object read long after it was lost": {func(r *history.Round) {
			goesOn(r, 15)
			r.Ops = append(r.Ops, get(11*time.Second, state(16, false, "op5", "op5", "op6", "op6")))
		}, "reads"},
		"an object read after a client knew that it was lost": {func(r *history.Round) {
			goesOn(r, 15)
			r.Lists = append(r.Lists, &history.List{Scope: red, Call: time.Second, Return: time.Second, Outcome: history.OK, Pages: []history.Page{{Version: 2_000_000, Items: []history.Item{item("register-a", state(14, true, "v", "op4"))}}}})
			r.Ops = append(r.Ops, get(2*time.Second, state(16, false, "op5", "op5", "op6", "op6")))
		}, "reads"},
		"an object read before anyone knew that it was lost": {func(r *history.Round) {
			goesOn(r, 15)
			r.Ops = append(r.Ops, get(2*time.Second, state(16, false, "op5", "op5", "op6", "op6")))
		}, ""},
		"a state of before, read while the database goes back to it": {func(r *history.Round) {
			goesOn(r, 15)
			r.Ops = append(r.Ops, get(550*ms, state(15, false, "op5", "op5")))
		}, ""},
		"a state of before, read before the database goes back to it": {func(r *history.Round) {
			goesOn(r, 15)
			r.Ops = append(r.Ops, get(450*ms, state(15, false, "op5", "op5")))
		}, "reads"},
		"a state of before, read when it is no more after the database went back": {func(r *history.Round) {
			goesOn(r, 15)
			r.Lists = append(r.Lists, &history.List{Scope: red, Call: time.Second, Return: time.Second, Outcome: history.OK, Pages: []history.Page{{Version: 2_000_000, Items: []history.Item{item("register-a", state(14, true, "v", "op4"))}}}})
			r.Ops = append(r.Ops, get(2*time.Second, state(15, false, "op5", "op5")))
		}, "reads"},
		"a client that is stuck": {func(r *history.Round) { r.Stuck = []string{"a watch"} }, "liveness"},
		"a damaged database":     {func(r *history.Round) { r.Verify = []string{"1 problem"} }, "verify"},
	}
	// A property that no case breaks, or that nothing is held against, is not judged.
	judged := judge.Round(clean()).Judged
	for name, n := range judge.Round(lived()).Judged {
		judged[name] += n
	}
	for _, p := range judge.Properties {
		broken := false
		for _, c := range cases {
			broken = broken || c.want == p.Name
		}
		for _, c := range lifecycleCases {
			broken = broken || strings.HasPrefix(c.want, p.Name+":")
		}
		if !broken || judged[p.Name] == 0 {
			t.Errorf("%s: a case breaks it: %v; %d records are held against it", p.Name, broken, judged[p.Name])
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clean()
			c.change(r)
			v := judge.Round(r)
			var found []string
			for _, v := range v.Violations {
				found = append(found, v.Property)
			}
			if c.want == "" && found != nil || c.want != "" && !slices.Contains(found, c.want) {
				t.Errorf("the violations are %v, want %q", v.Violations, c.want)
			}
			if c.want == "" && v.Judged["watch-filtered"] < 5 {
				t.Errorf("little was judged: %v", v.Judged)
			}
		})
	}
}

// TestReadBack: a history that was written and read back is the same, and so is its verdict.
func TestReadBack(t *testing.T) {
	t.Parallel()
	r := clean()
	r.Table, r.Stuck = []string{"wrong"}, []string{"stuck"}
	r.Floors, r.Reloads = []history.Floor{{At: ms, Revision: 5}}, []*history.Reload{{Server: 1, Begin: ms, End: 2 * ms}}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	read, err := history.Read(&text)
	if err != nil || len(read) != 1 {
		t.Fatal(read, err)
	}
	if diff := cmp.Diff(judge.Round(r), judge.Round(read[0])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(r, read[0]); diff != "" {
		t.Error(diff)
	}
}
