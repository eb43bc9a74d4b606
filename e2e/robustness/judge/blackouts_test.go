package judge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// TestBlackouts adds a request, between 13 and 14 seconds, and a fault of the database to a history without a violation.
func TestBlackouts(t *testing.T) {
	t.Parallel()
	s := time.Second
	pause, stall := history.Fault{Name: "pg-pause", Server: -1, Store: true, Begin: 10 * s, End: 16 * s}, history.Fault{Name: "db-stall", Server: 0, Store: true, Begin: 10 * s, End: 16 * s}
	shorter := pause
	shorter.Begin = 12 * s
	other, cut := stall, stall
	other.Server, cut.Name = 1, "db-cut"
	get := history.Op{Kind: history.Get}
	cached, dry := get, history.Op{Kind: history.Delete, Dry: true}
	cached.Cached = true
	const read, write, list = "reads: a server answers a consistent read while", "writes: a server acknowledges a write while", "list: a server answers a consistent list while"
	for name, c := range map[string]struct {
		op    history.Op
		fault history.Fault
		want  string // "": no violation
	}{
		"a read":                              {get, pause, read},
		"a read of one server":                {get, stall, read},
		"a read of another server":            {get, other, ""},
		"a read in another fault":             {get, cut, ""},
		"a read soon after the beginning":     {get, shorter, ""},
		"a read from memory":                  {cached, pause, ""},
		"a dry run":                           {dry, pause, ""},
		"a delete":                            {history.Op{Kind: history.Delete}, pause, write},
		"a delete that has no certain answer": {history.Op{Kind: history.Delete, Outcome: history.Unknown}, pause, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, o := clean(), c.op
			o.ID, o.Client, o.Key, o.Call, o.Return = "dark", "reader", key("register-b"), 13*s, 14*s
			if o.Outcome == "" {
				o.Outcome = history.OK
			}
			if o.Reads() {
				a := state(14, true, "v", "op4")
				o.Key, o.Got = key("register-a"), &a
			}
			r.Ops = append(r.Ops, &o)
			fault(r, c.fault)
			wantBlackout(t, r, c.want)
		})
	}
	for match, want := range map[history.Match]string{history.Latest: list, history.Any: ""} {
		r := clean()
		fault(r, pause)
		l := *r.Lists[1]
		l.Match, l.Call, l.Return = match, 13*s, 14*s
		r.Lists = append(r.Lists, &l)
		wantBlackout(t, r, want)
	}
}

// wantBlackout wants one violation, or none, of what servers do without their database.
func wantBlackout(t *testing.T, r *history.Round, want string) {
	t.Helper()
	found := ""
	for _, v := range judge.Round(r).Violations {
		if text := v.String(); strings.Contains(text, "while its database answers nothing") {
			found += text + "\n"
		}
	}
	if want == "" && found != "" || !strings.Contains(found, want) {
		t.Errorf("the violations are\n%s, want %q", found, want)
	}
}
