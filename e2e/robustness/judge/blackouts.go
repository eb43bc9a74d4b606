package judge

import (
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// unanswering are the faults during which PostgreSQL answers none, or one, of the servers.
var unanswering = []string{"pg-pause", "db-stall"}

// For so long such a fault may not have its effect yet, or no more, on a busy machine.
const (
	blackoutBegins = 2 * time.Second
	blackoutEnds   = time.Second
)

// blackouts checks that no server acknowledges a write, or answers a consistent read, while its database answers nothing.
func (j *judge) blackouts() {
	var all []*history.Fault
	for _, f := range j.r.Faults {
		if slices.Contains(unanswering, f.Name) {
			all = append(all, f)
		}
	}
	during := func(server int, call, answered time.Duration) *history.Fault {
		i := slices.IndexFunc(all, func(f *history.Fault) bool {
			return (f.Server == server || f.Server < 0) && server >= 0 && call > f.Begin+blackoutBegins && answered < f.End-blackoutEnds
		})
		if i < 0 {
			return nil
		}
		return all[i]
	}
	for _, o := range j.r.Ops {
		if o.Outcome != history.OK || o.Dry || o.Cached || o.AtLeast != 0 {
			continue
		}
		if f := during(o.Server, o.Call, o.Return); f != nil {
			property, what := "reads", "answers a consistent read"
			if o.Writes() {
				property, what = "writes", "acknowledges a write"
			}
			j.violate(property, append(opLines(o), f.String()), "a server %s while its database answers nothing", what)
		}
	}
	for _, l := range j.r.Lists {
		if l.Match != history.Latest || len(l.Pages) == 0 || l.Behind != nil {
			continue
		}
		if f := during(l.Server, l.Call, l.Return); f != nil {
			j.violate("list", []string{l.String(), f.String()}, "a server answers a consistent list while its database answers nothing")
		}
	}
}
