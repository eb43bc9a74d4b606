package kms

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"k8s.io/utils/lru"

	"github.com/rowlock/rowlock/codecs/metricset"
)

const (
	toStorage   = "to_storage"
	fromStorage = "from_storage"
	// maxKeyIDs bounds the series of key ids, which plugins choose.
	maxKeyIDs = 100
)

// Metrics counts calls of plugins, under the names of a stock server.
type Metrics struct {
	*metricset.Set
	server string // hash of this server's identity

	calls       *prometheus.HistogramVec
	used        *prometheus.CounterVec
	usedAt      *prometheus.GaugeVec
	reportedAt  *prometheus.GaugeVec
	invalid     *prometheus.CounterVec
	cached      *prometheus.GaugeVec
	fill        prometheus.Gauge
	arrivals    *prometheus.HistogramVec
	misses      prometheus.Counter
	generated   prometheus.Histogram
	ungenerated prometheus.Counter

	mu       sync.Mutex
	keys     *lru.Cache // of used and usedAt, by their labels
	reported *lru.Cache
	arrived  map[string]time.Time
}

// used3 are the labels of a key id that was used.
type used3 struct{ way, provider, hash string }

// NewMetrics makes the metrics; server is a hash of the server's identity.
func NewMetrics(server string) *Metrics {
	s := metricset.New("apiserver_")
	m := &Metrics{
		Set: s, server: server, arrived: map[string]time.Time{},
		calls: s.Histograms("envelope_encryption_kms_operations_latency_seconds", "[ALPHA] How long calls of KMS plugins took, by the code of their answer.",
			prometheus.ExponentialBuckets(0.0001, 2, 20), "provider_name", "method_name", "grpc_status_code"),
		used: s.Counters("envelope_encryption_key_id_hash_total", "[ALPHA] How often a key id was used, by direction, provider and server.",
			"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"),
		usedAt: s.Gauges("envelope_encryption_key_id_hash_last_timestamp_seconds", "[ALPHA] When a key id was last used, in Unix seconds.",
			"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"),
		reportedAt: s.Gauges("envelope_encryption_key_id_hash_status_last_timestamp_seconds", "[ALPHA] When a plugin last named a key id in its status, in Unix seconds.",
			"provider_name", "key_id_hash", "apiserver_id_hash"),
		invalid: s.Counters("envelope_encryption_invalid_key_id_from_status_total", "[ALPHA] Key ids in the status of a plugin that cannot be one, by what is wrong with them.",
			"provider_name", "error"),
		cached: s.Gauges("envelope_encryption_dek_source_cache_size", "[ALPHA] Data keys of KMS v2 that are kept in memory. After a start about as many are asked for.", "provider_name"),
		fill:   s.Gauge("envelope_encryption_dek_cache_fill_percent", "[ALPHA] How full the cache of data keys of KMS v1 is."),
		arrivals: s.Histograms("envelope_encryption_dek_cache_inter_arrival_time_seconds", "[ALPHA] Time between two uses of KMS v1.",
			prometheus.ExponentialBuckets(60, 2, 10), "transformation_type"),
		misses:      s.Counter("storage_envelope_transformation_cache_misses_total", "[ALPHA] Data keys that had to be asked for because they were not in memory."),
		generated:   s.Histogram("storage_data_key_generation_duration_seconds", "[ALPHA] How long it took to make data keys.", prometheus.ExponentialBuckets(5e-6, 2, 14)),
		ungenerated: s.Counter("storage_data_key_generation_failures_total", "[ALPHA] Data keys that could not be made."),
	}
	m.keys = lru.NewWithEvictionFunc(maxKeyIDs, func(key lru.Key, _ any) {
		k := key.(used3)
		m.used.DeleteLabelValues(k.way, k.provider, k.hash, m.server)
		m.usedAt.DeleteLabelValues(k.way, k.provider, k.hash, m.server)
	})
	m.reported = lru.NewWithEvictionFunc(maxKeyIDs, func(key lru.Key, _ any) {
		k := key.(used3)
		m.reportedAt.DeleteLabelValues(k.provider, k.hash, m.server)
	})
	return m
}

// Hash distinguishes values without naming them.
func Hash(value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(value)))
}

// Forget drops the series of a provider that is no longer used. Those of key ids stay among the last maxKeyIDs.
func (m *Metrics) Forget(provider string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	labels := prometheus.Labels{"provider_name": provider}
	m.calls.DeletePartialMatch(labels)
	m.invalid.DeletePartialMatch(labels)
	m.cached.DeletePartialMatch(labels)
	m.reportedAt.DeletePartialMatch(labels)
}

func (m *Metrics) called(provider, method string, code codes.Code, took time.Duration) {
	m.calls.WithLabelValues(provider, method, code.String()).Observe(took.Seconds())
}

// uses counts the uses of one key id.
type uses struct {
	m   *Metrics
	key used3
}

// series holds the metrics of one key ID.
type series struct {
	count prometheus.Counter
	at    prometheus.Gauge
}

func (m *Metrics) of(way, provider, hash string) *uses { return &uses{m, used3{way, provider, hash}} }

// add counts a use. The lock is held for some hundred nanoseconds.
func (u *uses) add() {
	m := u.m
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.keys.Get(u.key)
	if !ok {
		labels := []string{u.key.way, u.key.provider, u.key.hash, m.server}
		known = &series{m.used.WithLabelValues(labels...), m.usedAt.WithLabelValues(labels...)}
		m.keys.Add(u.key, known)
	}
	s := known.(*series)
	s.count.Inc()
	s.at.SetToCurrentTime()
}

func (m *Metrics) status(provider, keyID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hash := Hash(keyID)
	m.reported.Add(used3{"", provider, hash}, nil)
	m.reportedAt.WithLabelValues(provider, hash, m.server).SetToCurrentTime()
}

func (m *Metrics) arrival(way string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if last, ok := m.arrived[way]; ok {
		m.arrivals.WithLabelValues(way).Observe(now.Sub(last).Seconds())
	}
	m.arrived[way] = now
}
