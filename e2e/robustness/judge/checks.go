package judge

import (
	"net/http"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// checks reports the promises that clients found broken.
func (j *judge) checks() {
	lost := j.beforeLoss()
	for _, c := range j.r.Checks {
		switch {
		case c.Return >= lost:
			j.open("promises of what the database may have lost")
		case c.Calm && j.away(touched, c.Server).within(c.Call, c.Return) > 0:
			j.open("promises that hold only while nothing keeps a server from its work")
		case c.Clocked && j.anyClockSet(c.Call, c.Return):
			j.open("promises that hold only while the clocks of servers are right")
		case c.Wrong != "":
			j.judged(c.Property)
			j.violate(c.Property, append([]string{c.String()}, c.Seen...), "%s: %s", c.What, c.Wrong)
		default:
			j.judged(c.Property)
		}
	}
}

// auditVerbs are the verbs of the requests of each kind of operation. Some kinds have two ways to write.
var auditVerbs = map[string][]string{
	history.Create: {"create"}, history.Set: {"patch", "update"}, history.Swap: {"update", "patch"}, history.Apply: {"patch"},
	history.Status: {"patch", "update"}, history.Scale: {"patch", "update"}, history.Delete: {"delete"}, history.Mark: {"delete"},
	history.DeleteCollection: {"deletecollection"}, history.Release: {"patch"}, history.Renew: {"create", "patch", "update"},
	history.Vacate: {"delete"}, history.Bind: {"create"},
}

// Names of audit.k8s.io.
const (
	stageReceived   = "RequestReceived"
	stageComplete   = "ResponseComplete"
	levelBodies     = "RequestResponse"
	auditedUser     = "admin"
	auditedBefore   = time.Second // a fault that ended so long before a request may have kept its log from a line
	auditedAfter    = time.Second // a busy server may be killed so long after an answer, and before the last line of its request
	namespacesKind  = "namespaces"
	reviewedAnswers = "requests that were answered while a fault touched the server"
)

// audits compares the audit logs of the servers with the requests that they answered.
func (j *judge) audits() {
	if len(j.r.Audits) == 0 {
		return // the servers of another program have none
	}
	type place struct{ id, stage string }
	found := map[place]*history.Audited{}
	for _, a := range j.r.Audits {
		at := place{a.ID, a.Stage}
		if first := found[at]; first != nil {
			j.violate("audit", []string{first.String(), a.String()}, "a request is recorded twice")
		}
		found[at] = a
	}
	for _, o := range j.r.Ops {
		if o.Audit == "" || !decided(o.Code) {
			continue
		}
		received, complete := found[place{o.ID, stageReceived}], found[place{o.ID, stageComplete}]
		if received != nil && o.AuditEnd {
			j.violate("audit", append(opLines(o), received.String()), "the audit log has a stage of a request that its policy omits")
			continue
		}
		if received == nil && !o.AuditEnd || complete == nil {
			until := o.Return // the first line comes before the request is handled
			if received != nil || o.AuditEnd {
				until += auditedAfter
			}
			if j.away(touched, o.Server).within(o.Call-auditedBefore, until) > 0 {
				j.open(reviewedAnswers)
				continue
			}
			j.judged("audit")
			j.violate("audit", opLines(o), "a request was answered, and the audit log of its server lacks it")
			continue
		}
		j.judged("audit")
		for _, a := range []*history.Audited{received, complete} {
			if a == nil {
				continue
			}
			if wrong := misrecorded(o, a); wrong != "" {
				j.violate("audit", append(opLines(o), a.String()), "the audit log has another %s of a request", wrong)
				break
			}
		}
	}
}

// decided reports whether an answer shows that a server has handled a request: refusals for overload, and errors, may come before its
// audit begins.
func decided(code int) bool {
	switch code {
	case http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	}
	return code >= 200 && code < 300
}

// misrecorded returns what an event has wrong of an operation; "": nothing.
func misrecorded(o *history.Op, a *history.Audited) string {
	last := a.Stage == stageComplete
	named := last && (o.Outcome == history.OK || a.Key.Name != "") && !o.Prefix && o.Kind != history.DeleteCollection
	bodies := a.Level == levelBodies
	switch {
	case a.Server != o.Server:
		return "server"
	case a.Level != o.Audit:
		return "level"
	case !slices.Contains(auditVerbs[o.Kind], a.Verb):
		return "verb"
	case a.User != auditedUser:
		return "user"
	case a.Key.Resource != o.Key.Resource:
		return "resource"
	case a.Key.Namespace != o.Key.Namespace && o.Key.Resource != namespacesKind:
		return "namespace"
	case named && a.Key.Name != o.Key.Name:
		return "name"
	case last && a.Code != o.Code:
		return "code"
	case (a.Request || a.Response) && !bodies:
		return "level, with a body,"
	case last && bodies && !a.Truncated && o.Got != nil && a.Version != o.Got.Version:
		return "answer"
	case last && bodies && !a.Truncated && !a.Request && o.Outcome == history.OK && (o.Kind == history.Create || o.Kind == history.Swap):
		return "body, none,"
	}
	return ""
}
