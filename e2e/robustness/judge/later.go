package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Bounds of results, not counting faults that touched any server, or the one that alone brings a result.
const (
	ReturnTime = 30 * time.Second             // of places of a quota: a controller may have to take the lead from another server
	EndTime    = history.EventTTL + lateEvent // of Events
)

// dues checks that results come in time after their causes.
func (j *judge) dues() {
	lost := j.beforeLoss()
	for _, d := range j.r.Dues {
		if d.Until > lost {
			j.open("results whose cause the database may have lost")
			continue
		}
		if d.Clocked && j.anyClockSet(d.Cause, d.Until) {
			j.open("results that come only while the clocks of servers are right")
			continue
		}
		if d.Stamped && j.misdated(&history.Op{Server: d.Server, Call: d.Cause - stampTime, Return: d.Cause}) {
			j.open("Events that were written while the clock by which they expire was set")
			continue
		}
		// A client sees a result by requests, which faults of connections delay, too.
		server := every
		if d.Alone {
			server = d.Server
		}
		came, due := d.Came, j.calm(touched, d.Cause, d.Within, server)
		if came == 0 {
			came = d.Until
		}
		if d.Stamped {
			due += j.misdates(d.Cause)
		}
		switch {
		case came > due:
			j.judged(d.Property)
			j.violate(d.Property, []string{d.String()}, "%s does not come within %s", d.What, d.Within)
		case d.Came == 0:
			j.open("results that clients did not look for until they were due")
		default:
			j.judged(d.Property)
		}
	}
}

// stampTime is how long before its acknowledgement a cause may have been dated: for longer no request waits for an answer.
const stampTime = 15 * time.Second

// rests checks the lists that clients continued with the token of a refusal: of one newer state, all that follows what came before.
func (j *judge) rests() {
	for _, r := range j.r.Rests {
		lines := []string{r.String()}
		if !r.Token {
			j.judged("pages")
			j.violate("pages", lines, "a page is refused as too old, and the answer has no token to continue with")
			continue
		}
		if len(r.Pages) == 0 {
			continue
		}
		j.judged("pages")
		revision := r.Pages[0].Version
		if i := slices.IndexFunc(r.Pages, func(p history.Page) bool { return p.Version != revision }); i > 0 {
			j.violate("pages", lines, "pages of the rest of a list are of versions %d and %d", revision, r.Pages[i].Version)
			continue
		}
		if least := j.seenBefore(r.Call); revision < least {
			j.violate("pages", append(lines, j.whoSaw(least)), "the rest of a list is stale: it is of version %d, and %d had been seen", revision, least)
		}
		if j.phantom(revision) {
			j.violate("pages", lines, "the rest of a list is of version %d, which the table does not have", revision)
			continue
		}
		p := j.part(revision, revision)
		if p == nil {
			j.open("rests of lists of versions that were compacted before they were read")
			continue
		}
		if differences := p.follows(r); len(differences) > 0 {
			j.violate("pages", append(lines, differences...), "the rest of a list lacks objects that follow, or has others")
		}
	}
}

// follows returns the differences between the rest of a list and the objects that follow its beginning.
func (p *part) follows(r *history.Rest) (differences []string) {
	after, last := place(r.Scope, r.After.Namespace, r.After.Name), ""
	want := p.state(r.Scope, r.Selector, r.Pages[0].Version)
	for _, page := range r.Pages {
		for i := range page.Items {
			it := &page.Items[i]
			at, v := place(r.Scope, it.Namespace, it.Name), want[it.Name]
			delete(want, it.Name)
			switch {
			case at <= max(after, last):
				differences = append(differences, fmt.Sprintf("it has %s after %s", it.Name, strings.ReplaceAll(max(after, last), "\x00", "/")))
			case v == nil:
				differences = append(differences, fmt.Sprintf("it has %s at version %d, which is not there then", it.Name, it.State.Version))
			case v.revision != it.State.Version || r.Form.HashOf(v.state) != it.State.Hash:
				differences = append(differences, fmt.Sprintf("it has %s at version %d %v", it.Name, it.State.Version, it.State.Fields), rowLine(v.row))
			}
			last = max(last, at)
		}
	}
	whole := r.Outcome == history.OK && !r.Pages[len(r.Pages)-1].More
	for name, v := range want {
		if at := place(r.Scope, v.row.Key.Namespace, name); at > after && (whole || at < last) {
			differences = append(differences, "it lacks "+rowLine(v.row))
		}
	}
	return differences[:min(len(differences), 6)]
}
