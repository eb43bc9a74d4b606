package filters

import (
	"context"
	"net"
	"net/http"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/tracing"
)

// Trace starts a span for each request that t samples. It returns nil if t is nil.
func Trace(t *tracing.Tracer) Filter {
	if t == nil {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if t.Sample() {
				traced(t, next, w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// traced serves a request in a span.
func traced(t *tracing.Tracer, next http.Handler, w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	ctx, span := t.Request(r, spanName(r.Method, s.Info))
	defer endTrace(s, span, recorderOf(w))
	span.Text("http.method", r.Method)
	span.Text("http.scheme", "https")
	span.Text("http.target", r.URL.EscapedPath()) // not the query, which may hold commands for containers
	span.Text("user_agent.original", r.UserAgent())
	span.Text("audit-id", s.ID)
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		span.Text("net.sock.peer.addr", host)
	}
	next.ServeHTTP(w, r.WithContext(ctx))
}

func endTrace(s *request.Scope, span tracing.Span, rec *Recorder) {
	if s.Outlives() {
		s.AtEnd(func() { endSpan(span, rec) })
		return
	}
	endSpan(span, rec)
}

func endSpan(span tracing.Span, rec *Recorder) {
	if rec.Code > 0 {
		span.Number("http.status_code", rec.Code)
	}
	if rec.Code >= http.StatusInternalServerError {
		span.Fail()
	}
	span.End()
}

// spanName names a request without the names of objects. Methods are arbitrary strings: unknown ones have no name of their own.
func spanName(method string, i *request.Info) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
	default:
		method = "OTHER"
	}
	if i == nil || !i.IsResource {
		return method
	}
	name := method + " /" + i.Prefix
	if i.Group != "" {
		name += "/" + i.Group
	}
	name += "/" + i.Version
	if i.Namespace != "" {
		name += "/namespaces/{:namespace}"
	}
	name += "/" + i.Resource
	if i.Name != "" {
		name += "/{:name}"
	}
	if i.Subresource != "" {
		name += "/" + i.Subresource
	}
	return name[:min(len(name), maxSpanName)]
}

// maxSpanName bounds the name of a span, as a client may name any resource.
const maxSpanName = 512

// TracedAuthenticator returns a with a span for each traced request.
func TracedAuthenticator(t *tracing.Tracer, a authx.Authenticator) authx.Authenticator {
	if t == nil {
		return a
	}
	return tracedAuthenticator{a}
}

type tracedAuthenticator struct{ authx.Authenticator }

// Authenticate implements authx.Authenticator.
func (a tracedAuthenticator) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	ctx, span := tracing.Start(r.Context(), "authentication")
	if !span.On() {
		return a.Authenticator.Authenticate(r)
	}
	defer span.End()
	who, mine, err := a.Authenticator.Authenticate(r.WithContext(ctx)) // headers are the same in both
	if err != nil {
		span.Fail()
	}
	return who, mine, err
}

// TracedAuthorizer is z with a span for each traced request.
func TracedAuthorizer(t *tracing.Tracer, z authx.Authorizer) authx.Authorizer {
	if t == nil {
		return z
	}
	return tracedAuthorizer{z}
}

type tracedAuthorizer struct{ authx.Authorizer }

// Authorize implements authx.Authorizer.
func (z tracedAuthorizer) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	ctx, span := tracing.Start(ctx, "authorization")
	defer span.End()
	decision, reason, err := z.Authorizer.Authorize(ctx, a)
	if err != nil {
		span.Fail()
	}
	return decision, reason, err
}
