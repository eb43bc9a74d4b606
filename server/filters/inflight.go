package filters

import (
	"net/http"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/request"
)

// InFlight bounds how many requests run at once, those that write and those that
// read apart. Long-running requests and those of an exempt priority level do not
// count, and system:masters is never refused. A limit of 0 is no limit.
type InFlight struct {
	read, write chan struct{}
	// Observe is told how many requests that write, or read, run. May be nil.
	Observe func(mutating bool, n int)
	// Refused is told of each refusal. May be nil.
	Refused func(mutating bool)
	// Flows says where requests belong.
	Flows *flow.Classifier
}

// The headers that say where a request belongs, as net/http spells them.
const (
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// NewInFlight makes the limits of --max-requests-inflight and
// --max-mutating-requests-inflight.
func NewInFlight(read, write int, flows *flow.Classifier) *InFlight {
	f := &InFlight{Flows: flows}
	if read > 0 {
		f.read = make(chan struct{}, read)
	}
	if write > 0 {
		f.write = make(chan struct{}, write)
	}
	return f
}

// Filter is the filter. Answers carry where their requests belong.
func (f *InFlight) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if LongRunning(request.From(r.Context()).Info) {
			f.note(w, r)
			next.ServeHTTP(w, r)
			return
		}
		f.count(next, w, r)
	})
}

// note says where a long-running request belongs, if it is a watch. What watches
// cost is their beginning.
func (f *InFlight) note(w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	if s.Info.Verb == "watch" {
		f.classify(w, s).Run()()
	}
}

// classify finds where a request belongs, and tells the client.
func (f *InFlight) classify(w http.ResponseWriter, s *request.Scope) *flow.Class {
	class := f.Flows.Classify(s.User, s.Info)
	h := w.Header()
	h[schemaHeader], h[levelHeader] = class.UIDs()
	return class
}

// count serves a request that takes one of the places, or refuses it.
func (f *InFlight) count(next http.Handler, w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	class := f.classify(w, s)
	slots, mutating := f.write, true
	switch s.Info.Verb {
	case "get", "list", "watch", "head":
		slots, mutating = f.read, false
	}
	if slots == nil || class.Exempt {
		defer class.Run()()
		next.ServeHTTP(w, r)
		return
	}
	select {
	case slots <- struct{}{}:
		f.observe(mutating, len(slots))
		defer func() {
			<-slots
			f.observe(mutating, len(slots))
		}()
		defer class.Run()()
		next.ServeHTTP(w, r)
	default:
		f.refuse(w, r, next, class, mutating)
	}
}

func (f *InFlight) observe(mutating bool, n int) {
	if f.Observe != nil {
		f.Observe(mutating, n)
	}
}

// refuse answers a request that is one too many, unless it is an administrator's.
func (f *InFlight) refuse(w http.ResponseWriter, r *http.Request, next http.Handler, class *flow.Class, mutating bool) {
	s := request.From(r.Context())
	if s.User != nil && s.User.InGroup(authx.GroupMasters) {
		defer class.Run()()
		next.ServeHTTP(w, r)
		return
	}
	class.Refuse()
	s.Terminated = http.StatusTooManyRequests
	if f.Refused != nil {
		f.Refused(mutating)
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}
