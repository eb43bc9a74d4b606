package external

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// Metrics counts the calls of a signer, under the names of a stock server.
type Metrics struct {
	*metricset.Set
	fetchedAt, dataAt prometheus.Gauge
	fetches, signs    *prometheus.CounterVec
	calls             *prometheus.HistogramVec
}

func newMetrics() *Metrics {
	s := metricset.New("apiserver_externaljwt_")
	return &Metrics{
		Set:       s,
		fetchedAt: s.Gauge("fetch_keys_success_timestamp", "[ALPHA] When the signer last named its keys, in Unix seconds."),
		dataAt:    s.Gauge("fetch_keys_data_timestamp", "[ALPHA] From when the keys are that the signer last named, in Unix seconds."),
		fetches:   s.Counters("fetch_keys_request_total", "[ALPHA] Questions for the keys of the signer, by the code of the answer.", "code"),
		signs:     s.Counters("sign_request_total", "[ALPHA] Tokens that the signer was to sign, by the code of the answer.", "code"),
		calls: s.Histograms("request_duration_seconds", "[ALPHA] How long calls of the signer of service account tokens took, by method and the code of the answer.",
			[]float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "method", "code"),
	}
}

func (m *Metrics) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	m.calls.WithLabelValues(method, code(err)).Observe(time.Since(began).Seconds())
	return err
}

func (m *Metrics) fetched(err error, now time.Time) {
	m.fetches.WithLabelValues(code(err)).Inc()
	if err == nil {
		m.fetchedAt.Set(float64(now.UnixNano()) / 1e9)
	}
}

func (m *Metrics) dated(at time.Time) { m.dataAt.Set(float64(at.UnixNano()) / 1e9) }

func (m *Metrics) signed(err error) { m.signs.WithLabelValues(code(err)).Inc() }

// code returns the gRPC code of an error; errors that this side detected have a code of their own.
func code(err error) string {
	var grpcError interface{ GRPCStatus() *status.Status }
	switch {
	case err == nil:
		return codes.OK.String()
	case errors.As(err, &grpcError):
		return grpcError.GRPCStatus().Code().String()
	}
	return "unknown-non-grpc"
}
