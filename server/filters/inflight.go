package filters

import (
	"net/http"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/request"
)

// Limits are what requests may take at once. Zero is no limit, but for the shares of
// users.
type Limits struct {
	// Read and Write are how many requests that read, or write, run at once.
	Read, Write int
	// ReadShare and WriteShare are how many of them one user has; 0: a quarter.
	ReadShare, WriteShare int
	// Slow is how many requests of one user may wait for their client, to send its body
	// or to take the answer, besides those that run; of either kind.
	Slow int
	// Watches are how many watches there may be, and how many of one user.
	Watches, UserWatches int
	// Connects are how many connections to pods, nodes and services, and followed logs,
	// there may be, and how many of one user.
	Connects, UserConnects int
}

// bodiesOfUser is how many bytes of bodies one user may have in the server.
const bodiesOfUser = 64 << 20

// largestBody is what a body without a length counts for: no handler reads more.
const largestBody = 3 << 20

// InFlight bounds how many requests run at once, those that write and those that
// read apart, for all together and for each user. A request that waits for its client
// does not run: it gives its place back until the client has sent or taken what it
// is about. Requests of an exempt priority level do not count, and system:masters is
// never refused. Those that last have limits of their own, on their number.
//
// Who has not logged in counts as a user for each connection: so strangers do not use
// up what other strangers, like the health checks of a load balancer, need.
type InFlight struct {
	read, write       *slots // nil: no limit
	watches, connects *lasting
	// Observe is told how many requests that write, or read, run. May be nil.
	Observe func(mutating bool, n int)
	// Refused is told of each refusal. May be nil.
	Refused func(mutating bool)
	// Limited is told which limit a request was refused by. May be nil.
	Limited func(limit string)
	// Flows says where requests belong.
	Flows *flow.Classifier
}

// The headers that say where a request belongs, as net/http spells them.
const (
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// NewInFlight makes the filter.
func NewInFlight(l Limits, flows *flow.Classifier) *InFlight {
	f := &InFlight{Flows: flows, watches: newLasting(l.Watches, l.UserWatches), connects: newLasting(l.Connects, l.UserConnects)}
	started := time.Now()
	now := func() time.Duration { return time.Since(started) + 1 }
	if l.Read > 0 {
		f.read = newSlots(l.Read, l.ReadShare, l.Slow, now)
	}
	if l.Write > 0 {
		f.write = newSlots(l.Write, l.WriteShare, l.Slow, now)
	}
	return f
}

// Filter is the filter. Answers carry where their requests belong.
func (f *InFlight) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !LongRunning(request.From(r.Context()).Info) {
			f.count(next, w, r)
			return
		}
		if held := f.last(w, r); held != nil {
			defer held.end()
			next.ServeHTTP(w, r)
		}
	})
}

// last notes where a long-running request belongs, if it is a watch, and counts it
// among those of its user. What watches cost besides is their beginning. It is nil if
// the request was refused.
func (f *InFlight) last(w http.ResponseWriter, r *http.Request) *held {
	s := request.From(r.Context())
	of, name := f.connects, limitConnects
	var class *flow.Class
	if s.Info.Verb == "watch" {
		of, name = f.watches, limitWatches
		class = f.classify(w, s)
	}
	h := of.begin(userOf(s, r), masters(s))
	if h == nil {
		f.refuse(w, s, class, name, false)
		return nil
	}
	if class != nil {
		class.Run()()
	}
	return h
}

// classify finds where a request belongs, and tells the client.
func (f *InFlight) classify(w http.ResponseWriter, s *request.Scope) *flow.Class {
	class := f.Flows.Classify(s.User, s.Info)
	h := w.Header()
	h[schemaHeader], h[levelHeader] = class.UIDs()
	return class
}

// userOf is whose share a request takes from.
func userOf(s *request.Scope, r *http.Request) string {
	if s.User == nil || s.User.InGroup(authx.GroupUnauthenticated) {
		return "\x00" + r.RemoteAddr
	}
	return s.User.Name
}

func masters(s *request.Scope) bool { return s.User != nil && s.User.InGroup(authx.GroupMasters) }

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
	t := &ticket{ResponseWriter: w, ctx: r.Context(), slots: slots, name: userOf(s, r), master: masters(s)}
	t.carry(r)
	if limit := slots.enter(t); limit == "" {
		defer f.leave(t, mutating)
		f.observe(mutating, slots)
		w = t
	} else if !t.master {
		f.refuse(w, s, class, limit, mutating)
		return
	}
	defer class.Run()()
	next.ServeHTTP(w, r)
}

func (f *InFlight) leave(t *ticket, mutating bool) {
	t.slots.leave(t)
	f.observe(mutating, t.slots)
}

func (f *InFlight) observe(mutating bool, s *slots) {
	if f.Observe != nil {
		f.Observe(mutating, int(s.runs.Load()))
	}
}

// The limits by which requests are refused, as the metric names them.
const (
	limitServer   = "requests"
	limitShare    = "requests-of-user"
	limitSlow     = "slow-requests-of-user"
	limitBodies   = "bodies-of-user"
	limitWatches  = "watches"
	limitConnects = "connects"
)

// sayings are what clients are told.
var sayings = map[string]string{
	limitServer:   "Too many requests, please try again later.",
	limitShare:    "Too many requests of this user at once, please try again later.",
	limitSlow:     "Too many requests of this user wait for their client to send or to take something, please try again later.",
	limitBodies:   "Too many bytes in the bodies of this user's requests (" + strconv.Itoa(bodiesOfUser) + " at once), please try again later.",
	limitWatches:  "Too many watches at once, of this user or in all, please try again later.",
	limitConnects: "Too many connections to pods, nodes and services at once, of this user or in all, please try again later.",
}

// refuse answers a request that is one too many.
func (f *InFlight) refuse(w http.ResponseWriter, s *request.Scope, class *flow.Class, limit string, mutating bool) {
	if class != nil {
		class.Refuse()
	}
	s.Terminated = http.StatusTooManyRequests
	if f.Refused != nil {
		f.Refused(mutating)
	}
	if f.Limited != nil {
		f.Limited(limit)
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, sayings[limit], http.StatusTooManyRequests)
}
