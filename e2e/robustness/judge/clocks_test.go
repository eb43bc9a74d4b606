package judge_test

import (
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// floors has the floors of the log, and of old states, read every second, as of some time on. In the end nothing is left in the log.
func floors(r *history.Round, at time.Duration, log, past uint64) {
	r.Floors = nil
	for i := range 60 {
		f := history.Floor{At: time.Duration(i) * time.Second, Revision: 5, Past: 5}
		if f.At >= at {
			f.Revision, f.Past = log, past
		}
		if f.At >= 30*time.Second {
			f.Revision = max(f.Revision, 25)
		}
		r.Floors = append(r.Floors, f)
	}
}

func fault(r *history.Round, f history.Fault) { r.Faults = append(r.Faults, &f) }

// refusedToken has a token be refused 13 seconds after its right was granted, and long before that is revoked.
func refusedToken(r *history.Round) *history.Access {
	r.Rights[1].Call, r.Rights[1].Return = 20*time.Second, 20*time.Second
	a := &history.Access{Subject: "reader", What: "read", Timed: true, Call: 13 * time.Second, Return: 13 * time.Second, Code: 401}
	r.Accesses = append(r.Accesses, a)
	return a
}

// event has the Event of a round deleted at 10 seconds, which is too early.
func event(r *history.Round) *history.Round {
	rowAt(r, 25).At = 10 * time.Second
	return r
}

func init() {
	s := time.Second
	clock := func(begin, end time.Duration) history.Fault {
		return history.Fault{Name: "clock", Clock: true, Begin: begin, End: end}
	}
	stamps := func(begin, end time.Duration) history.Fault {
		f := clock(begin, end)
		f.Stamps = true
		return f
	}
	stays := func(r *history.Round, ended time.Duration) {
		g := r.Segments[0]
		g.Live, r.Ended = []history.Row{*rowAt(r, 14), *rowAt(r, 16), *rowAt(r, 24)}, ended
		g.Rows, g.To = g.Rows[:len(g.Rows)-1], 24
	}
	// remains has the log keep everything.
	remains := func(r *history.Round, faults ...history.Fault) {
		floors(r, 0, 5, 5)
		for i := range r.Floors {
			r.Floors[i].Revision = 5
		}
		for _, f := range faults {
			fault(r, f)
		}
	}
	away := history.Fault{Name: "pg-pause", Server: -1, Store: true, Begin: 5 * s, End: 40 * s}
	// remarked has the mark of an object be written again, for a second delete, or for nothing.
	remarked := func(r *history.Round, second bool) {
		g := r.Segments[0]
		i := slices.IndexFunc(g.Rows, func(r history.Row) bool { return r.Revision == 19 })
		row, state := g.Rows[i], *g.Rows[i].State
		row.Deleted, row.State, state.Hash, state.Version = false, &state, "going earlier", 19
		g.Rows[i], g.Rows, g.To = row, g.Rows[:i+1], 19
		w := r.Streams[len(r.Streams)-1]
		w.Events[len(w.Events)-1].Type, w.Events[len(w.Events)-1].Item.State = "MODIFIED", state
		r.Ops = slices.DeleteFunc(r.Ops, func(o *history.Op) bool {
			return o.Kind == history.Release || o.Kind == history.Renew || o.Kind == history.Vacate || o.Key.Namespace == "home"
		})
		if second {
			again := *find(r, history.Mark)
			again.ID, again.Call, again.Return = "again", 1890*ms, 1891*ms
			r.Ops = append(r.Ops, &again)
		}
	}
	for name, c := range map[string]func(*history.Round){
		"a delete whose time moves where a clock was set": func(r *history.Round) { remarked(r, true); fault(r, clock(s, 1850*ms)) },
		// Revision 17 is written at 1.7 s.
		"history that is compacted after its time": func(r *history.Round) { floors(r, 10*s, 17, 5) },
		"old states that go after their time":      func(r *history.Round) { floors(r, 22*s, 17, 17) },
		"history that an operator compacts": func(r *history.Round) {
			floors(r, 5*s, 17, 17)
			fault(r, history.Fault{Name: "compact", Server: -1, Compacts: true, Begin: 4500 * ms, End: 4700 * ms})
		},
		"history that is compacted where revisions are left out": func(r *history.Round) {
			floors(r, 5*s, 17, 17)
			r.Losses = []*history.Loss{{Begin: 40 * s, End: 41 * s, Found: 100}}
		},
		"history that stays while a server cannot reach its database": func(r *history.Round) { remains(r, away) },
		"history that stays where a clock was set":                    func(r *history.Round) { remains(r, clock(5*s, 6*s)) },
		"history that stays soon after a clock by which rows are dated was set": func(r *history.Round) {
			remains(r)
			r.Misdated = s
		},
		"a token that is refused where the clock is set":       func(r *history.Round) { refusedToken(r); fault(r, clock(12*s, 14*s)) },
		"a token that is refused soon after the clock was set": func(r *history.Round) { refusedToken(r); fault(r, clock(3*s, 6*s)) },
		"an Event written while the clock was set":             func(r *history.Round) { fault(event(r), stamps(2*s, 2950*ms)) },
		"an Event that stays while the clock is set":           func(r *history.Round) { stays(r, 45*s); fault(r, stamps(5*s, 9*s)) },
		"an Event that stays which was written while the clock was set": func(r *history.Round) {
			stays(r, time.Minute)
			fault(r, stamps(2*s, 2950*ms))
		},
	} {
		lifecycleCases[name] = lifecycleCase{c, ""}
	}
	for name, c := range map[string]lifecycleCase{
		"a delete whose time moves where no clock was set": {func(r *history.Round) { remarked(r, true); fault(r, clock(s, 1750*ms)) }, "writes: revision 19 has 0 changes"},
		"a delete whose time moves without another delete": {func(r *history.Round) { remarked(r, false); fault(r, clock(s, 1850*ms)) }, "writes: revision 19 has 0 changes"},
		"history that is compacted before its time":        {func(r *history.Round) { floors(r, 7*s, 17, 5) }, "retention: events up to revision 17 are gone at 8s, less than 8s after revision 17"},
		"old states that go before their time":             {func(r *history.Round) { floors(r, 19*s, 5, 17) }, "retention: old states up to revision 17 are gone at 20s"},
		"history that goes on after an operator compacted": {func(r *history.Round) {
			floors(r, 5*s, 16, 16)
			fault(r, history.Fault{Name: "compact", Server: -1, Compacts: true, Begin: 4500 * ms, End: 4700 * ms})
			r.Floors[7].Revision = 17
		}, "retention: events up to revision 17 are gone at 8s"},
		"history that goes because a clock was set": {func(r *history.Round) { floors(r, 5*s, 17, 5); fault(r, stamps(4*s, 6*s)) }, "retention:"},

		"history that goes because a server started before its clock was set": {func(r *history.Round) {
			floors(r, 5*s, 17, 5)
			fault(r, stamps(4*s, 6*s))
			fault(r, history.Fault{Name: "kill", Store: true, Begin: 2 * s, End: 3 * s})
		}, ""},

		"history that stays for too long": {func(r *history.Round) { remains(r) }, "retention: the log reaches back to revision 5 at 59s, and revision"},

		"a token that is refused where the clock is right":       {func(r *history.Round) { refusedToken(r); fault(r, clock(s, 2*s)) }, "rights: reader was refused"},
		"a token that is refused where another's clock is set":   {func(r *history.Round) { refusedToken(r).Server = 1; fault(r, clock(12*s, 14*s)) }, "rights: reader was refused"},
		"a right that does not begin to work, whatever the time": {func(r *history.Round) { refusedToken(r).Timed = false; fault(r, clock(12*s, 14*s)) }, "rights: reader was refused"},
		"a right that outlives its end where the clock is set": {func(r *history.Round) {
			r.Accesses[1].Call, r.Accesses[1].Return, r.Accesses[1].Timed = 9*s, 9*s, true
			fault(r, clock(s, 12*s))
		}, "rights: reader was allowed a read more than 8s"},
		"an Event that goes early where the clock was set later":    {func(r *history.Round) { fault(event(r), stamps(4*s, 9*s)) }, "expiry: events/green/event is deleted 7.1s"},
		"an Event that goes early by a clock that is not set":       {func(r *history.Round) { fault(event(r), clock(2*s, 2950*ms)) }, "expiry: events/green/event is deleted 7.1s"},
		"an Event that stays after the clock was set":               {func(r *history.Round) { stays(r, 48*s); fault(r, stamps(5*s, 9*s)) }, "expiry: events/green/event is still there"},
		"an event that comes late from a server whose clock is set": {func(r *history.Round) { late(r); fault(r, clock(4*s, 8*s)) }, "watch-prompt: the event of version 18"},
		"leads that are taken while a clock is set":                 {func(r *history.Round) { taken(r, 2); fault(r, clock(7*s, 12*s)) }, "leads:"},
	} {
		lifecycleCases[name] = c
	}
}
