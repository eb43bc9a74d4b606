package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// lived returns a clean round that goes on: held is created at 17, marked at 18 and gone at 19; in the namespace home, made at 20, an
// object is made at 21 and goes at 22, and the namespace at 23; an Event is there at 24, and no more at 25.
func lived() *history.Round {
	r := clean()
	segment := r.Segments[0]
	held := func(version uint64, going bool) history.State {
		s := state(version, true, "v", "new17")
		s.UID, s.Generation, s.Held, s.Going = "u1", 1, true, going
		if going {
			s.Hash = "going"
		}
		return s
	}
	add := func(k history.Key, revision, created uint64, s *history.State, at time.Duration) {
		segment.Rows = append(segment.Rows, history.Row{Revision: revision, Key: k, Created: created, State: s, At: at})
		segment.To, segment.Live = revision, nil
	}
	ended := func() { segment.Rows[len(segment.Rows)-1].Deleted = true }
	op := func(kind string, k history.Key, at time.Duration) *history.Op {
		o := &history.Op{ID: kind + k.Name, Client: "writer", Kind: kind, Key: k, Call: at, Return: at + ms, Outcome: history.OK}
		r.Ops = append(r.Ops, o)
		return o
	}
	s17, s18 := held(17, false), held(18, true)
	k := key("held")
	add(k, 17, 17, &s17, 0)
	create := op(history.Create, k, 1700*ms)
	create.ID, create.Field, create.Got = "new17", "v", &s17
	add(k, 18, 17, &s18, 0)
	op(history.Mark, k, 1800*ms)
	add(k, 19, 17, &s18, 0)
	ended()
	op(history.Release, k, 1900*ms)

	home := history.Key{Resource: "namespaces", Name: "home"}
	inside := history.Key{Resource: "configmaps", Namespace: "home", Name: "inside"}
	add(home, 20, 20, nil, 0)
	add(inside, 21, 21, nil, 0)
	op(history.Create, inside, 2100*ms)
	op(history.Vacate, home, 2200*ms)
	add(inside, 22, 21, nil, 0)
	ended()
	add(home, 23, 20, nil, 0)
	ended()

	event := history.Key{Resource: "events", Namespace: "green", Name: "event"}
	add(event, 24, 24, nil, 3*time.Second)
	op(history.Renew, event, 2900*ms)
	add(event, 25, 24, nil, 3*time.Second+history.EventTTL)
	ended()

	marked, gone := s18, s18
	gone.Version = 19
	events := slices.Clone(r.Streams[0].Events)
	events = append(events, history.Event{At: 1705 * ms, Type: "ADDED", Item: item("held", s17)},
		history.Event{At: 1805 * ms, Type: "MODIFIED", Item: item("held", marked)}, history.Event{At: 1905 * ms, Type: "DELETED", Item: item("held", gone)})
	r.Streams = append(r.Streams, &history.Stream{Client: "patient", Scope: red, From: 10, Code: 200, Call: ms, Begun: ms, End: 30 * time.Second, Patient: true, Events: events})
	timed := &history.Stream{Client: "timed", Scope: history.Scope{Resource: "widgets." + history.CustomGroup, Namespace: "red"}, Served: history.CustomGroup + "/v1",
		From: 10, Code: 200, Call: ms, Begun: ms, End: 10 * time.Second, Seconds: 10, Over: true,
		Events: []history.Event{{At: 8 * time.Second, Type: "BOOKMARK", Item: history.Item{Served: history.CustomGroup + "/v1", State: history.State{Version: 16}}}}}
	r.Streams = append([]*history.Stream{timed}, r.Streams...)
	r.Accesses = append(r.Accesses, &history.Access{Subject: "a change", What: history.Rule, Want: 422, Code: 422})
	r.Ended = time.Minute
	r.Holds = []*history.Hold{{What: "an address", Most: 1, Holder: "a", From: ms, Until: 2 * ms}}
	r.Lives = []*history.Life{{Key: event, Until: 5 * time.Second}}
	return r
}

type lifecycleCase struct {
	change func(*history.Round)
	want   string // a part of the violation; "": none
}

