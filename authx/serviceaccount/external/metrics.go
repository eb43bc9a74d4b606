package external

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Metrics counts the calls of a signer, under the names of a stock server.
type Metrics struct {
	fetchedAt, dataAt prometheus.Gauge
	fetches, signs    *prometheus.CounterVec
	calls             *prometheus.HistogramVec
}

func newMetrics() *Metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "apiserver", Subsystem: "externaljwt", Name: name, Help: "[ALPHA] " + help}
	}
	calls := opts("request_duration_seconds", "How long calls of the signer of service account tokens took, by method and the code of the answer.")
	return &Metrics{
		fetchedAt: prometheus.NewGauge(prometheus.GaugeOpts(opts("fetch_keys_success_timestamp", "When the signer last named its keys, in Unix seconds."))),
		dataAt:    prometheus.NewGauge(prometheus.GaugeOpts(opts("fetch_keys_data_timestamp", "From when the keys are that the signer last named, in Unix seconds."))),
		fetches:   prometheus.NewCounterVec(prometheus.CounterOpts(opts("fetch_keys_request_total", "Questions for the keys of the signer, by the code of the answer.")), []string{"code"}),
		signs:     prometheus.NewCounterVec(prometheus.CounterOpts(opts("sign_request_total", "Tokens that the signer was to sign, by the code of the answer.")), []string{"code"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: calls.Namespace, Subsystem: calls.Subsystem, Name: calls.Name, Help: calls.Help,
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method", "code"}),
	}
}

// Collectors returns the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.fetchedAt, m.dataAt, m.fetches, m.signs, m.calls}
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
