package expr

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/rowlock/rowlock/authx"
)

// Target is the resource that a request is for.
type Target struct {
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string
}

// GetName, GetNamespace, GetResource and GetSubresource implement library.Resource.
func (t Target) GetName() string                          { return t.Name }
func (t Target) GetNamespace() string                     { return t.Namespace }
func (t Target) GetResource() schema.GroupVersionResource { return t.Resource }
func (t Target) GetSubresource() string                   { return t.Subresource }

// Authorizer is the variable authorizer: it reports the rights of the request's user. It asks each question
// once. It belongs to one request.
type Authorizer struct {
	ctx    context.Context
	next   authx.Authorizer
	target Target
	known  map[string]decision
	info   user.Info // of the request's user

	own, ofResource ref.Val
}

type decision struct {
	what   authorizer.Decision
	reason string
	err    error
}

// NewAuthorizer makes the variable for a request.
func NewAuthorizer(ctx context.Context, next authx.Authorizer, who *authx.Identity, target Target) *Authorizer {
	info := &user.DefaultInfo{}
	if who != nil {
		info.Name, info.UID, info.Groups, info.Extra = who.Name, who.UID, who.Groups, who.Extra
	}
	return &Authorizer{ctx: ctx, next: next, target: target, info: info}
}

func (a *Authorizer) value() ref.Val {
	if a.own == nil {
		a.own = library.NewAuthorizerVal(a.info, asker{a})
	}
	return a.own
}

func (a *Authorizer) resource() ref.Val {
	if a.ofResource == nil {
		a.ofResource = library.NewResourceAuthorizerVal(a.info, asker{a}, a.target)
	}
	return a.ofResource
}

// asker brings the questions of the library to the authorizer of the server.
type asker struct{ *Authorizer }

// Authorize implements authorizer.Authorizer. The library passes no context.
func (a asker) Authorize(_ context.Context, q authorizer.Attributes) (authorizer.Decision, string, error) {
	key := fmt.Sprint(q.GetUser() == a.info, " ", question(q))
	if d, ok := a.known[key]; ok {
		return d.what, d.reason, d.err
	}
	attributes := &authx.Attributes{
		User: identity(q.GetUser()), Verb: q.GetVerb(), Namespace: q.GetNamespace(), APIGroup: q.GetAPIGroup(), APIVersion: q.GetAPIVersion(),
		Resource: q.GetResource(), Subresource: q.GetSubresource(), Name: q.GetName(), ResourceRequest: q.IsResourceRequest(), Path: q.GetPath(),
	}
	attributes.FieldRequirements, attributes.FieldErr = q.GetFieldSelector()
	attributes.LabelRequirements, attributes.LabelErr = q.GetLabelSelector()
	answer, reason, err := a.next.Authorize(a.ctx, attributes)
	d := decision{what: authorizer.DecisionNoOpinion, reason: reason, err: err}
	switch answer {
	case authx.Allow:
		d.what = authorizer.DecisionAllow
	case authx.Deny:
		d.what = authorizer.DecisionDeny
	}
	if a.known == nil {
		a.known = map[string]decision{}
	}
	a.known[key] = d
	return d.what, d.reason, d.err
}

// question returns the key of an authorization check among those about the request's user, or about others: these are service accounts
// without a token, whose names determine their groups. It quotes each text, also those of selectors, which a client may have chosen: two
// different checks have different keys.
func question(q authorizer.Attributes) string {
	var b strings.Builder
	name := ""
	if u := q.GetUser(); u != nil {
		name = u.GetName()
	}
	fields, ferr := q.GetFieldSelector()
	labels, lerr := q.GetLabelSelector()
	fmt.Fprintf(&b, "%q %q %t %q %q %q %q %q %q %q %q %q %q %q", name, q.GetVerb(), q.IsResourceRequest(), q.GetAPIGroup(), q.GetAPIVersion(),
		q.GetResource(), q.GetSubresource(), q.GetNamespace(), q.GetName(), q.GetPath(), fields, ferr, labels, lerr)
	return b.String()
}

func identity(u user.Info) *authx.Identity {
	if u == nil {
		return nil
	}
	return &authx.Identity{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
}