// lifecycleCases break a rule about how objects begin and end, or show that it has a limit.
var lifecycleCases = map[string]lifecycleCase{
	"nothing":                            {func(*history.Round) {}, ""},
	"an object that changes its UID":     {func(r *history.Round) { rowAt(r, 18).State.UID = "u2" }, "lifecycle: the UID of an object changes"},
	"a mark that is taken back":          {func(r *history.Round) { again(r, 19).State.Going = false }, "lifecycle: a mark for deletion is taken back"},
	"a generation that goes back":        {func(r *history.Round) { rowAt(r, 18).State.Generation = 0 }, "lifecycle: a generation goes back"},
	"an object that waits for nothing":   {func(r *history.Round) { rowAt(r, 18).State.Held = false }, "lifecycle: an object that is marked for deletion"},
	"a mark by nobody":                   {func(r *history.Round) { drop(r, history.Mark) }, "writes: revision 18 marks"},
	"a held object that nobody released": {func(r *history.Round) { drop(r, history.Release) }, "lifecycle: an object is deleted although it has finalizers"},
	"a held object whose release has no answer": {func(r *history.Round) {
		find(r, history.Release).Outcome = history.Unknown
	}, ""},
	"a delete that leaves no mark": {func(r *history.Round) {
		r.Segments[0].Rows = slices.DeleteFunc(r.Segments[0].Rows, func(r history.Row) bool { return r.Revision == 18 || r.Revision == 19 })
	}, "lifecycle: a delete was acknowledged"},
	"a UID that is given twice": {func(r *history.Round) {
		s := *rowAt(r, 17).State
		s.Version, s.Fields = 26, map[string]string{"v": "new26"}
		r.Segments[0].Rows = append(r.Segments[0].Rows, history.Row{Revision: 26, Created: 26, Key: key("other"), State: &s})
		r.Segments[0].To = 26
	}, "lifecycle: the UID u1 is given twice"},
	"a status that changes the generation": {func(r *history.Round) {
		s := *rowAt(r, 18).State
		s.Version, s.Generation, s.Fields = 19, 2, map[string]string{"v": "new17", "status.w": "new19"}
		rowAt(r, 19).State, rowAt(r, 19).Deleted = &s, false
		r.Ops = append(r.Ops, &history.Op{ID: "new19", Kind: history.Status, Field: "status.w", Key: key("held"), Call: 1900 * ms, Return: 1901 * ms, Outcome: history.OK})
	}, "lifecycle: a write of the status, or of metadata, changes the generation"},

	"a namespace that goes before its objects": {func(r *history.Round) {
		a, b := rowAt(r, 22), rowAt(r, 23)
		a.Key, b.Key, a.Created, b.Created = b.Key, a.Key, b.Created, a.Created
	}, "namespaces: the namespace home is gone, and configmaps/home/inside is still there"},
	"a namespace that goes before an object that was made too late": {func(r *history.Round) {
		a, b := rowAt(r, 22), rowAt(r, 23)
		a.Key, b.Key, a.Created, b.Created = b.Key, a.Key, b.Created, a.Created
		r.Ops[slices.IndexFunc(r.Ops, func(o *history.Op) bool { return o.Key.Name == "inside" })].Return = 2300 * ms
	}, ""},
	"a namespace that nobody deletes": {func(r *history.Round) { drop(r, history.Vacate) }, "namespaces: the namespace home is deleted, and no client had asked"},

	"an Event that goes too early": {func(r *history.Round) { rowAt(r, 25).At = 10 * time.Second }, "expiry: events/green/event is deleted 7.1s after"},
	"an Event that goes although it was renewed": {func(r *history.Round) {
		renewed := *find(r, history.Renew)
		renewed.ID, renewed.Call, renewed.Return = "again", 6*time.Second, 6*time.Second
		r.Ops = append(r.Ops, &renewed)
	}, "expiry: events/green/event is deleted 7s after"},
	"an Event that stays": {func(r *history.Round) { r.Segments[0].Live = []history.Row{*rowAt(r, 24)} }, "expiry: events/green/event is still there"},

	"an event that comes late": {late, "watch-prompt: the event of version 18"},
	"an event that does not come": {func(r *history.Round) {
		s := r.Streams[len(r.Streams)-1]
		s.Events = s.Events[:len(s.Events)-2]
	}, "watch-prompt: the event of version 18 did not come"},
	"an event that comes late from a server that was cut off": {func(r *history.Round) {
		late(r)
		r.Faults = []*history.Fault{{Name: "stall", Begin: 4 * time.Second, End: 8 * time.Second}}
	}, ""},
	"an event that does not come before the end of a short watch": {func(r *history.Round) {
		s := r.Streams[len(r.Streams)-1]
		s.Events, s.End = s.Events[:len(s.Events)-2], 11*time.Second
	}, ""},

	"an object of a batch that goes before a client asked for that": {func(r *history.Round) {
		batch(r, true)
		r.Ops[len(r.Ops)-1].Call = 40 * time.Second
		seen := state(18, true, "v", "new17")
		r.Streams = append(r.Streams, &history.Stream{Client: "sees", Scope: history.Scope{Resource: "elsewhere", Namespace: "red"}, Code: 200, Events: []history.Event{{At: 39 * time.Second, Type: "DELETED", Item: item("batch-b1-0", seen)}}})
	}, "writes: configmaps/red/batch-b1-0 is deleted before a client asked"},
	"a right that does not begin to work": {func(r *history.Round) {
		r.Rights[1].Call, r.Rights[1].Return = 20*time.Second, 20*time.Second
		r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", What: "read", Call: 9 * time.Second, Return: 9 * time.Second, Code: 403})
	}, "rights: reader was refused a read more than 8s after the right was granted"},
	"a right that begins to work late at a server that was cut off": {func(r *history.Round) {
		r.Rights[1].Call, r.Rights[1].Return = 20*time.Second, 20*time.Second
		r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", What: "read", Call: 9 * time.Second, Return: 9 * time.Second, Code: 403})
		r.Faults = []*history.Fault{{Name: "db-deaf", Store: true, Begin: time.Second, From: 2 * time.Second, End: 4 * time.Second}}
	}, ""},
	"a right that works late at a server that heard nothing, and was not cut off": {func(r *history.Round) {
		r.Rights[1].Call, r.Rights[1].Return = 20*time.Second, 20*time.Second
		r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", What: "read", Call: 9 * time.Second, Return: 9 * time.Second, Code: 403})
		r.Faults = []*history.Fault{{Name: "db-deaf", Store: true, Begin: time.Second, From: 12 * time.Second, End: 13 * time.Second}}
	}, "rights: reader was refused"},
	"a right that a server is too busy for": {func(r *history.Round) {
		r.Rights[1].Call, r.Rights[1].Return = 20*time.Second, 20*time.Second
		r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", What: "read", Call: 9 * time.Second, Return: 9 * time.Second, Code: 429})
	}, ""},
}

