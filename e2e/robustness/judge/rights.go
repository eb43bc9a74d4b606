package judge

import (
	"net/http"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// RightsTime bounds how long a right may be used after its end was acknowledged: the time in which every server that reaches its database learns of it. Times
// when faults keep that server from its database, or it or the program stands still, do not count. The server that acknowledged it knows at once.
const RightsTime = 8 * time.Second

// WatchTime bounds for how long writes may still be shown to a watch after its user lost the right to it, at a server that knows that: servers
// ask again every 20 seconds.
const WatchTime = 22 * time.Second

// rights checks that no user reads an object without a right to it.
func (j *judge) rights() {
	type span struct {
		from, to time.Duration // from the first grant to the acknowledgement of the revocation
		server   int           // that acknowledged it, from 1 on; 0: not known
		by       int           // that acknowledged the first grant
		// The right holds from the acknowledgement of the grant to the first request of the revocation.
		granted, revoked time.Duration
	}
	spans := map[string]*span{}
	for _, r := range j.r.Rights {
		s := spans[r.Subject]
		if s == nil {
			s = &span{from: r.Call, to: 1<<63 - 1, granted: 1<<63 - 1, revoked: 1<<63 - 1}
			spans[r.Subject] = s
		}
		if r.Granted {
			if s.from = min(s.from, r.Call); r.Outcome == history.OK && r.Return < s.granted {
				s.granted, s.by = r.Return, r.Server
			}
			continue
		}
		if s.revoked = min(s.revoked, r.Call); r.Outcome == history.OK {
			s.to, s.server = r.Return, r.Server
		}
	}
	lost := j.beforeLoss()
	for _, a := range j.r.Accesses {
		switch a.What {
		case history.Rule:
			j.ruled(a)
			continue
		case history.Hidden:
			j.hidden(a)
			continue
		case history.Ended:
			j.ended(a)
			continue
		}
		if a.What == history.Free {
			if j.judged("rules"); (a.Code == http.StatusForbidden || a.Code == http.StatusUnprocessableEntity) && a.Return < lost {
				j.violate("rules", []string{a.String()}, "a request is refused that nothing forbids: %s", a.Subject)
			}
			continue
		}
		j.judged("rights")
		if s := spans[a.Subject]; s != nil && denied(a.Code) && a.What == "read" && a.Return < s.revoked && s.granted < a.Call && a.Return < lost &&
			(a.Server == s.by-1 || a.Call > j.calm(cutOff, s.granted, RightsTime, a.Server)) {
			if a.Timed && j.clockSet(a.Server, a.Call-RightsTime, a.Return) {
				j.open("refusals of tokens while the clock of the server was set, or soon after")
				continue
			}
			if a.Server == s.by-1 {
				j.violate("rights", j.rightsOf(a), "%s was refused a read after the right was granted, at the server that had acknowledged it", a.Subject)
				continue
			}
			j.violate("rights", j.rightsOf(a), "%s was refused a read more than %s after the right was granted", a.Subject, RightsTime)
		}
		if a.Code < 200 || a.Code >= 300 {
			continue
		}
		if s := spans[a.Subject]; s != nil && a.What == "read" && j.losable(s.from, a.Return) {
			j.open("uses of rights whose changes the database may have lost")
			continue
		}
		lines := func() []string { return j.rightsOf(a) }
		s := spans[a.Subject]
		switch {
		case a.What == history.Watching:
			if s != nil {
				j.outlived(a, s.to, s.server-1, lines)
			}
		case a.What != "read":
			j.violate("rights", lines(), "%s never had the right to this read", a.Subject)
		case s == nil || a.Return < s.from:
			j.violate("rights", lines(), "%s was allowed a read before the right was granted", a.Subject)
		case a.Server == s.server-1 && a.Call > s.to:
			j.violate("rights", lines(), "%s was allowed a read after the revocation, at the server that had acknowledged it", a.Subject)
		case a.Call > s.to && a.Call > j.calm(cutOff, s.to, RightsTime, a.Server):
			j.violate("rights", lines(), "%s was allowed a read more than %s after the revocation was acknowledged", a.Subject, RightsTime)
		}
	}
}

// losable reports whether the database may have lost a change that was made at one time when it is used at another.
func (j *judge) losable(changed, used time.Duration) bool {
	return slices.ContainsFunc(j.r.Losses, func(l *history.Loss) bool { return changed < l.End && used > l.Begin })
}

// outlived checks an event of a watch of a user who has lost the right to it: by the time when its write began, as the event may have been on
// its way since then.
func (j *judge) outlived(a *history.Access, revoked time.Duration, knows int, lines func() []string) {
	p := j.part(a.Version-1, a.Version)
	if p == nil || revoked == 1<<63-1 {
		return
	}
	limit := WatchTime
	if a.Server != knows {
		limit += RightsTime
	}
	for _, v := range p.after(watchedScope, a.Version-1, a.Version) {
		if v.op != nil && v.op.Call > j.calm(cutOff, revoked, limit, a.Server) {
			j.violate("rights", append(lines(), opLines(v.op)...), "a write that began more than %s after the revocation was acknowledged was shown to a watch of %s", limit, a.Subject)
		}
	}
}

// watchedScope is what users watch whose rights end.
var watchedScope = history.Scope{Resource: "configmaps", Namespace: "red"}

// ruled checks a request that breaks a rule. Refusals for other reasons, such as of an object that is not there yet, say nothing.
func (j *judge) ruled(a *history.Access) {
	switch {
	case a.Return >= j.beforeLoss():
		j.open("requests that break rules, about what the database may have lost")
	case a.Code >= 200 && a.Code < 300:
		j.violate("rules", []string{a.String()}, "a server allows what no request may do: %s", a.Subject)
	case a.Code == a.Want:
		j.judged("rules")
	}
}

// clockSet reports whether the wall clock of a server was not right between two times.
func (j *judge) clockSet(server int, from, to time.Duration) bool {
	return slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool {
		return f.Clock && (f.Server == server || f.Server < 0) && f.Begin <= to && f.End >= from
	})
}

// clockSettles is how long after a clock was wrong its effects may last, such as a Lease that was valid by it.
const clockSettles = 10 * time.Second

// anyClockSet reports whether the wall clock of any server was not right between two times, or shortly before.
func (j *judge) anyClockSet(from, to time.Duration) bool {
	return slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool { return f.Clock && f.Begin <= to && f.End+clockSettles >= from })
}

// denied reports whether a request was refused for want of a right: it was no overload, no timeout and no conflict.
func denied(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return false
}

func (j *judge) rightsOf(a *history.Access) (lines []string) {
	for _, r := range j.r.Rights {
		if r.Subject == a.Subject {
			lines = append(lines, r.String())
		}
	}
	return append(lines, a.String())
}
