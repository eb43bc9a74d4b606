package verbs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
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

	held int64 // what the call's body may take of the handler's gate, until Release
}

// form is the negotiated form of an answer.
type form = codecs.Form

// place is where an object of the request's namespace is, seen as the request sees it.
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

// Permit is what the request is allowed.
func (c *Call) Permit() permits.Permit { return c.Scope.Permit }

// Write is the write that a request asks for, with its options, the field manager that
// it names, and its dryRun parameter.
func (c *Call) Write(options runtime.Object, manager string, dryRun []string) *writes.Request {
	return &writes.Request{
		Resource: c.Resource, Sub: c.Sub, Namespace: c.Info.Namespace, Name: c.Info.Name,
		Verb: c.Info.Verb, Path: c.Info.Path, User: c.User, Permit: c.Permit(),
		Manager: managerOf(c, manager), Options: options, DryRun: len(dryRun) > 0,
		Warn: c.Scope.Warn, Annotate: c.Scope.Annotate,
		Recorded: c.Scope.Audit != nil && c.Scope.Audit.WantsRequest(),
	}
}

// Manager is the field manager of a request that names one, or none.
func (c *Call) Manager(asked string) string { return managerOf(c, asked) }

// MatchNamespace checks that an object sent with c is of the namespace of its path, and
// fills the namespace in.
func (c *Call) MatchNamespace(obj metav1.Object) error {
	return writes.MatchNamespace(c.Write(nil, "", nil), obj)
}

// deleting is the write of a delete.
func (c *Call) deleting(options *metav1.DeleteOptions) *writes.Request {
	return c.Write(options, "", options.DryRun)
}

// On is the write of another object while c is answered, such as the budget that an
// eviction draws on, by a field manager of the server. It has the permit of c, which must
// cover what is done then. sub is "" for the object itself.
func (c *Call) On(r *kinds.Resource, sub, namespace, name, manager string) *writes.Request {
	req := c.Write(nil, manager, nil)
	req.Resource, req.Sub, req.Namespace, req.Name = r, r.Sub(sub), namespace, name
	// The client is told nothing of it.
	req.Warn, req.Annotate, req.Recorded = func(string) {}, func(string, string) {}, false
	return req
}

// weigh lets a body in that is going to be decoded into an obj: one that is too heavy is
// refused, and a heavy one waits until there is room for it beside the others. The room
// is the call's until it is answered: a client may take its time to read that.
func (h *Handler) weigh(c *Call, from codecs.Codec, body []byte, obj runtime.Object) error {
	weight, err := codecs.Weigh(from, body, obj)
	if err != nil {
		return err
	}
	return h.hold(c, h.labour(c, body, weight))
}

// labour is the weight of a body for those that weigh little and make much work: a definition of
// 160 KB keeps a processor for 30 ms, and eight clients that install some keep all of them. A
// body may be short because it changes, or tells the status of, what is large: that is checked and
// written all the same.
func (h *Handler) labour(c *Call, body []byte, weight int64) int64 {
	r := c.Resource
	if r == nil || r.Storage == nil || r.Storage.Laborious == 0 || max(len(body), h.standing(c)) < r.Storage.Laborious {
		return weight
	}
	return max(weight, budget.Small)
}

// standing is how many bytes what a request names has, as far as memory knows and the request may
// see it: who may not is refused soon.
func (h *Handler) standing(c *Call) int {
	if h.Objects == nil || c.Info == nil || c.Info.Name == "" {
		return 0
	}
	it, err := h.Objects.Get(c.Permit(), c.place(c.Info.Name))
	if it == nil || err != nil {
		return 0
	}
	return it.Size()
}

// hold lets a call have so much of the gate's room.
func (h *Handler) hold(c *Call, weight int64) error {
	if weight <= c.held {
		return nil
	}
	c.Done() // never wait for room while holding some: others might do the same
	c.held = 0
	leave, err := h.Gate.Enter(c.R.Context(), visitor(c), weight)
	if err == nil {
		c.held, c.Release = weight, leave
	}
	return err
}

// visitor is whose turn a call takes at the gate.
func visitor(c *Call) string {
	if c.User == nil {
		return ""
	}
	return c.User.Name
}
