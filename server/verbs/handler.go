// Package verbs holds what a request for a resource does: one file a verb.
//
// A verb is a method from a Call to an error; what went well has been written,
// errors become a Status in package status alone.
package verbs

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/server/writes"
)

// Handler serves all resources of a catalogue. Its fields are set once, before
// the first request. Requests carry a request.Scope in their context.
type Handler struct {
	Catalogue *kinds.Catalogue
	// Follow brings the catalogue up to date with what the cache knows; nil: it never changes.
	Follow func()
	// Objects is all that verbs see of what is stored.
	Objects *objects.Store
	// Answers writes what is read, and says what is served.
	Answers *answers.Answers

	// Writes changes what is stored.
	Writes *writes.Writer
	// Watches serves watches.
	Watches *watches.Server

	Feature func(string) bool  // whether a feature gate is on; nil: none
	Special map[string]Special // "pods/binding", "tokenreviews.authentication.k8s.io"
	MaxBody int64              // bytes of a request body; 0: 3 MiB
	Gate    *budget.Gate       // lets heavy bodies in; nil: it is open
}

// Special serves what is no ordinary object: virtual resources, known by
// "plural.group", and subresources of their own kind, by "plural.group/name".
// Whatever the method, the catalogue has been asked whether it is allowed.
type Special func(h *Handler, c *Call) error

var (
	// errNoGroup: nothing of the kind is served, not even its group; or whoever serves
	// custom resources does not speak of it.
	errNoGroup = errors.New("unknown API group")
	// errNoPlace: the path does not have the shape of its resource.
	errNoPlace = errors.New("no such path")
)

// ServeHTTP routes a request for a resource to its verb and writes the answer.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scope := request.From(r.Context())
	c := &Call{Request: answers.Request{W: w, R: r, Scope: scope}, Info: scope.Info, User: scope.User}
	defer c.Done()
	if err := h.serve(c); err != nil {
		h.refuse(c, err)
	}
}

// lookUp looks the resource of a request up. Before it says that a custom one does not
// exist, it looks again with everything that any server has written.
func (h *Handler) lookUp(c *Call) error {
	look := func() {
		if h.Follow != nil {
			h.Follow()
		}
		c.Resource = h.Catalogue.Lookup(c.Info.Group, c.Info.Version, c.Info.Resource)
	}
	if look(); c.Resource != nil || h.Follow == nil || h.Catalogue.BuiltIn(c.Info.Group) {
		return nil
	}
	if err := h.Objects.CatchUp(c.R.Context()); err != nil {
		return err
	}
	look()
	return nil
}

func (h *Handler) refuse(c *Call, err error) {
	if errors.Is(err, errNoGroup) {
		http.NotFound(c.W, c.R)
		return
	}
	h.Answers.Fail(&c.Request, err)
}

// verb finds what a request is for, and whether that may be done to it.
func (h *Handler) verb(c *Call) (string, error) {
	i := c.Info
	if i.Prefix == "apis" && i.Group == "" {
		return "", errNoGroup // "/apis//v1" is not where the core group lives
	}
	if err := h.lookUp(c); err != nil {
		return "", err
	}
	if c.Resource == nil || c.Resource.Off && !c.Scope.Inside {
		if !h.Catalogue.BuiltIn(i.Group) {
			return "", errNoGroup
		}
		return "", status.NoResource()
	}
	verbs, err := h.place(c)
	if !c.Resource.FixedRoutes() && errors.Is(err, errNoPlace) {
		return "", errNoGroup
	}
	if errors.Is(err, errNoPlace) {
		return "", status.NoResource()
	}
	if err != nil {
		return "", err
	}
	verb, err := methodVerb(c, verbs)
	if err != nil && !c.Resource.FixedRoutes() {
		err = apierrors.NewMethodNotSupported(c.Resource.GroupResource(), c.Info.Verb)
	}
	if d := c.Resource.Deprecation; d != nil && (err == nil || c.R.Method == http.MethodGet) { // a watch that is refused too
		c.Scope.Deprecate(request.Deprecation{Warning: d.Warning, Removed: d.Removed})
	}
	return verb, err
}

func (h *Handler) serve(c *Call) error {
	verb, err := h.verb(c)
	if err != nil {
		return err
	}
	if d := c.Resource.Deprecation; d != nil {
		c.Scope.Deprecate(request.Deprecation(*d))
	}
	if f := h.special(c); f != nil {
		return f(h, c)
	}
	if c.Resource.Storage == nil || c.Sub != nil && c.Sub.Update == nil && c.Sub.Scale == nil {
		return status.NotAllowed()
	}
	return h.dispatch(c, verb)
}

