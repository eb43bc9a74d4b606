package filters

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/request"
)

// Limits bounds the requests that run at once. Zero means no limit, except for the shares of users.
type Limits struct {
	// Read and Write are the most reading, or writing, requests that run at once.
	Read, Write int
	// ReadShare and WriteShare are the most of them of one user; 0: a quarter.
	ReadShare, WriteShare int
	// Slow is the most requests of one user, of either kind, that wait for their client to send the body or
	// to read the answer, in addition to the running ones.
	Slow int
	// Watches are the most watches, and the most of one user.
	Watches, UserWatches int
	// Sizes has the size of the largest body.
	Sizes budget.Sizes
	// Connects are the most connections to pods, nodes and services and logs of containers, and the most of one user.
	Connects, UserConnects int
}

// bodiesOfUser bounds the bytes of one user's bodies in the server: one of the largest object that can be configured, twice
// its size, or many smaller ones.
const bodiesOfUser = 2 * budget.MostObject

// Seats returns the limits that the classifier of requests needs.
func (l Limits) Seats() flow.Config {
	c := flow.Config{Read: l.Read, Write: l.Write, Users: seats.Limits{
		Bodies: bodiesOfUser, LargeBodies: l.Sizes.Bodies(), Large: budget.DefaultBody, Most: [2]int{l.Read, l.Write},
	}}
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

// InFlight makes requests wait until they may run, and refuses those that may not: by the seats of their priority level, by
// the shares of their users, and long-running ones by their number. A request that waits for its client, for memory or for a turn does
// not run: it returns its seats until it can go on. A watch has seats only while it begins. Requests of an exempt priority level take
// no shares, and system:masters is never refused.
//
// Each connection without credentials counts as a user of its own, so that anonymous
// clients cannot use up the share of others, such as the health checks of a load balancer.
type InFlight struct {
	watches, connects *longRunningLimiter
	// Observe is called with the number of writing, or reading, requests that run. May be nil.
	Observe func(mutating bool, n int)
	// Refused is called for each refusal. May be nil.
	Refused func(mutating bool)
	// Limited is called with the limit by which a request was refused. May be nil.
	Limited func(limit string)
	// Flows classifies requests, and has their seats.
	Flows *flow.Classifier
	// body is the size for which a body without a length counts: no handler reads more.
	body int64
	// Turns counts answers that did not wait in it. May be nil.
	Turns *answers.TurnScheduler
}

// The headers with the flow schema and priority level of a request, as net/http spells them.
const (
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// NewInFlight makes the filter with the limits of long-running requests; flows has those of others.
func NewInFlight(l Limits, flows *flow.Classifier) *InFlight {
	return &InFlight{Flows: flows, body: l.Sizes.Body(), watches: newLongRunningLimiter(l.Watches, l.UserWatches), connects: newLongRunningLimiter(l.Connects, l.UserConnects)}
}

// Filter returns the filter. It adds headers with flow schema and priority level to answers.
func (f *InFlight) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !LongRunning(request.From(r.Context()).Info) {
			f.serve(next, w, r)
			return
		}
		if open := f.acquireLongRunning(w, r); open != nil {
			defer open.scope.OnEnd(open.release)
			next.ServeHTTP(w, r)
		}
	})
}

// classify finds the flow schema and priority level of a request, and sets the headers.
func (f *InFlight) classify(w http.ResponseWriter, s *request.Scope) *flow.Class {
	class := f.Flows.Classify(s.User, s.Info)
	if class != nil {
		h := w.Header()
		h[schemaHeader], h[levelHeader] = class.UIDs()
	}
	return class
}

// userOf names the user to whose share a request counts.
func userOf(s *request.Scope, r *http.Request) string {
	if s.User == nil || s.User.InGroup(authx.GroupUnauthenticated) {
		return "\x00" + r.RemoteAddr
	}
	return s.User.Name
}

func isMaster(s *request.Scope) bool { return s.User != nil && s.User.InGroup(authx.GroupMasters) }

// serve serves a request once it may run, or refuses it.
func (f *InFlight) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	t := f.ask(w, r, f.classify(w, request.From(r.Context())))
	if !t.exempt {
		t.wrapBody(r, f.body)
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
		w, t.scope.Seat = t, requestSeat{t}
	}
	next.ServeHTTP(w, r)
}

