package filters_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/tracing/otlp"
)

type nobody struct{}

func (nobody) Authenticate(*http.Request) (*authx.Authenticated, bool, error) { return nil, false, nil }

// TestNotTraced: a request that is not sampled allocates nothing for traces, whatever
// trace context the client sends.
func TestNotTraced(t *testing.T) {
	endpoint, rate := "127.0.0.1:1", int32(1) // one request in a million: less than one allocation each
	tracer, err := tracing.New(&tracing.Config{Endpoint: &endpoint, SamplingRatePerMillion: &rate}, tracing.Settings{Exporter: otlp.Through(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close() }) // sampled spans have no collector
	a, z := filters.TracedAuthenticator(tracer, nobody{}), filters.TracedAuthorizer(tracer, authx.AlwaysAllow{})
	asked := 0
	var attributes authx.Attributes
	h := filters.Trace(tracer)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked++
		_, _, _ = a.Authenticate(r)                              // no user, without an error
		_, _, _ = z.Authorize(context.Background(), &attributes) // everything is allowed
	}))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	r = r.WithContext(request.With(r.Context(), &request.Scope{}))
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n != 0 || asked < 1000 {
		t.Errorf("%v allocations for each of %d requests that are not traced", n, asked)
	}
}
