package filters

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/tracing"
)

// Attributes returns the attributes of a request for an authorizer.
func Attributes(s *request.Scope) *authx.Attributes { return attributes(s, true) }

// attributes returns the attributes of a request, with its selectors or without.
func attributes(s *request.Scope, selected bool) *authx.Attributes {
	i := s.Info
	a := &authx.Attributes{
		User: s.User, Verb: i.Verb, Namespace: i.Namespace, APIGroup: i.Group, APIVersion: i.Version,
		Resource: i.Resource, Subresource: i.Subresource, Name: i.Name, ResourceRequest: i.IsResource, Path: i.Path,
	}
	if !selected {
		return a
	}
	switch i.Verb {
	case "list", "watch", "deletecollection":
		if i.FieldSelector != "" {
			if sel, err := i.Fields(); err != nil {
				a.FieldErr = err
			} else {
				a.FieldRequirements = sel.Requirements()
			}
		}
		if i.LabelSelector != "" {
			if sel, err := i.Labels(); err != nil {
				a.LabelErr = err
			} else {
				a.LabelRequirements, _ = sel.Requirements()
			}
		}
	}
	return a
}

// MeasureAuthorization takes a decision of an authorizer.
type MeasureAuthorization func(d authx.Decision, err error, took time.Duration)

// Authorize passes a request that an authorizer allows. If none does, it answers 500 if one of them failed, and else 403.
// measure takes each decision, and how long it took; it may be nil.
func Authorize(z authx.Authorizer, measure MeasureAuthorization, log *slog.Logger, fail Fail) Filter {
	failed := &ratelog.Line{} // clients can cause any number of failures
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if authorized(z, measure, log, failed, fail, w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// authorize calls an authorizer, in a span of the request's trace.
func authorize(ctx context.Context, z authx.Authorizer, measure MeasureAuthorization, a *authx.Attributes) (permits.Permit, string, error) {
	ctx, span := tracing.Start(ctx, "authorization")
	defer span.End()
	began := time.Now()
	p, d, reason, err := permits.Decide(ctx, z, a)
	request.From(ctx).Took(request.Authorization, began)
	if measure != nil {
		measure(d, err, time.Since(began))
	}
	if err != nil {
		span.Fail()
	}
	return p, reason, err
}

// authorized reports whether the request is allowed, and answers it if not.
func authorized(z authx.Authorizer, measure MeasureAuthorization, log *slog.Logger, failed *ratelog.Line, fail Fail, w http.ResponseWriter, r *http.Request) bool {
	s := request.From(r.Context())
	a := Attributes(s)
	if getsFirst(s.Info) {
		a.Verb = "get"
	}
	p, reason, err := authorize(r.Context(), z, measure, a)
	if p.Valid() && a.Verb != s.Info.Verb {
		a.Verb = s.Info.Verb
		p, reason, err = authorize(r.Context(), z, measure, a)
	}
	if p.Valid() {
		s.Permit = p
		s.Annotate("authorization.k8s.io/decision", "allow")
		s.Annotate("authorization.k8s.io/reason", reason)
		return true
	}
	if err != nil {
		s.Annotate("authorization.k8s.io/reason", "internal error")
		failed.Log(r.Context(), log, slog.LevelWarn, "authorization failed", "audit-id", s.ID, "error", err)
		internal(w, r, err)
		return false
	}
	s.Annotate("authorization.k8s.io/decision", "forbid")
	s.Annotate("authorization.k8s.io/reason", reason)
	log.Debug("forbidden", "user", a.User.Name, "verb", a.Verb, "path", a.Path, "reason", reason)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	fail(w, r, permits.Forbidden(a, reason))
	return false
}

// getsFirst reports whether a request is a watch with the path of a get. A stock server treats it as a get; this one serves the
// watch to users that may do both.
func getsFirst(i *request.Info) bool {
	return i.IsResource && i.Verb == "watch" && i.Name != "" && !i.NameFromSelector && !i.WatchPrefix
}

// internal answers a request for which authorization failed.
func internal(w http.ResponseWriter, r *http.Request, err error) {
	http.Error(w, permits.Escape(fmt.Sprintf("Internal Server Error: %q: %v", r.RequestURI, err)), http.StatusInternalServerError)
}
