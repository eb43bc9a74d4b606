package filters_test

import (
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

type anybody struct{ who *authx.Authenticated }

func (a anybody) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return a.who, true, nil
}

// TestNotTraced: a request that is not sampled allocates nothing for traces, whatever
// trace context the client sends.
func TestNotTraced(t *testing.T) {
	endpoint, rate := "127.0.0.1:1", int32(1) // one request in a million: less than one allocation each
	tracer, err := tracing.New(&tracing.Config{Endpoint: &endpoint, SamplingRatePerMillion: &rate}, tracing.Settings{Exporter: otlp.Through(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close() }) // sampled spans have no collector
	asked := 0
	last := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ })
	authenticate := filters.Authenticate(anybody{&authx.Authenticated{Identity: &authx.Identity{Name: "fay"}}}, nil, quiet, fail)
	bare := authenticate(filters.Authorize(authx.AlwaysAllow{}, nil, quiet, fail)(last))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	r = r.WithContext(request.With(r.Context(), &request.Scope{Info: &request.Info{}}))
	allocates := func(h http.Handler) float64 { return testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }) }
	if n, without := allocates(filters.Trace(tracer)(bare)), allocates(bare); n != without || asked < 2000 {
		t.Errorf("%v allocations for each of %d requests that are not traced, %v without traces", n, asked, without)
	}
}