func (h *Handler) special(c *Call) Special {
	if c.Sub != nil && (c.Sub.Update != nil || c.Sub.Scale != nil) {
		return nil
	}
	return h.Special[specialKey(c)]
}

func specialKey(c *Call) string {
	k := c.Resource.GroupResource().String()
	if c.Sub != nil {
		k += "/" + c.Sub.Name
	}
	return k
}

// place checks that the path has the shape of the resource, finds the subresource
// and returns the verbs that the path can have.
func (h *Handler) place(c *Call) ([]string, error) {
	i, r := c.Info, c.Resource
	inNamespace := i.Namespace != "" && !(i.Resource == "namespaces" && i.Group == "")
	if !inNamespace && i.Namespace != "" && strings.Contains(i.Path, "/namespaces/"+i.Namespace+"/namespaces") {
		return nil, status.NoResource() // namespaces are not in one
	}
	named := i.Name != "" && !i.NameFromSelector
	switch {
	case inNamespace && !r.Namespaced, i.Verb == "proxy":
		return nil, errNoPlace
	case i.WatchPrefix && (i.Subresource != "" || !has(r, "watch")):
		return nil, errNoPlace
	case r.Namespaced && i.Namespace == "":
		if named && strings.Contains(i.Path, "/namespaces//") {
			return nil, apierrors.NewBadRequest("Namespace parameter required.")
		}
		if named || !slices.Contains(r.Verbs, "list") || !r.FixedRoutes() && i.Verb != "list" && i.Verb != "watch" {
			return nil, errNoPlace
		}
		return intersect(r.Verbs, "list", "watch"), nil
	case i.Subresource != "":
		c.Sub = r.Sub(i.Subresource)
		if c.Sub == nil && !r.FixedRoutes() {
			return nil, apierrors.NewNotFound(r.GroupResource(), i.Name)
		}
		if c.Sub == nil || len(i.Parts) > 3 && i.Subresource != "proxy" {
			return nil, errNoPlace
		}
		if !named {
			return nil, apierrors.NewBadRequest("name must be provided")
		}
		return c.Sub.Verbs, nil
	case named:
		return intersect(r.Verbs, "get", "watch", "update", "patch", "delete"), nil
	}
	return intersect(r.Verbs, "list", "watch", "create", "deletecollection"), nil
}

func intersect(have []string, of ...string) []string {
	n := 0
	for _, v := range of {
		if slices.Contains(have, v) {
			of[n] = v
			n++
		}
	}
	return of[:n]
}

// methodVerb is the verb of a request, if it is among those allowed. A path
// without any verb does not exist.
func methodVerb(c *Call, allowed []string) (string, error) {
	if len(allowed) == 0 {
		return "", status.NoResource()
	}
	verb := c.Info.Verb
	if c.Sub != nil && c.Sub.Name == "proxy" && (c.R.Method == http.MethodHead || c.R.Method == http.MethodOptions) {
		return "get", nil // whatever is asked for is for another server to say
	}
	if c.R.Method == http.MethodHead && c.Resource.FixedRoutes() || c.Info.WatchPrefix && c.R.Method != http.MethodGet {
		return "", status.NotAllowed()
	}
	if c.Sub != nil && verb == "watch" {
		verb = "get"
	}
	if verb == "watch" && slices.Contains(allowed, "list") && !has(c.Resource, "watch") {
		return "", apierrors.NewMethodNotSupported(c.Resource.GroupResource(), verb)
	}
	if verb == "watch" && !has(c.Resource, "watch") || !slices.Contains(allowed, verb) && verb != "watch" {
		return "", status.NotAllowed()
	}
	return verb, nil
}

func (h *Handler) dispatch(c *Call, verb string) error {
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

// Enabled says whether a feature gate is on.
func (h *Handler) Enabled(gate string) bool { return h.Feature != nil && h.Feature(gate) }

// strictness reads fieldValidation, which has been validated.
func strictness(v string) codecs.Strictness {
	switch v {
	case "Ignore":
		return codecs.Ignore
	case "Strict":
		return codecs.Strict
	}
	return codecs.Warn
}

// has says whether a verb is among those of a resource.
func has(r *kinds.Resource, verb string) bool { return slices.Contains(r.Verbs, verb) }