// ask makes the request for seats.
func (f *InFlight) ask(w http.ResponseWriter, r *http.Request, class *flow.Class) *activeRequest {
	s := request.From(r.Context())
	t := &activeRequest{ResponseWriter: w, ctx: r.Context(), scope: s, seats: f.Flows.Seats, class: class}
	t.User, t.Master, t.Class = userOf(s, r), isMaster(s), seats.Writing
	switch s.Info.Verb {
	case "get", "list", "watch", "head":
		t.Class = seats.Reading
	}
	if f.Flows.AssignSeats(&t.Request, t.class, s.User, s.Info); t.class != nil {
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

// enter waits for the seats of a request. It refuses a request that gets none, unless an administrator sent it.
func (f *InFlight) enter(w http.ResponseWriter, t *activeRequest) error {
	began := time.Now()
	err := t.seats.Enter(t.ctx, &t.Request)
	t.scope.Took(request.Queue, began)
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
	t.Failed = t.Extra > 0 && recorderOf(t.ResponseWriter).Code >= http.StatusBadRequest // watchers see no event of it
	t.seats.Leave(&t.Request)
	if t.class != nil {
		t.class.Left(t.Begins, f.Flows.Now()-t.began)
	}
	if t.exempt || t.Begins {
		return
	}
	f.observe(t.Class)
	if !t.scope.Long {
		f.Turns.RecordShort()
	}
}

func (f *InFlight) observe(class seats.Class) {
	if f.Observe != nil {
		f.Observe(class == seats.Writing, f.Flows.Seats.Runs(class))
	}
}

// limitOf returns the limit by which a request was refused, as the metric names it.
func limitOf(err error) string {
	var why seats.Refusal
	errors.As(err, &why)
	switch why {
	case seats.Share, seats.Slow, seats.Bodies, seats.Large:
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
	limitLarge    = string(seats.Large)
	limitWatches  = "watches"
	limitConnects = "connects"
)

// refusals are the messages to clients.
var refusals = map[string]string{
	limitServer:   "Too many requests, please try again later.",
	limitShare:    "Too many requests of this user at once, please try again later.",
	limitSlow:     "Too many requests of this user wait for their client to send or to take something, please try again later.",
	limitBodies:   "Too many bytes in the bodies of this user's requests (" + strconv.Itoa(bodiesOfUser) + " at once), please try again later.",
	limitLarge:    "Too many bytes in the large bodies of all requests at once, please try again later.",
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

// acquireLongRunning counts a long-running request for its user, or refuses it and returns nil. A watch also has seats until it
// has begun.
func (f *InFlight) acquireLongRunning(w http.ResponseWriter, r *http.Request) *openRequest {
	s := request.From(r.Context())
	of, name, watch := f.connects, limitConnects, s.Info.Verb == "watch"
	if watch {
		of, name = f.watches, limitWatches
	}
	h := of.acquire(userOf(s, r), isMaster(s))
	if h == nil {
		if watch {
			f.classify(w, s)
		}
		f.refuse(w, s, name, false)
		return nil
	}
	if watch && !f.beginWatch(w, r) {
		h.release()
		return nil
	}
	return &openRequest{h, s}
}

// openRequest is a long-running request that was accepted.
type openRequest struct {
	counted *longRunningRequest
	scope   *request.Scope
}

// release releases the request at its end.
func (o *openRequest) release() {
	o.scope.Begun()
	o.counted.release()
}

// beginWatch waits for the seats of a watch, which its scope returns once it has begun, or refuses it. Without classification
// it needs none.
func (f *InFlight) beginWatch(w http.ResponseWriter, r *http.Request) bool {
	if f.Flows.Plain() {
		return true
	}
	t := f.ask(nil, r, f.classify(w, request.From(r.Context())))
	t.Begins = true
	if err := f.enter(w, t); err != nil {
		return t.Master
	}
	t.scope.Seat = watchSeat{requestSeat{t}, f}
	return true
}

// requestSeat is the request.Seat of a request, which keeps it to its end.
type requestSeat struct{ request *activeRequest }

func (s requestSeat) Sending()    { s.request.seats.Sending(&s.request.Request) }
func (s requestSeat) Sent() error { return s.request.sent(nil) }
func (s requestSeat) Leave()      {}

// watchSeat is the request.Seat of a watch.
type watchSeat struct {
	requestSeat
	filter *InFlight
}

func (s watchSeat) Leave() { s.filter.leave(s.request) }
