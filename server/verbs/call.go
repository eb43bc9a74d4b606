package verbs

import (
	goruntime "runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/writes"
)

// Call is one request for a resource, after routing.
type Call struct {
	answers.Request
	Info *request.Info
	User *authx.Identity

	held int64 // the call's room at the handler's gate, until Release
}

// place returns the place of an object in the request's namespace, in the version of the request.
func (c *Call) place(name string) objects.Place {
	p := objects.Place{Resource: c.Resource, Name: name}
	if c.Sub != nil {
		p.Sub = c.Sub.Name
	}
	if c.Resource.Namespaced {
		p.Namespace = c.Info.Namespace
	}
	return p
}

// Permit returns the permit of the request.
func (c *Call) Permit() permits.Permit { return c.Scope.Permit }

// Write returns the write of a request, with its options, its field manager and its dryRun parameter.
func (c *Call) Write(options runtime.Object, manager string, dryRun []string) *writes.Request {
	return &writes.Request{
		Resource: c.Resource, Sub: c.Sub, Namespace: c.Info.Namespace, Name: c.Info.Name,
		Verb: c.Info.Verb, Path: c.Info.Path, User: c.User, Permit: c.Permit(),
		Manager: c.Manager(manager), Options: options, DryRun: len(dryRun) > 0,
		Warn: c.Scope.Warn, Annotate: c.Scope.Annotate,
		Recorded: c.Scope.Audit != nil && c.Scope.Audit.WantsRequest(),
	}
}

// MatchNamespace checks that an object of the request is in the namespace of the path, and sets its namespace.
func (c *Call) MatchNamespace(obj metav1.Object) error {
	return writes.MatchNamespace(c.Write(nil, "", nil), obj)
}

// On returns the write of another object for the same request, such as the budget of an eviction, by a field manager of the server.
// It has the permit of c, which must cover the write. sub is "" for the object itself.
func (c *Call) On(r *kinds.Resource, sub, namespace, name, manager string) *writes.Request {
	req := c.Write(nil, manager, nil)
	req.Resource, req.Sub, req.Namespace, req.Name = r, r.Sub(sub), namespace, name
	// Its warnings and annotations are not for the client.
	req.Warn, req.Annotate, req.Recorded = func(string) {}, func(string, string) {}, false
	return req
}

// weigh admits a body that is about to be decoded into an obj. It refuses a body that is too heavy; a heavy
// one waits until the gate has room for it. The call keeps the room until the client has read the answer.
func (h *Handler) weigh(c *Call, from codecs.Codec, body []byte, obj runtime.Object) error {
	weight, err := codecs.Weigh(from, body, obj)
	if err != nil {
		return err
	}
	return h.hold(c, h.admissionWeight(c, body, weight))
}

// admissionWeight returns the weight in the gate of a body of the given weight. It counts more for a kind
// whose objects take much processor time for their size: a definition of 160 KB takes 30 ms, so eight
// clients that install definitions would occupy every processor. A short body may change a large object,
// all of which is validated and written.
func (h *Handler) admissionWeight(c *Call, body []byte, weight int64) int64 {
	live := h.liveSize(c)
	weight += budget.Copies(len(body)) + budget.Decoded(live)
	r := c.Resource
	if r == nil || r.Storage == nil || r.Storage.CostlyFrom == 0 || max(len(body), live) < r.Storage.CostlyFrom {
		return weight
	}
	return max(weight, budget.Small)
}

// liveSize returns the size in bytes of the live object that a request names; 0 where there is none, or where
// the permit of the request does not cover reading it.
func (h *Handler) liveSize(c *Call) int {
	if h.Objects == nil || c.Info == nil || c.Info.Name == "" {
		return 0
	}
	it, err := h.Objects.Get(c.Permit(), c.place(c.Info.Name))
	if it == nil || err != nil {
		return 0
	}
	return it.Size()
}

// heavyTurn is for how long a call that has passed the gate counts as running. A call that takes longer mostly waits, for a
// webhook for example.
const heavyTurn = 2 * time.Second

// NewGate makes the gate for heavy bodies. It admits as many as there is room for, and at most half as many at once as there
// are processors, which leaves the other half to light ones. Users take turns, so a user waits for one body of another and not
// for all.
func NewGate(sizes budget.Sizes) *fair.Gate {
	return fair.NewGate(fair.Limits{Places: max(1, goruntime.GOMAXPROCS(0)/2), Turn: heavyTurn, Weight: sizes.AllUsers(), KeyWeight: sizes.Share(), Free: budget.Small})
}

// hold waits for its turn, without a seat, and reserves room at the gate for a call, in place of the room that the call has.
func (h *Handler) hold(c *Call, weight int64) error {
	if weight <= c.held {
		return nil
	}
	c.Done() // a call that waits for room while it holds some could deadlock with another that does so
	c.held = 0
	return c.Request.Scope.Waiting(func() error {
		place, err := h.Gate.Enter(c.R.Context(), c.Request.User(), weight)
		if err == nil {
			c.held, c.Release = weight, place.Leave
		}
		return err
	})
}

// holdLive is hold for a decoded object of size bytes. Small objects need no room.
func (h *Handler) holdLive(c *Call, size int) error { return h.hold(c, budget.Decoded(size)) }
