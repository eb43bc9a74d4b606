package filters

import (
	"net"
	"net/http"

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
	rec := recorderOf(w)
	defer s.OnEnd(func() { endSpan(span, rec) })
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
