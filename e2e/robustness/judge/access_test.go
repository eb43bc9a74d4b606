package judge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// TestAccess adds a use of a credential, a request for what a user may not see, or one that is refused, to a history without a violation.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := time.Second
	access := func(what string, code int, more ...func(*history.Round)) func(*history.Round) {
		return func(r *history.Round) {
			r.Accesses = append(r.Accesses, &history.Access{Subject: "somebody", What: what, Call: 20 * s, Return: 21 * s, Code: code})
			for _, change := range more {
				change(r)
			}
		}
	}
	clock := func(server int, begin, end time.Duration) func(*history.Round) {
		return func(r *history.Round) {
			fault(r, history.Fault{Name: "clock", Clock: true, Server: server, Begin: begin, End: end})
		}
	}
	refused := func(long time.Duration, more ...func(*history.Round)) func(*history.Round) {
		return func(r *history.Round) {
			r.Refusals = append(r.Refusals, &history.Refusal{Client: "somebody", What: "POST /x", First: s, Last: s + long, Times: 9, Code: 403})
			for _, change := range more {
				change(r)
			}
		}
	}
	found := func(wrong string, more ...func(*history.Round)) func(*history.Round) {
		return func(r *history.Round) {
			r.Checks = append(r.Checks, &history.Check{Property: "lifecycle", What: "a network in use", Call: 20 * s, Return: 21 * s, Wrong: wrong})
			for _, change := range more {
				change(r)
			}
		}
	}
	away := func(begin time.Duration) func(*history.Round) {
		return func(r *history.Round) {
			fault(r, history.Fault{Name: "kill", Store: true, Server: 1, Begin: begin, End: begin + s})
		}
	}
	const ended, shown, never = "rights: somebody was allowed a read by a credential that is not valid", "rights: an answer shows somebody whether there is an object", "rights: somebody never had the right"
	forbidden := func(o history.Op) func(*history.Round) {
		return func(r *history.Round) {
			o.ID, o.Client, o.Call, o.Return, o.Outcome, o.Code = "refused", "admin", 3*s, 4*s, history.Denied, 403
			r.Ops = append(r.Ops, &o, &history.Op{ID: "vacate", Kind: history.Vacate, Key: history.Key{Resource: "namespaces", Name: "home"}, Call: s, Return: 2 * s, Outcome: history.Refused})
		}
	}
	unanswered := func(o history.Op, more ...func(*history.Round)) func(*history.Round) {
		return func(r *history.Round) {
			o.ID, o.Kind, o.Key, o.Call, o.Return, o.Outcome = "unanswered", history.Get, key("other"), 20*s, max(o.Return, 20*s+judge.AnswerTime), history.Unknown
			r.Ops = append(r.Ops, &o)
			for _, change := range more {
				change(r)
			}
		}
	}
	const silent = "liveness: a server does not answer a request within 12s"
	const refuses = "rights: a server refuses an administrator a request"
	const goesOn = "liveness: a server refuses a request of somebody for more than 20s: POST /x"
	for name, c := range map[string]struct {
		change func(*history.Round)
		want   string // "": no violation
	}{
		"a token whose time is over":                               {access(history.Ended, 200), ended},
		"a token whose time is over, and that is refused":          {access(history.Ended, 401), ""},
		"a token whose time is over, while the clock is set":       {access(history.Ended, 200, clock(0, 18*s, 22*s)), ""},
		"a token whose time is over, soon after the clock was set": {access(history.Ended, 200, clock(0, 10*s, 14*s)), ""},
		"a token whose time is over, long after the clock was set": {access(history.Ended, 200, clock(0, 8*s, 11*s)), ended},
		"a token whose time is over, while another clock is set":   {access(history.Ended, 200, clock(1, 18*s, 22*s)), ended},

		"a hidden object that is forbidden":           {access(history.Hidden, 403), ""},
		"a hidden object that is read":                {access(history.Hidden, 200), never},
		"a hidden object that is said not to be":      {access(history.Hidden, 404), shown},
		"a hidden object that is said to be":          {access(history.Hidden, 409), shown},
		"a hidden object, and an overload":            {access(history.Hidden, 429), ""},
		"a hidden object, and a database that is off": {access(history.Hidden, 500), ""},

		"a request that breaks a rule, and is done": {access(history.Rule, 201), "rules: a server allows what no request may do: somebody"},
		"a request that breaks a rule, about what the database may have lost": {access(history.Rule, 201, func(r *history.Round) {
			r.Losses = append(r.Losses, &history.Loss{Begin: 15 * s, End: 16 * s, Found: 16})
		}), ""},
		"a request that breaks a rule, before the database lost something": {access(history.Rule, 201, func(r *history.Round) {
			r.Losses = append(r.Losses, &history.Loss{Begin: 25 * s, End: 26 * s, Found: 16})
		}), "rules: a server allows what no request may do: somebody"},

		"an administrator who is refused a write": {forbidden(history.Op{Kind: history.Create, Key: key("other")}), refuses},
		"a namespace that is not found": {func(r *history.Round) {
			forbidden(history.Op{Kind: history.Create, Key: key("other")})(r)
			o := r.Ops[len(r.Ops)-2]
			o.Code, o.Outcome = 404, history.NotFound
		}, refuses},
		"a definition that is not found": {func(r *history.Round) {
			forbidden(history.Op{Kind: history.Create, Key: history.Key{Resource: "widgets." + history.CustomGroup, Namespace: "red", Name: "w"}})(r)
			o := r.Ops[len(r.Ops)-2]
			o.Code, o.Outcome = 404, history.NotFound
		}, ""},
		"an administrator who breaks a rule":        {forbidden(history.Op{Kind: history.Create, Key: key("other"), Never: true}), ""},
		"an administrator who makes a Pod":          {forbidden(history.Op{Kind: history.Create, Key: history.Key{Resource: "pods", Namespace: "red", Name: "p"}}), ""},
		"an administrator in a namespace that goes": {forbidden(history.Op{Kind: history.Create, Key: history.Key{Resource: "configmaps", Namespace: "home", Name: "c"}}), ""},
		"an administrator who is refused a list": {func(r *history.Round) {
			r.Lists[0].Code = 403
			r.Lists[0].Outcome = history.Denied
			r.Lists[0].Pages = nil
		}, refuses},
		"an administrator who is refused a watch": {func(r *history.Round) { r.Streams[0].Code = 401; r.Streams[0].Events = nil }, refuses},

		"a request without an answer":                        {unanswered(history.Op{}), silent},
		"a request without an answer before a fault":         {unanswered(history.Op{}, away(33*s)), silent},
		"a request without an answer during a fault":         {unanswered(history.Op{}, away(31*s)), ""},
		"a request without an answer while a server stalled": {unanswered(history.Op{}, func(r *history.Round) { r.Stalls = append(r.Stalls, stall(1, 22*s, 23*s)) }), ""},
		"a request that is answered late":                    {unanswered(history.Op{Code: 504}), ""},

		"a request that is refused for a while":             {refused(judge.RefusedTime), ""},
		"a request that is refused for long":                {refused(judge.RefusedTime + s/2), goesOn},
		"a request that is refused for long before a fault": {refused(judge.RefusedTime+5*s, away(22*s)), goesOn},
		"a request that is refused for long after a fault":  {refused(judge.RefusedTime+5*s, away(3*s)), goesOn},
		"a request that is refused for long around a fault": {refused(judge.RefusedTime+5*s, away(9*s)), ""},
		"a request that is refused for long around faults":  {refused(2*judge.RefusedTime, away(9*s), away(26*s)), ""},
		"a request that is refused while a server is stalled": {refused(judge.RefusedTime+s/2, func(r *history.Round) {
			r.Stalls = append(r.Stalls, stall(0, 3*s, 4*s))
		}), ""},
		"a request that is refused longer than a server is stalled": {refused(judge.RefusedTime+2*s, func(r *history.Round) {
			r.Stalls = append(r.Stalls, stall(0, 3*s, 4*s))
		}), goesOn},
		"a request for what the database has lost": {func(r *history.Round) {
			refused(judge.RefusedTime + s)(r)
			r.Losses = append(r.Losses, &history.Loss{Begin: 15 * s, End: 16 * s, Found: 16})
		}, ""},
		"a request that was refused before the database lost something": {func(r *history.Round) {
			refused(judge.RefusedTime + s)(r)
			r.Losses = append(r.Losses, &history.Loss{Begin: 25 * s, End: 26 * s, Found: 16})
		}, goesOn},
		"an answer that its client finds right": {found(""), ""},
		"an answer that its client finds wrong": {found("it is gone"), "lifecycle: a network in use: it is gone"},
		"a wrong answer before the database lost something": {found("it is gone", func(r *history.Round) {
			r.Losses = append(r.Losses, &history.Loss{Begin: 25 * s, End: 26 * s, Found: 16})
		}), "lifecycle: a network in use: it is gone"},
		"a wrong answer after the database lost something": {found("it is gone", func(r *history.Round) {
			r.Losses = append(r.Losses, &history.Loss{Begin: 15 * s, End: 16 * s, Found: 16})
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clean()
			c.change(r)
			var got []string
			for _, v := range judge.Round(r).Violations {
				got = append(got, v.String())
			}
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
