package judge_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

func stall(server int, begin, end time.Duration) *history.Stall {
	return &history.Stall{Server: server, Begin: begin, End: end}
}

// TestStalls: bounds of time grow by exactly the time for which the program or the server stood still, and the verdict has
// that time.
func TestStalls(t *testing.T) {
	t.Parallel()
	s := time.Second
	// A right that ends at 22 ms is used at this time.
	used := func(at time.Duration) func(*history.Round) {
		return func(r *history.Round) { r.Accesses[1].Call, r.Accesses[1].Return = at, at }
	}
	// A right that begins at 12 ms is refused at this time, and revoked later.
	refused := func(at time.Duration) func(*history.Round) {
		return func(r *history.Round) {
			a := r.Accesses[1]
			a.Call, a.Return, a.Code = at, at, 403
			r.Rights[1].Call, r.Rights[1].Return = at+s, at+s
		}
	}
	// The event of op2, which is acknowledged at 25 ms, comes at this time, and those after it too.
	late := func(at time.Duration) func(*history.Round) {
		return func(r *history.Round) {
			w := r.Streams[0]
			w.Patient, w.End = true, at+s
			for i := 1; i < len(w.Events); i++ {
				w.Events[i].At = at
			}
		}
	}
	// The lead of a living server is taken, twice, at 10 s.
	leads := func(r *history.Round) { taken(r, 2) }
	// A list of revision 16 at this time, which was lost at 600 ms.
	lost := func(at time.Duration) func(*history.Round) {
		return func(r *history.Round) {
			goesOn(r, 15)
			r.Lists[1].Match, r.Lists[1].Call, r.Lists[1].Return = history.Any, at, at
		}
	}
	fault := func(begin, end time.Duration) *history.Fault {
		return &history.Fault{Name: "pause", Store: true, Begin: begin, End: end}
	}
	type seen struct {
		Broken           string // the property of a violation
		Program, Servers judge.Stalls
	}
	one := func(d time.Duration) judge.Stalls { return judge.Stalls{Times: 1, Total: d} }
	for name, c := range map[string]struct {
		change func(*history.Round)
		faults []*history.Fault
		stalls []*history.Stall
		want   seen
	}{
		"a right used too long":                                              {change: used(9 * s), want: seen{Broken: "rights"}},
		"a right used too long, while its server stood still":                {used(9 * s), nil, []*history.Stall{stall(0, 3*s, 4*s)}, seen{Servers: one(s)}},
		"a right used too long, while the program stood still":               {used(9 * s), nil, []*history.Stall{stall(-1, 3*s, 4*s)}, seen{Program: one(s)}},
		"a right used too long, longer than its server stood still":          {used(9 * s), nil, []*history.Stall{stall(0, 3*s, 3900*ms)}, seen{Broken: "rights", Servers: one(900 * ms)}},
		"a right used too long, while another server stood still":            {used(9 * s), nil, []*history.Stall{stall(1, 3*s, 5*s)}, seen{Broken: "rights", Servers: one(2 * s)}},
		"a right used too long, while its server stood still before":         {used(9 * s), nil, []*history.Stall{stall(0, 0, 20*ms)}, seen{Broken: "rights", Servers: one(20 * ms)}},
		"a right used too long, while both stood still at the same time":     {used(9 * s), nil, []*history.Stall{stall(0, 3*s, 3600*ms), stall(-1, 3*s, 3600*ms)}, seen{Broken: "rights", Program: one(600 * ms)}},
		"a right used too long, while both stood still one after the other":  {used(9 * s), nil, []*history.Stall{stall(0, 3*s, 3600*ms), stall(-1, 3600*ms, 4200*ms)}, seen{Program: one(600 * ms), Servers: one(600 * ms)}},
		"a right used too long, while its server stood still for a fault":    {used(9 * s), []*history.Fault{fault(3*s, 3600*ms)}, []*history.Stall{stall(0, 3*s, 3600*ms)}, seen{Broken: "rights"}},
		"a right used too long, while its server stood still beyond a fault": {used(9 * s), []*history.Fault{fault(3*s, 3600*ms)}, []*history.Stall{stall(0, 3*s, 4*s)}, seen{Servers: one(400 * ms)}},
		"a right used too long, a stall in the time that another stall adds": {used(10 * s), nil, []*history.Stall{stall(0, 7*s, 8500*ms), stall(0, 8600*ms, 9400*ms)}, seen{Servers: judge.Stalls{Times: 2, Total: 2300 * ms}}},
		"a right refused too long":                                           {change: refused(9 * s), want: seen{Broken: "rights"}},
		"a right refused too long, while a server stood still":               {refused(9 * s), nil, []*history.Stall{stall(0, 3*s, 4*s)}, seen{Servers: one(s)}},
		"an event that comes late":                                           {change: late(11 * s), want: seen{Broken: "watch-prompt"}},
		"an event that comes late, while its server stood still":             {late(11 * s), nil, []*history.Stall{stall(0, 3*s, 4*s)}, seen{Servers: one(s)}},
		"an event that comes late, longer than its server stood still":       {late(11 * s), nil, []*history.Stall{stall(0, 3*s, 3900*ms)}, seen{Broken: "watch-prompt", Servers: one(900 * ms)}},
		"an event that comes late, while both stood still at the same time":  {late(11 * s), nil, []*history.Stall{stall(0, 3*s, 3600*ms), stall(-1, 3*s, 3600*ms)}, seen{Broken: "watch-prompt", Program: one(600 * ms)}},
		"leads that are taken":                                               {change: leads, want: seen{Broken: "leads"}},
		"leads that are taken, while a server stood still":                   {leads, nil, []*history.Stall{stall(2, 7*s, 8*s)}, seen{Servers: one(s)}},
		"leads that are taken, long after a server stood still":              {leads, nil, []*history.Stall{stall(2, 4*s, 5*s)}, seen{Broken: "leads", Servers: one(s)}},
		"a list of what was lost":                                            {change: lost(11 * s), want: seen{Broken: "list"}},
		"a list of what was lost, while something stood still":               {lost(11 * s), nil, []*history.Stall{stall(1, 7*s, 8*s)}, seen{Servers: one(s)}},
		"nothing broken, and a server that stood still twice":                {func(*history.Round) {}, nil, []*history.Stall{stall(0, 1*s, 3*s), stall(0, 2*s, 4*s), stall(0, 5*s, 6*s)}, seen{Servers: judge.Stalls{Times: 2, Total: 4 * s}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clean()
			c.change(r)
			r.Faults, r.Stalls = c.faults, c.stalls
			v := judge.Round(r)
			got := seen{Program: v.Program, Servers: v.Servers}
			for _, v := range v.Violations {
				got.Broken = v.Property
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, v.Violations)
			}
			if v.Program.Times+v.Servers.Times != len(v.Stalls) {
				t.Errorf("%d stalls are named: %v", len(v.Stalls), v.Stalls)
			}
		})
	}
}
