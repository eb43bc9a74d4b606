package filters

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
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
	// Connects are how many connections to pods, nodes and services, and logs of containers,
	// there may be, and how many of one user.
	Connects, UserConnects int
}

// bodiesOfUser is how many bytes of bodies one user may have in the server.
const bodiesOfUser = 64 << 20

// largestBody is what a body without a length counts for: no handler reads more.
const largestBody = 3 << 20

// Seats is what a classifier of requests needs to know of the limits.
func (l Limits) Seats() flow.Config {
	c := flow.Config{Read: l.Read, Write: l.Write, Users: seats.Limits{Bodies: bodiesOfUser, Most: [2]int{l.Read, l.Write}}}
	for class, limit := range [2]struct{ all, share int }{{l.Read, l.ReadShare}, {l.Write, l.WriteShare}} {
		if limit.all <= 0 {
			continue
		}
		share := limit.share
		if share <= 0 {
			share = limit.all / 4
		}
		share = min(max(share, 1), limit.all)
		if c.Users.Share[class] = share; l.Slow > 0 {
			c.Users.Open[class] = share + l.Slow
		}
	}
	return c
}

// InFlight has requests run when they may, and refuses those that may not: by the seats of
// their priority level, by the shares of their users, and long-running ones by their
// number. A request that waits for its client does not run: it gives its seats back until
// the client has sent its body or read the answer. A watch has seats only as it begins.
// Requests of an exempt priority level take no shares, and system:masters is never refused.
//
// Each connection without credentials counts as a user of its own, so that anonymous
// clients cannot use up the share of others, such as the health checks of a load balancer.
type InFlight struct {
	watches, connects *longRunningLimiter
	// Observe is told how many requests that write, or read, run. May be nil.
	Observe func(mutating bool, n int)
	// Refused is told of each refusal. May be nil.
	Refused func(mutating bool)
	// Limited is told which limit a request was refused by. May be nil.
	Limited func(limit string)
	// Flows says where requests belong, and has their seats.
	Flows *flow.Classifier
	// Line is told of answers that did not wait in it. May be nil.
	Line *answers.Line
}

// The headers that say where a request belongs, as net/http spells them.
const (
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// NewInFlight makes the filter, of limits of long-running requests; those of others are
// what flows was made with.
func NewInFlight(l Limits, flows *flow.Classifier) *InFlight {
	return &InFlight{Flows: flows, watches: newLongRunningLimiter(l.Watches, l.UserWatches), connects: newLongRunningLimiter(l.Connects, l.UserConnects)}
}

// Filter is the filter. Answers carry where their requests belong.
func (f *InFlight) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !LongRunning(request.From(r.Context()).Info) {
			f.serve(next, w, r)
			return
		}
		if open := f.acquireLongRunning(w, r); open != nil {
			defer open.returned()
			next.ServeHTTP(w, r)
		}
	})
}

// classify finds where a request belongs, and tells the client.
func (f *InFlight) classify(w http.ResponseWriter, s *request.Scope) *flow.Class {
	class := f.Flows.Classify(s.User, s.Info)
	if class != nil {
		h := w.Header()
		h[schemaHeader], h[levelHeader] = class.UIDs()
	}
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

// serve serves a request when it may run, or refuses it.
func (f *InFlight) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	t := f.ask(w, r, f.classify(w, request.From(r.Context())))
	if !t.exempt {
		t.wrapBody(r)
	}
	if err := f.enter(w, t); err != nil {
		if !t.Master {
			return
		}
		next.ServeHTTP(w, r)
		return
	}
	defer f.leave(t)
	if !t.exempt {
		f.observe(t.Class)
		w = t
	}
	next.ServeHTTP(w, r)
}

// ask makes what a request wants seats with.
func (f *InFlight) ask(w http.ResponseWriter, r *http.Request, class *flow.Class) *activeRequest {
	s := request.From(r.Context())
	t := &activeRequest{ResponseWriter: w, ctx: r.Context(), scope: s, seats: f.Flows.Seats, class: class}
	t.User, t.Master, t.Class = userOf(s, r), masters(s), seats.Writing
	switch s.Info.Verb {
	case "get", "list", "watch", "head":
		t.Class = seats.Reading
	}
	if f.Flows.Ask(&t.Request, t.class, s.User, s.Info); t.class != nil {
		t.about = flow.About{Class: t.class, Info: s.Info}
		if s.User != nil {
			t.about.User = s.User.Name
		}
		t.Details = &t.about
	}
	t.exempt = t.Level.Exempt()
	deadline, _ := t.ctx.Deadline()
	t.Patience = f.Flows.Patience(s.Received, deadline)
	t.began = f.Flows.Now()
	return t
}

// enter has a request wait for its seats. One that gets none is refused, but for those of
// administrators.
func (f *InFlight) enter(w http.ResponseWriter, t *activeRequest) error {
	err := t.seats.Enter(t.ctx, &t.Request)
	if t.class != nil {
		t.class.Entered(&t.Request, err)
		if _, waited := t.Waited(); waited {
			t.began = f.Flows.Now()
		}
	}
	if err != nil && !t.Master {
		f.refuse(w, t.scope, limitOf(err), t.Class == seats.Writing)
	}
	return err
}

// leave ends a request.
func (f *InFlight) leave(t *activeRequest) {
	t.Failed = t.Extra > 0 && recorderOf(t.ResponseWriter).Code >= http.StatusBadRequest // no watcher is told of it
	t.seats.Leave(&t.Request)
	if t.class != nil {
		t.class.Left(t.Begins, f.Flows.Now()-t.began)
	}
	if t.exempt || t.Begins {
		return
	}
	f.observe(t.Class)
	if !t.scope.Long {
		f.Line.Short()
	}
}

func (f *InFlight) observe(class seats.Class) {
	if f.Observe != nil {
		f.Observe(class == seats.Writing, f.Flows.Seats.Runs(class))
	}
}

// limitOf is the limit by which a request was refused, as the metric names it.
func limitOf(err error) string {
	var why seats.Refusal
	errors.As(err, &why)
	switch why {
	case seats.Share, seats.Slow, seats.Bodies:
		return string(why)
	}
	return limitServer
}

// The limits by which requests are refused, as the metric names them.
const (
	limitServer   = "requests"
	limitShare    = string(seats.Share)
	limitSlow     = string(seats.Slow)
	limitBodies   = string(seats.Bodies)
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
func (f *InFlight) refuse(w http.ResponseWriter, s *request.Scope, limit string, mutating bool) {
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
