package judge

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// RefusedTime bounds for how long a server may refuse what a client may do, such as for want of something that a controller makes first,
// while there is no fault. Times when a server or the program stands still do not count.
const RefusedTime = 20 * time.Second

// refusals checks that no server goes on to refuse a request that its client repeats until it is done.
func (j *judge) refusals() {
	var all []span
	for _, f := range j.r.Faults {
		all = append(all, span{f.Begin, f.End})
	}
	faults, lost := join(all), j.beforeLoss()
	for _, r := range j.r.Refusals {
		j.judged("liveness")
		if r.Last >= lost {
			j.open("refusals of requests for what the database may have lost")
			continue
		}
		// After each fault, controllers may begin anew.
		for from := r.First; from < r.Last; {
			to, next := r.Last, r.Last
			if i := slices.IndexFunc(faults, func(f span) bool { return f.end > from }); i >= 0 {
				to, next = min(to, faults[i].begin), faults[i].end
			}
			if to-from-j.away(stood, every).within(from, to) > RefusedTime {
				j.violate("liveness", []string{r.String()}, "a server refuses a request of %s for more than %s: %s", r.Client, RefusedTime, r.What)
				break
			}
			from = next
		}
	}
}

// AnswerTime is for how long clients wait for an answer.
const AnswerTime = 12 * time.Second

// answers checks that servers answer requests while no fault touches any of them and nothing stands still.
func (j *judge) answers() {
	for _, o := range j.r.Ops {
		if o.Code != 0 || o.Outcome != history.Unknown || o.Return-o.Call < AnswerTime || j.away(touched, every).within(o.Call, o.Return) > 0 {
			continue
		}
		j.violate("liveness", opLines(o), "a server does not answer a request within %s", AnswerTime)
	}
}

// administered checks that no server refuses the clients that may do everything. Those are all that make objects, list and watch, but for
// objects in namespaces that are deleted, and for Pods, which need an account. All other namespaces are there.
func (j *judge) administered() {
	deleted, lost := map[string]bool{}, j.beforeLoss()
	for _, o := range j.r.Ops {
		if o.Kind == history.Vacate {
			deleted[o.Key.Name] = true
		}
	}
	refused := func(code int) bool { return code == http.StatusUnauthorized || code == http.StatusForbidden }
	const what = "a server refuses an administrator a request"
	for _, o := range j.r.Ops {
		homeless := o.Kind == history.Create && o.Code == http.StatusNotFound && !strings.HasSuffix(o.Key.Resource, history.CustomGroup)
		if (refused(o.Code) || homeless) && !o.Never && o.Return < lost && !deleted[o.Key.Namespace] && o.Key.Resource != "pods" {
			j.violate("rights", opLines(o), what)
		}
	}
	for _, l := range j.r.Lists {
		if refused(l.Code) {
			j.violate("rights", []string{l.String()}, what)
		}
	}
	for _, s := range j.r.Streams {
		if refused(s.Code) {
			j.violate("rights", []string{s.String()}, what)
		}
	}
}

// hidden checks that the answer to a user without a right does not show whether an object exists.
func (j *judge) hidden(a *history.Access) {
	j.judged("rights")
	switch {
	case a.Code >= 200 && a.Code < 300:
		j.violate("rights", []string{a.String()}, "%s never had the right to this read", a.Subject)
	case a.Code == http.StatusNotFound, a.Code == http.StatusConflict, a.Code == http.StatusGone, a.Code == http.StatusUnprocessableEntity:
		j.violate("rights", []string{a.String()}, "an answer shows %s whether there is an object that it may not see", a.Subject)
	}
}

// ended checks that a credential does not work before its time, or after it, by a server whose clock is right.
func (j *judge) ended(a *history.Access) {
	if a.Code < 200 || a.Code >= 300 {
		j.judged("rights")
		return
	}
	if j.clockSet(a.Server, a.Call-RightsTime, a.Return) {
		j.open("uses of credentials while the clock of the server was set, or soon after")
		return
	}
	j.violate("rights", j.rightsOf(a), "%s was allowed a read by a credential that is not valid at that time", a.Subject)
}
