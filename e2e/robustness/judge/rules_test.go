package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// written adds a write to an object that no client reads, with its row.
func written(r *history.Round, o history.Op, s history.State) *history.Op {
	o.ID, o.Client, o.Key, o.Outcome, o.Got = fmt.Sprintf("new%d", s.Version), "writer", key("other"), history.OK, &s
	o.Call, o.Return = time.Duration(s.Version)*100*ms, time.Duration(s.Version)*100*ms+ms
	segment := r.Segments[0]
	segment.Rows = append(segment.Rows, row("other", 17, s))
	segment.To, segment.Live = s.Version, nil
	r.Ops = append(r.Ops, &o)
	return &o
}

// batch adds an object of a batch, created at 17, and a deletecollection of its batch.
func batch(r *history.Round, deleted bool) {
	s := state(17, true, "v", "new17")
	create := written(r, history.Op{Kind: history.Create, Field: "v"}, s)
	create.Key = key("batch-b1-0")
	segment := r.Segments[0]
	segment.Rows[len(segment.Rows)-1].Key = create.Key
	if deleted {
		gone := row(create.Key.Name, 17, s)
		gone.Revision, gone.Deleted = 18, true
		segment.Rows, segment.To = append(segment.Rows, gone), 18
	}
	r.Ops = append(r.Ops, &history.Op{ID: "all", Kind: history.DeleteCollection, Field: "b1", Key: key(""), Outcome: history.OK, Call: 2 * time.Second, Return: 3 * time.Second})
}

