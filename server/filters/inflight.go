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

// InFlight bounds how many requests run at once, of all users and of each. Reading and
// writing requests have limits of their own, and so have long-running ones, by their
// number. A request that waits for its client does not count as running: it gives its
// place back until the client has sent its body or read the answer. Requests of an exempt
// priority level are not counted, and system:masters is never refused.
//
// Each connection without credentials counts as a user of its own, so that anonymous
// clients cannot use up the share of others, such as the health checks of a load balancer.
type InFlight struct {
	read, write       *limiter // nil: no limit
	watches, connects *longRunningLimiter
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
	f := &InFlight{Flows: flows, watches: newLongRunningLimiter(l.Watches, l.UserWatches), connects: newLongRunningLimiter(l.Connects, l.UserConnects)}
	started := time.Now()
	now := func() time.Duration { return time.Since(started) + 1 }
	if l.Read > 0 {
		f.read = newLimiter(l.Read, l.ReadShare, l.Slow, now)
	}
	if l.Write > 0 {
		f.write = newLimiter(l.Write, l.WriteShare, l.Slow, now)
	}
	return f
}

// Filter is the filter. Answers carry where their requests belong.
func (f *InFlight) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !LongRunning(request.From(r.Context()).Info) {
			f.serve(next, w, r)
			return
		}
		if open := f.acquireLongRunning(w, r); open != nil {
			defer open.release()
			next.ServeHTTP(w, r)
		}
	})
}

// acquireLongRunning counts a long-running request for its user, or refuses it and returns
// nil. A watch is classified too; for its priority level it counts only as it begins.
func (f *InFlight) acquireLongRunning(w http.ResponseWriter, r *http.Request) *longRunningRequest {
	s := request.From(r.Context())
	of, name := f.connects, limitConnects
	var class *flow.Class
	if s.Info.Verb == "watch" {
		of, name = f.watches, limitWatches
		class = f.classify(w, s)
	}
	h := of.acquire(userOf(s, r), masters(s))
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

// userOf names the user whose share a request counts for.
func userOf(s *request.Scope, r *http.Request) string {
	if s.User == nil || s.User.InGroup(authx.GroupUnauthenticated) {
		return "\x00" + r.RemoteAddr
	}
	return s.User.Name
}

func masters(s *request.Scope) bool { return s.User != nil && s.User.InGroup(authx.GroupMasters) }

// serve serves a request within the limits, or refuses it.
func (f *InFlight) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	class := f.classify(w, s)
	limiter, mutating := f.write, true
	switch s.Info.Verb {
	case "get", "list", "watch", "head":
		limiter, mutating = f.read, false
	}
	if limiter == nil || class.Exempt {
		defer class.Run()()
		next.ServeHTTP(w, r)
		return
	}
	t := &activeRequest{ResponseWriter: w, ctx: r.Context(), limiter: limiter, name: userOf(s, r), master: masters(s)}
	t.wrapBody(r)
	if limit := limiter.acquire(t); limit == "" {
		defer f.release(t, mutating)
		f.observe(mutating, limiter)
		w = t
	} else if !t.master {
		f.refuse(w, s, class, limit, mutating)
		return
	}
	defer class.Run()()
	next.ServeHTTP(w, r)
}

func (f *InFlight) release(t *activeRequest, mutating bool) {
	t.limiter.release(t)
	f.observe(mutating, t.limiter)
}

func (f *InFlight) observe(mutating bool, s *limiter) {
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

// refusals are what clients are told.
var refusals = map[string]string{
	limitServer:   "Too many requests, please try again later.",
	limitShare:    "Too many requests of this user at once, please try again later.",
	limitSlow:     "Too many requests of this user wait for their client to send or to take something, please try again later.",
	limitBodies:   "Too many bytes in the bodies of this user's requests (" + strconv.Itoa(bodiesOfUser) + " at once), please try again later.",
	limitWatches:  "Too many watches at once, of this user or in all, please try again later.",
	limitConnects: "Too many connections to pods, nodes and services at once, of this user or in all, please try again later.",
}

// refuse answers a request that exceeds a limit.
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
	http.Error(w, refusals[limit], http.StatusTooManyRequests)
}
