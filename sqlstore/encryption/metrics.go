package encryption

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms"
)

// direction is whether values go to the store or come from it.
type direction string

const (
	toStorage   direction = "to_storage"
	fromStorage direction = "from_storage"
)

// metrics have the names of a stock server.
type metrics struct {
	*metricset.Set
	kms    *kms.Metrics
	server string

	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	reloads    *prometheus.CounterVec
	reloaded   *prometheus.GaugeVec
	succeeded  *prometheus.CounterVec // both are deprecated, and shown when hidden ones are
	failed     *prometheus.CounterVec

	mu    sync.Mutex
	named map[string]struct{} // resources with series
}

// maxResources bounds the resources with rings and series: clients that write definitions choose the names.
const maxResources = 4096

func newMetrics(server string) *metrics {
	s := metricset.New("apiserver_")
	return &metrics{
		Set: s, kms: kms.NewMetrics(server), server: server, named: map[string]struct{}{},
		operations: s.Counters("storage_transformation_operations_total", "[ALPHA] Values that were encrypted (to_storage) or decrypted (from_storage), by resource, by the prefix of what is stored, and by how that went: OK, or else what the KMS plugin said or unknown-non-grpc.", "resource", "transformation_type", "transformer_prefix", "status"),
		durations:  s.Histograms("storage_transformation_duration_seconds", "[ALPHA] How long it took to encrypt or decrypt a value.", prometheus.ExponentialBuckets(5e-6, 2, 25), "transformation_type", "transformer_prefix"),
		reloads:    s.Counters("encryption_config_controller_automatic_reloads_total", "[ALPHA] Reloads of the encryption configuration file, by outcome.", "status", "apiserver_id_hash"),
		reloaded:   s.Gauges("encryption_config_controller_automatic_reload_last_timestamp_seconds", "[ALPHA] When the encryption configuration file was last reloaded, by outcome, in Unix seconds.", "status", "apiserver_id_hash"),
		succeeded:  s.Counters("encryption_config_controller_automatic_reload_success_total", "Reloads of the encryption configuration file that succeeded.", "apiserver_id_hash"),
		failed:     s.Counters("encryption_config_controller_automatic_reload_failures_total", "Reloads of the encryption configuration file that failed.", "apiserver_id_hash"),
	}
}

// name notes a resource that gets a ring. If there are too many, all series of resources begin anew, and it reports true.
func (m *metrics) name(resource string) (full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.named[resource]; known {
		return false
	}
	if full = len(m.named) >= maxResources; full {
		clear(m.named)
		m.operations.Reset()
	}
	m.named[resource] = struct{}{}
	return full
}

func (m *metrics) reload(err error) {
	outcome, old := "success", m.succeeded
	if err != nil {
		outcome, old = "failure", m.failed
	}
	old.WithLabelValues(m.server).Inc()
	m.reloads.WithLabelValues(outcome, m.server).Inc()
	m.reloaded.WithLabelValues(outcome, m.server).SetToCurrentTime()
}

// meter measures one direction of one resource by one prefix. Its series are found once.
type meter struct {
	m                *metrics
	resource, prefix string
	way              direction
	count            prometheus.Counter
	took             prometheus.Observer
}

func (m *metrics) meter(resource string, w direction, prefix string) *meter {
	return &meter{m: m, resource: resource, prefix: prefix, way: w}
}

// ready finds the series of success, before the first of them is counted by several.
func (t *meter) ready() *meter {
	t.count = t.m.operations.WithLabelValues(t.resource, string(t.way), t.prefix, codes.OK.String())
	t.took = t.m.durations.WithLabelValues(string(t.way), t.prefix)
	return t
}

func (t *meter) done(began time.Time, err error) {
	if err != nil {
		t.m.operations.WithLabelValues(t.resource, string(t.way), t.prefix, code(err)).Inc()
		return
	}
	t.count.Inc()
	t.took.Observe(time.Since(began).Seconds())
}

// code returns the label under which a failure is counted.
func code(err error) string {
	var grpcError interface{ GRPCStatus() *status.Status }
	if errors.As(err, &grpcError) {
		return grpcError.GRPCStatus().Code().String()
	}
	return "unknown-non-grpc"
}