// TestRules changes a history so that it breaks one rule of a property, or shows that the rule has a limit.
func TestRules(t *testing.T) {
	t.Parallel()
	// The watch and the lists of one object by its name.
	a := history.Selector{Name: "register-a"}
	a12, a14, s15 := state(12, false, "v", "op2"), state(14, true, "v", "op4"), state(15, false, "op5", "op5")
	named := func(r *history.Round, events ...history.Event) {
		r.Streams = append(r.Streams, &history.Stream{Client: "named", Scope: red, Selector: a, From: 10, Code: 200, Call: ms, Events: events})
	}
	initial := func(r *history.Round, version uint64, events ...history.Event) {
		events = append(events, history.Event{At: 66 * ms, Type: "BOOKMARK", Ends: true, Item: item("", history.State{Version: version})})
		r.Streams = append(r.Streams, &history.Stream{Client: "named", Scope: red, Selector: a, Initial: true, Code: 200, Call: 65 * ms, Events: events})
	}
	list := func(r *history.Round, sel history.Selector, version uint64, items ...history.Item) *history.List {
		l := &history.List{Client: "named", Scope: red, Selector: sel, Match: history.Any, Call: 70 * ms, Return: 71 * ms, Outcome: history.OK, Pages: []history.Page{{Version: version, Items: items}}}
		r.Lists = append(r.Lists, l)
		return l
	}
	event := func(at time.Duration, kind, name string, s history.State) history.Event {
		return history.Event{At: at * ms, Type: kind, Item: item(name, s)}
	}
	first, second := event(24, "MODIFIED", "register-a", a12), event(44, "MODIFIED", "register-a", a14)
	mark := history.Event{At: 66 * ms, Type: "BOOKMARK", Item: item("", history.State{Version: 16})}
	for name, c := range map[string]struct {
		change func(*history.Round)
		want   string // a part of the violation; "": none
	}{
		// Names.
		"a watch of one name":                           {func(r *history.Round) { named(r, first, second, mark) }, ""},
		"the first event of one name missed":            {func(r *history.Round) { named(r, second, mark) }, "watch-resumable"},
		"the last event of one name missed":             {func(r *history.Round) { named(r, first, mark) }, "watch-bookmarkable"},
		"an event of another name":                      {func(r *history.Round) { named(r, first, second, event(54, "ADDED", "set1", s15)) }, "version 15, which is not selected"},
		"a watch of one name as if the object came new": {func(r *history.Round) { named(r, event(24, "ADDED", "register-a", a12)) }, "version 12 is ADDED, and should be MODIFIED"},
		"a list of one name":                            {func(r *history.Round) { list(r, a, 16, item("register-a", a14)) }, ""},
		"a list of one name that lacks it":              {func(r *history.Round) { list(r, a, 16) }, "list: a list is not the state at version 16"},
		"a list of one name with another object":        {func(r *history.Round) { list(r, a, 15, item("register-a", a14), item("set1", s15)) }, "list: a list is not the state at version 15"},
		"a streaming list of one name":                  {func(r *history.Round) { initial(r, 16, event(65, "ADDED", "register-a", a14)) }, ""},
		"a streaming list of one name with another object": {func(r *history.Round) {
			initial(r, 16, event(65, "ADDED", "register-a", a14), event(65, "ADDED", "set1", s15))
		}, "watch-initial: the initial events are not"},
		"a streaming list that begins with something else": {func(r *history.Round) { initial(r, 16, event(65, "MODIFIED", "register-a", a14)) }, "watch-initial: a streaming list begins with MODIFIED"},
		"a streaming list of one name that was cut":        {func(r *history.Round) { initial(r, 16, history.Event{At: 65 * ms, Type: "ERROR", Code: 500}) }, ""},
		"a list at a version, of an older one": {func(r *history.Round) {
			l := list(r, a, 13, item("register-a", a12))
			l.Match, l.Asked = history.NotOlder, 14
		}, "list: a list is stale"},
		"a list at a version, of a newer one": {func(r *history.Round) {
			l := list(r, a, 14, item("register-a", a14))
			l.Match, l.Asked = history.NotOlder, 13
		}, ""},
		"a list of exactly a version, of another one":         {func(r *history.Round) { r.Lists[2].Asked = 12 }, "exact: a list of exactly version 12 is of version 11"},
		"a list out of order":                                 {func(r *history.Round) { list(r, history.Selector{}, 15, item("set1", s15), item("register-a", a14)) }, "pages: register-a comes after set1"},
		"a list with an object that is not in the table then": {func(r *history.Round) { list(r, history.Selector{}, 14, item("register-a", a14), item("set1", s15)) }, "list: a list is not the state at version 14"},

		// Writes.
		"a patch through status": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Status, Field: "status.w"}, state(18, false, "v", "new17", "status.w", "new18"))
		}, ""},
		"a patch through status that changes the rest": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Status, Field: "status.w"}, state(18, false, "status.w", "new18"))
		}, "writes: a write of one field changed another one"},
		"a patch through status that pauses": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Status, Field: "status.w"}, state(18, false, "v", "new17", "status.w", "new18", "spec.paused", "true"))
		}, "writes: revision 18 has"},
		"a patch through status that drops another's": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Status, Field: "status.w"}, state(18, false, "v", "new17", "status.w", "new18"))
			written(r, history.Op{Kind: history.Status, Field: "status.x"}, state(19, false, "v", "new17", "status.x", "new19"))
		}, "writes: a write of one field changed another one"},
		"a patch through status that creates": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Status, Field: "status.w"}, state(17, false, "status.w", "new17"))
		}, "writes: an object that does not exist was changed"},
		"a patch with a version that replaces another": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Swap, Field: "v", Expect: 16}, state(18, false, "v", "new18"))
		}, "writes: a write that expected version 16 replaced version 17"},
		"a create of an object that exists": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(18, false, "v", "new18"))
		}, "writes: an object that exists was created"},
		"two writes in one revision": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			written(r, history.Op{Kind: history.Set, Field: "w"}, state(18, false, "v", "new18", "w", "new18"))
			r.Ops[len(r.Ops)-1].Field = "w"
			written(r, history.Op{Kind: history.Set, Field: "v"}, state(19, false, "v", "new19", "w", "new20"))
			written(r, history.Op{Kind: history.Set, Field: "w"}, state(20, false, "v", "new19", "w", "new20"))
		}, "has the changes of several writes"},
		"a write to another object": {func(r *history.Round) {
			written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17")).Key = key("elsewhere")
		}, "writes: a write to configmaps/red/elsewhere is in configmaps/red/other"},
		"a write acknowledged at another revision": {func(r *history.Round) {
			o := written(r, history.Op{Kind: history.Create, Field: "v"}, state(17, false, "v", "new17"))
			other := state(16, false, "v", "new17")
			o.Got = &other
		}, "writes: a write was acknowledged at revision 16, and is at 17"},
		"a deletecollection":                           {func(r *history.Round) { batch(r, true) }, ""},
		"a deletecollection that leaves an object":     {func(r *history.Round) { batch(r, false) }, "writes: deletecollection was acknowledged, and left"},
		"a member of a set that was not added yet":     {func(r *history.Round) { r.Ops[5].Call, r.Ops[5].Return = 76*ms, 77*ms }, "set: configmaps/red/set1 has op6 before that was added"},
		"a read with another content":                  {func(r *history.Round) { r.Ops = append(r.Ops, get(75*ms, state(16, true, "op5", "op5", "op6", "op6"))) }, "reads: a read shows another content"},
		"a swap refused although the version was that": {func(r *history.Round) { r.Ops = append(r.Ops, swap()) }, "register:"},

		// Watches.
		"a bookmark below an event": {func(r *history.Round) {
			named(r, first, second, history.Event{At: 50 * ms, Type: "BOOKMARK", Item: item("", history.State{Version: 13})})
		}, "watch-ordered: a bookmark at version 13 comes after version 14"},
		"something that is no event": {func(r *history.Round) { named(r, first, history.Event{At: 50 * ms, Type: "INVALID"}) }, "watch-atomic: what a watch sent is no event"},

		// Lost commits.
		"a list long after its state was lost": {func(r *history.Round) {
			goesOn(r, 15)
			l := list(r, a, 16, item("register-a", a14))
			l.Call, l.Return = 11*time.Second, 11*time.Second
		}, "list: a list is of version 16, which the database had lost 10.4s before"},
		"a list soon after its state was lost": {func(r *history.Round) {
			goesOn(r, 15)
			l := list(r, a, 16, item("register-a", a14))
			l.Call, l.Return = 10*time.Second, 10*time.Second
		}, ""},
		"a bookmark long after its version was lost": {func(r *history.Round) {
			goesOn(r, 15)
			late := mark
			late.At = 11 * time.Second
			named(r, first, second, late)
		}, "watch-future: version 16 came, which the database had lost 10.4s before"},
		"a swap refused while commits are lost": {func(r *history.Round) {
			goesOn(r, 15)
			refused := swap()
			refused.Return = 550 * ms
			r.Ops = append(r.Ops, refused)
		}, ""},
		"a read of what is there again after a loss": {func(r *history.Round) {
			goesOn(r, 15)
			r.Ops = append(r.Ops, get(510*ms, state(15, false, "op5", "op5")))
		}, ""},
		"a read of what was there before a write that is not lost": {func(r *history.Round) {
			goesOn(r, 16)
			r.Ops = append(r.Ops, get(510*ms, state(15, false, "op5", "op5")))
		}, "reads: a read is stale: it shows version 15"},
		"a right refused by the server that granted it": {func(r *history.Round) {
			r.Rights[0].Server = 1
			r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", What: "read", Call: 14 * ms, Return: 15 * ms, Code: 403})
		}, "rights: reader was refused a read after the right was granted, at the server that had acknowledged it"},
		"a right refused by another server than that which granted it": {func(r *history.Round) {
			r.Rights[0].Server = 2
			r.Accesses = append(r.Accesses, &history.Access{Subject: "reader", What: "read", Call: 14 * ms, Return: 15 * ms, Code: 403})
		}, ""},
		"a right whose revocation may be lost": {func(r *history.Round) {
			goesOn(r, 15)
			r.Accesses[1].Call, r.Accesses[1].Return = 9*time.Second, 9*time.Second
		}, ""},
		"a right whose revocation during a failover may be lost": {func(r *history.Round) {
			goesOn(r, 15)
			for i, right := range r.Rights {
				right.Call, right.Return = time.Duration(550+i)*ms, time.Duration(550+i)*ms
			}
			r.Accesses[1].Call, r.Accesses[1].Return = 9*time.Second, 9*time.Second
		}, ""},
		"a read between two parts of the log": {func(r *history.Round) {
			r.Segments = append(r.Segments, &history.Segment{From: 20, To: 20, Initial: []history.Row{row("set1", 15, state(18, false, "op5", "op5", "op6", "op6"))}})
			r.Ops = append(r.Ops, get(75*ms, state(18, false, "op5", "op5", "op6", "op6")))
		}, ""},
		"a read between two parts of the log with another content": {func(r *history.Round) {
			r.Segments = append(r.Segments, &history.Segment{From: 20, To: 20, Initial: []history.Row{row("set1", 15, state(18, false, "op5", "op5", "op6", "op6"))}})
			r.Ops = append(r.Ops, get(75*ms, state(18, true, "op5", "op5", "op6", "op6")))
		}, "reads: a read shows another content than version 18 has"},

		"a fault that found something wrong": {func(r *history.Round) {
			r.Faults = []*history.Fault{{Name: "corrupt-row", Wrong: "a damaged object is served"}}
		}, "liveness: a damaged object is served"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clean()
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

// swap expects the last version of register-a, and is refused.
func swap() *history.Op {
	return &history.Op{ID: "refused", Client: "swapper", Kind: history.Swap, Key: key("register-a"), Field: "v", Expect: 14, Call: 450 * ms, Return: 451 * ms, Outcome: history.Conflict}
}

// TestLongLog: lists are held against the state at their version, wherever in a long log that is.
func TestLongLog(t *testing.T) {
	t.Parallel()
	r := &history.Round{Number: 1}
	segment := &history.Segment{From: 10}
	there := map[string]history.State{}
	for revision := uint64(11); revision < 1000; revision++ {
		name := fmt.Sprintf("o%03d", revision*revision%211)
		s := state(revision, true)
		one := row(name, 11, s)
		if _, one.Deleted = there[name]; one.Deleted && revision%3 == 0 {
			delete(there, name)
		} else {
			one.Deleted = false
			there[name] = s
		}
		segment.Rows, segment.To = append(segment.Rows, one), revision
		var items []history.Item
		for name, s := range there {
			items = append(items, item(name, s))
		}
		slices.SortFunc(items, func(a, b history.Item) int { return strings.Compare(a.Name, b.Name) })
		r.Lists = append(r.Lists, &history.List{Scope: red, Match: history.Exact, Asked: revision, Call: time.Hour, Return: time.Hour, Outcome: history.OK, Pages: []history.Page{{Version: revision, Items: items}}})
	}
	r.Segments, r.Final = []*history.Segment{segment}, segment.To
	lists := func() (n int) {
		for _, v := range judge.Round(r).Violations {
			if v.Property == "exact" {
				n++
			}
		}
		return n
	}
	if n := lists(); n != 0 {
		t.Errorf("%d lists are judged wrong", n)
	}
	for _, i := range []int{300, 500, 900} {
		page := &r.Lists[i].Pages[0]
		page.Items = slices.Delete(slices.Clone(page.Items), 20, 21)
	}
	if n := lists(); n != 3 {
		t.Errorf("%d lists of 3 that lack an object are found", n)
	}
}