func rowAt(r *history.Round, revision uint64) *history.Row {
	rows := r.Segments[0].Rows
	return &rows[slices.IndexFunc(rows, func(r history.Row) bool { return r.Revision == revision })]
}

// again returns the row of a revision, which is no deletion, with a state of its own.
func again(r *history.Round, revision uint64) *history.Row {
	row := rowAt(r, revision)
	s := *row.State
	row.Deleted, row.State = false, &s
	return row
}

// late has the last events of the last watch come late.
func late(r *history.Round) {
	e := r.Streams[len(r.Streams)-1].Events
	e[len(e)-2].At, e[len(e)-1].At = 13*time.Second, 13*time.Second
}

func find(r *history.Round, kind string) *history.Op {
	return r.Ops[slices.IndexFunc(r.Ops, func(o *history.Op) bool { return o.Kind == kind })]
}

func drop(r *history.Round, kind string) {
	r.Ops = slices.DeleteFunc(r.Ops, func(o *history.Op) bool { return o.Kind == kind })
}

// TestLifecycles changes a history in which objects end as they should.
func TestLifecycles(t *testing.T) {
	t.Parallel()
	for name, c := range lifecycleCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lived()
			if strings.HasPrefix(name, "an object of a batch") {
				r = clean()
			}
			c.change(r)
			found := ""
			for _, v := range judge.Round(r).Violations {
				found += v.String() + "\n"
			}
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("the violations are\n%s, want %q", found, c.want)
			}
		})
	}
}
