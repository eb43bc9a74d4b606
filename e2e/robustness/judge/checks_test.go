package judge_test

import (
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func init() {
	s := time.Second
	clocked := func(r *history.Round, begin, end time.Duration) {
		r.Checks = append(r.Checks, &history.Check{Property: "leads", What: "a Lease", Server: 1, Call: 20 * s, Return: 21 * s, Clocked: true, Wrong: "another holds it"})
		fault(r, history.Fault{Clock: true, Begin: begin, End: end})
	}
	check := func(r *history.Round, wrong string, calm bool) {
		r.Checks = append(r.Checks, &history.Check{Property: "encryption", What: "a row", Call: 2 * s, Return: 3 * s, Calm: calm, Wrong: wrong})
	}
	// audited adds a create that was answered at a second, and the events of its request, after changes.
	audited := func(r *history.Round, change func(o *history.Op, events []*history.Audited) []*history.Audited) {
		st := state(26, false, "v", "new26")
		r.Streams[len(r.Streams)-1].Patient = false // it does not see this
		o := written(r, history.Op{Kind: history.Create, Field: "v", Code: 201, Audit: "RequestResponse", Server: 1}, st)
		var events []*history.Audited
		for _, stage := range []string{"RequestReceived", "ResponseComplete"} {
			events = append(events, &history.Audited{ID: o.ID, Server: 1, Stage: stage, Level: "RequestResponse", Verb: "create", User: "admin", Key: o.Key})
		}
		events[0].Key.Name = ""
		events[1].Code, events[1].Request, events[1].Response, events[1].Version = 201, true, true, 26
		r.Audits = append(r.Audits, change(o, events)...)
	}
	all := func(_ *history.Op, events []*history.Audited) []*history.Audited { return events }
	first := func(_ *history.Op, events []*history.Audited) []*history.Audited { return events[:1] }
	killed := func(r *history.Round, at time.Duration) { fault(r, history.Fault{Server: 1, Begin: at, End: 4 * s}) }
	const lacks = "audit: a request was answered, and the audit log of its server lacks it"
	last := func(change func(a *history.Audited)) func(*history.Op, []*history.Audited) []*history.Audited {
		return func(_ *history.Op, events []*history.Audited) []*history.Audited {
			change(events[1])
			return events
		}
	}
	for name, c := range map[string]lifecycleCase{
		"a promise that is kept":   {func(r *history.Round) { check(r, "", false) }, ""},
		"a promise that is broken": {func(r *history.Round) { check(r, "it is in the clear", false) }, "encryption: a row: it is in the clear"},
		"a promise about migrations that is broken": {func(r *history.Round) {
			check(r, "one is lost", false)
			r.Checks[len(r.Checks)-1].Property = "migrations"
		}, "migrations: a row: one is lost"},
		"a promise about fairness that is broken": {func(r *history.Round) { check(r, "late", false); r.Checks[len(r.Checks)-1].Property = "fairness" }, "fairness: a row: late"},
		"a promise about what may be lost":        {func(r *history.Round) { check(r, "it is in the clear", false); goesOn(r, 25) }, ""},
		"a promise that is broken during a fault": {func(r *history.Round) {
			check(r, "late", false)
			fault(r, history.Fault{Store: true, Begin: s, End: 4 * s})
		}, "encryption: a row: late"},
		"a promise of calm times that is broken":            {func(r *history.Round) { check(r, "late", true) }, "encryption: a row: late"},
		"a promise of calm times that is broken during one": {func(r *history.Round) { check(r, "late", true); fault(r, history.Fault{Begin: s, End: 4 * s}) }, ""},
		"a promise of calm times, and a fault of another one": {func(r *history.Round) {
			check(r, "late", true)
			fault(r, history.Fault{Begin: s, End: 4 * s, Server: 2})
		}, "encryption: a row: late"},

		"a promise of right clocks that is broken":                  {func(r *history.Round) { clocked(r, 22*s, 23*s) }, "leads: a Lease: another holds it"},
		"a promise of right clocks that is broken while one is set": {func(r *history.Round) { clocked(r, 20500*ms, 23*s) }, ""},
		"a promise of right clocks that is broken soon after":       {func(r *history.Round) { clocked(r, 9*s, 11*s) }, ""},
		"a promise of right clocks that is broken long after":       {func(r *history.Round) { clocked(r, 8*s, 9*s) }, "leads: a Lease: another holds it"},

		"a request in the audit log": {func(r *history.Round) { audited(r, all) }, ""},
		"a request that the audit log lacks": {func(r *history.Round) {
			audited(r, func(*history.Op, []*history.Audited) []*history.Audited { return nil })
		}, "audit: a request was answered, and the audit log of its server lacks it"},
		"a request whose arrival the audit log lacks": {func(r *history.Round) {
			audited(r, func(_ *history.Op, events []*history.Audited) []*history.Audited { return events[1:] })
		}, "audit: a request was answered, and the audit log of its server lacks it"},
		"a request whose end the audit log of a killed server lacks":                {func(r *history.Round) { audited(r, first); killed(r, 2700*ms) }, ""},
		"a request whose end the audit log of a busy server lacks, which is killed": {func(r *history.Round) { audited(r, first); killed(r, 3400*ms) }, ""},
		"a request whose end the audit log of a server lacks that is killed later":  {func(r *history.Round) { audited(r, first); killed(r, 3700*ms) }, lacks},
		"a request that the audit log of a server lacks that is killed afterwards": {func(r *history.Round) {
			audited(r, func(*history.Op, []*history.Audited) []*history.Audited { return nil })
			killed(r, 2700*ms)
		}, lacks},
		"a request that the audit log of a killed server lacks": {func(r *history.Round) {
			audited(r, func(*history.Op, []*history.Audited) []*history.Audited { return nil })
			killed(r, 2500*ms)
		}, ""},
		"a request of which the audit log has the end alone": {func(r *history.Round) {
			audited(r, func(o *history.Op, events []*history.Audited) []*history.Audited {
				o.AuditEnd = true
				return events[1:]
			})
		}, ""},
		"a request of which the audit log has a stage that it must not have": {func(r *history.Round) {
			audited(r, func(o *history.Op, events []*history.Audited) []*history.Audited { o.AuditEnd = true; return events })
		}, "audit: the audit log has a stage of a request that its policy omits"},
		"a request of which the audit log lacks the only stage": {func(r *history.Round) {
			audited(r, func(o *history.Op, _ []*history.Audited) []*history.Audited { o.AuditEnd = true; return nil })
		}, lacks},
		"a request of which the audit log of a killed server lacks the only stage": {func(r *history.Round) {
			audited(r, func(o *history.Op, _ []*history.Audited) []*history.Audited { o.AuditEnd = true; return nil })
			killed(r, 3400*ms)
		}, ""},
		"a request that the audit log need not have": {func(r *history.Round) {
			audited(r, func(o *history.Op, _ []*history.Audited) []*history.Audited { o.Audit = ""; return nil })
		}, ""},
		"a request that was refused before its audit": {func(r *history.Round) {
			audited(r, func(o *history.Op, _ []*history.Audited) []*history.Audited { o.Code = 503; return nil })
		}, ""},
		"a request that is twice in the audit log": {func(r *history.Round) {
			audited(r, func(_ *history.Op, events []*history.Audited) []*history.Audited { return append(events, events[1]) })
		}, "audit: a request is recorded twice"},
		"a request in the log of another server":  {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Server = 0 })) }, "audit: the audit log has another server"},
		"a request in the log at another level":   {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Level = "Request" })) }, "audit: the audit log has another level"},
		"a request in the log by another verb":    {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Verb = "update" })) }, "audit: the audit log has another verb"},
		"a request in the log of another user":    {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.User = "" })) }, "audit: the audit log has another user"},
		"a request in the log for another kind":   {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Key.Resource = "secrets" })) }, "audit: the audit log has another resource"},
		"a request in the log for another home":   {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Key.Namespace = "blue" })) }, "audit: the audit log has another namespace"},
		"a request in the log without a name":     {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Key.Name = "" })) }, "audit: the audit log has another name"},
		"a request in the log by another code":    {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Code = 200 })) }, "audit: the audit log has another code"},
		"a request in the log without its answer": {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Version = 0 })) }, "audit: the audit log has another answer"},
		"a request in the log with a cut answer": {func(r *history.Round) {
			audited(r, last(func(a *history.Audited) { a.Version, a.Response, a.Truncated = 0, false, true }))
		}, ""},
		"a request in the log without its object": {func(r *history.Round) { audited(r, last(func(a *history.Audited) { a.Request = false })) }, "audit: the audit log has another body, none,"},
		"a request in the log with a body that it must not have": {func(r *history.Round) {
			audited(r, func(o *history.Op, events []*history.Audited) []*history.Audited {
				o.Audit, events[0].Level, events[1].Level = "Metadata", "Metadata", "Metadata"
				return events
			})
		}, "audit: the audit log has another level, with a body,"},
	} {
		lifecycleCases[name] = c
	}
}
