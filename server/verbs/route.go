package verbs

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

var (
	// errNoGroup: nothing is served below the group, or a custom resource has no such path. The
	// answer is the 404 of an unknown path, and no Status.
	errNoGroup = errors.New("unknown API group")
	// errNoPlace: a resource has no such path.
	errNoPlace = errors.New("no such path")
)

// verb finds the resource, the subresource and the verb of a request. It fails if the resource does not have the verb. The
// request is already authorized.
func (h *Handler) verb(c *Call) (string, error) {
	i := c.Info
	if i.Prefix == "apis" && i.Group == "" {
		return "", errNoGroup // "/apis//v1" is not the core group
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
	verbs, err := pathVerbs(c)
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
	if d := c.Resource.Deprecation; d != nil && (err == nil || c.R.Method == http.MethodGet && has(c.Resource, "get")) { // even for a refused watch
		c.Scope.Deprecate(request.Deprecation(*d))
	}
	return verb, err
}

// lookUp finds the resource of a request. Before it reports that a custom resource does not exist, it looks again with all
// definitions that any server has written. No definition changes a built-in resource, so requests for these never wait.
func (h *Handler) lookUp(c *Call) error {
	c.Resource = h.Catalogue.Lookup(c.Info.Group, c.Info.Version, c.Info.Resource)
	if c.Resource != nil && c.Resource.HasGoType() {
		return nil
	}
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

// pathVerbs checks that the path has the shape of the resource, finds the subresource
// and returns the verbs that the path can have.
func pathVerbs(c *Call) ([]string, error) {
	i, r := c.Info, c.Resource
	inNamespace := i.Namespace != "" && !(i.Resource == "namespaces" && i.Group == "")
	if !inNamespace && i.Namespace != "" && strings.Contains(i.Path, "/namespaces/"+i.Namespace+"/namespaces") {
		return nil, status.NoResource() // namespaces are not in a namespace
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

// methodVerb returns the verb of a request, if it is among the allowed ones. A path without verbs does not exist.
func methodVerb(c *Call, allowed []string) (string, error) {
	if len(allowed) == 0 {
		return "", status.NoResource()
	}
	verb := c.Info.Verb
	if c.Sub != nil && c.Sub.Name == "proxy" && (c.R.Method == http.MethodHead || c.R.Method == http.MethodOptions) {
		return "get", nil // another server decides
	}
	if c.R.Method == http.MethodHead && c.Resource.FixedRoutes() || c.Info.WatchPrefix && c.R.Method != http.MethodGet {
		return "", status.NotAllowed()
	}
	if c.Sub != nil && verb == "watch" {
		verb = "get"
	}
	if verb == "watch" && slices.Contains(allowed, "list") && !has(c.Resource, "watch") {
		return verb, nil // errors of parameters come before its refusal
	}
	if verb == "watch" && slices.Contains(allowed, "get") && c.Resource.HasGoType() && !has(c.Resource, "watch") {
		return "get", nil // the parameter watch means nothing here
	}
	if verb == "watch" && !has(c.Resource, "watch") || !slices.Contains(allowed, verb) && verb != "watch" {
		return "", status.NotAllowed()
	}
	return verb, nil
}

// has reports whether a resource has a verb.
func has(r *kinds.Resource, verb string) bool { return slices.Contains(r.Verbs, verb) }
