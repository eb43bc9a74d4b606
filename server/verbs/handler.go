// Package verbs serves requests for resources, one file a verb.
//
//	handler.go       the handler and its parts
//	route.go         from a path and a method to a resource and a verb
//	call.go          a request after routing, and its write
//	body.go          bodies: read, weighed, decoded
//	options.go       the parameters of writes
//	get.go list.go (with the parameters that watches share) watch.go create.go update.go patch.go delete.go deletecollection.go scale.go
//
// A verb reads and checks the request, calls package objects to read, package writes to write or package watches to watch, and
// package answers to send the result. It returns an error only if nothing has been sent; package status makes the Status.
package verbs

import (
	"errors"
	"net/http"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/server/writes"
)

// Handler serves all resources of a catalogue. Its fields are set once, before
// the first request. Requests carry a request.Scope in their context.
type Handler struct {
	Catalogue *kinds.Catalogue
	// Follow updates the catalogue from the cache; nil: it never changes.
	Follow func()
	// Objects reads stored objects.
	Objects *objects.Store
	// Answers writes answers, and has the served forms.
	Answers *answers.Answers

	// Writes changes stored objects.
	Writes *writes.Writer
	// Watches serves watches.
	Watches *watches.Server

	Feature func(string) bool  // whether a feature gate is on; nil: none is
	Special map[string]Special // by "pods/binding", "tokenreviews.authentication.k8s.io"
	MaxBody int64              // bytes of a request body; 0: budget.DefaultBody
	Gate    *fair.Gate         // for heavy bodies; nil: no bound
}

// Special serves requests that are not for stored objects: virtual resources, by "plural.group", and subresources of their own
// kind, by "plural.group/name". The handler has checked that the catalogue allows the method.
type Special func(h *Handler, c *Call) error

// ServeHTTP routes a request for a resource to its verb and writes the answer.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scope := request.From(r.Context())
	c := &Call{Request: answers.Request{W: w, R: r, Scope: scope}, Info: scope.Info, User: scope.User}
	defer c.End()
	if err := h.serve(c); errors.Is(err, errNoGroup) {
		http.NotFound(c.W, c.R)
	} else if err != nil {
		h.Answers.Fail(&c.Request, err)
	}
}

func (h *Handler) serve(c *Call) error {
	verb, err := h.verb(c)
	if err != nil {
		return err
	}
	ctx, span := tracing.Start(c.R.Context(), spanNames[verb])
	if !span.On() {
		return h.perform(c, verb)
	}
	defer c.Scope.OnEnd(span.End)
	span.Text("resource", c.Resource.GroupResource().String())
	if c.Sub != nil {
		span.Text("subresource", c.Sub.Name)
	}
	c.R = c.R.WithContext(ctx)
	err = h.perform(c, verb)
	if err != nil {
		span.Fail()
	}
	return err
}

// spanNames are the names of the spans of verbs.
var spanNames = map[string]string{
	"get": "Get", "list": "List", "watch": "Watch", "create": "Create", "update": "Update", "patch": "Patch", "delete": "Delete", "deletecollection": "DeleteCollection",
}

// perform calls the verb.
func (h *Handler) perform(c *Call, verb string) error {
	if verb == "watch" && c.Sub == nil && !has(c.Resource, "watch") {
		return h.refuseWatch(c)
	}
	if c.Resource.Storage == nil || c.Sub != nil && c.Sub.Update == nil && c.Sub.Scale == nil {
		key := c.Resource.GroupResource().String()
		if c.Sub != nil {
			key += "/" + c.Sub.Name
		}
		if f := h.Special[key]; f != nil {
			return f(h, c)
		}
		return status.NotAllowed()
	}
	if verb == "create" || verb == "update" || verb == "patch" {
		if err := c.Resource.Ready(c.R.Context(), c.Request.User()); err != nil {
			return err
		}
	}
	if c.Sub != nil && c.Sub.Scale != nil {
		return h.scale(c, verb)
	}
	switch verb {
	case "get":
		return h.get(c)
	case "list":
		return h.list(c)
	case "watch":
		return h.watch(c)
	case "create":
		return h.create(c)
	case "update":
		return h.update(c)
	case "patch":
		return h.patch(c)
	case "delete":
		return h.delete(c)
	case "deletecollection":
		return h.deleteCollection(c)
	}
	return status.NotAllowed()
}

// Enabled reports whether a feature gate is on.
func (h *Handler) Enabled(gate string) bool { return h.Feature != nil && h.Feature(gate) }
