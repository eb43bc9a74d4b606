// Package permits holds the decisions of authorizers, as values that no other package
// can make: code that reads or writes for a client takes one and checks that it
// covers exactly that.
//
// A Permit proves that an authorizer allowed this verb on this resource, subresource, namespace and name. The zero
// Permit covers nothing.
package permits

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
)

// Permit is one action that an authorizer allowed.
type Permit struct {
	valid      bool
	server     bool // it belongs to the server itself; resource names the part
	collective bool
	effects    Effect    // on the resource itself
	actions    []further // not nil: in place of effects

	verb                         string
	group, resource, subresource string
	namespace, name              string // namespaces are in none
}

func (p Permit) String() string {
	switch {
	case !p.valid:
		return "no permit"
	case p.server:
		return "the server's own permit for " + p.resource
	}
	return fmt.Sprintf("the permit to %q %q of %q (%q) named %q in %q", p.verb, p.resource, p.group, p.subresource, p.name, p.namespace)
}

// OfServer permits everything to a part of the server that acts for itself: it must not show objects to a
// client that may not read them. A test lists all callers.
func OfServer(part string) Permit { return Permit{valid: true, server: true, resource: part} }

// Valid reports whether an authorizer allowed anything.
func (p Permit) Valid() bool { return p.valid }

// Authorize calls an authorizer. The permit is valid if the authorizer allows the request; err is
// its error, whatever it decided.
func Authorize(ctx context.Context, z authx.Authorizer, a *authx.Attributes) (p Permit, reason string, err error) {
	p, _, reason, err = Decide(ctx, z, a)
	return p, reason, err
}

// Decide is Authorize that also returns the decision.
func Decide(ctx context.Context, z authx.Authorizer, a *authx.Attributes) (p Permit, d authx.Decision, reason string, err error) {
	d, reason, err = z.Authorize(ctx, a)
	if d != authx.Allow {
		return Permit{}, d, reason, err
	}
	if !a.ResourceRequest {
		return Permit{valid: true, verb: a.Verb}, d, reason, err // paths hold nothing that is stored
	}
	p = Permit{
		valid: true, collective: collective(a.Verb), effects: direct[a.Verb].effects,
		verb: a.Verb, group: a.APIGroup, resource: a.Resource, subresource: a.Subresource,
		namespace: a.Namespace, name: a.Name,
	}
	if p.group == "" && p.resource == "namespaces" {
		p.namespace = "" // for authorizers, a namespace is in itself
	}
	if p.subresource != "" || p.resource == "bindings" {
		p.actions = actions[endpoint{p.group, p.resource, p.subresource}]
	}
	return p, d, reason, err
}

// collective returns the verbs of requests without a name. With one they are
// limited to it.
func collective(verb string) bool {
	switch verb {
	case "list", "watch", "create", "deletecollection":
		return true
	}
	return false
}

// Need is Authorize for a further effect of a request. The error is the 403 of a request for that
// effect alone, or a 500 if the authorizer failed. Without an authorizer nothing is allowed.
func Need(ctx context.Context, z authx.Authorizer, a *authx.Attributes) (Permit, error) {
	if z == nil {
		return Permit{}, Forbidden(a, "")
	}
	p, reason, err := Authorize(ctx, z, a)
	switch {
	case p.valid:
		return p, nil
	case err != nil:
		return Permit{}, apierrors.NewInternalError(err)
	}
	return Permit{}, Forbidden(a, reason)
}

// Forbidden returns the 403 for attributes that no authorizer allowed.
func Forbidden(a *authx.Attributes, reason string) error {
	if !a.ResourceRequest {
		text := "forbidden: " + Escape(fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path))
		if reason != "" {
			text += ": " + reason
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Details: &metav1.StatusDetails{}, Message: text,
		}}
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	text := fmt.Sprintf("User %q cannot %s resource %q in API group %q", a.User.Name, a.Verb, resource, a.APIGroup)
	if a.Namespace != "" {
		text += fmt.Sprintf(" in the namespace %q", a.Namespace)
	} else {
		text += " at the cluster scope"
	}
	text = Escape(text)
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}, a.Name, errors.New(text))
}

// Escape keeps browsers from taking a message for markup.
func Escape(text string) string { return markup.Replace(text) }

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
