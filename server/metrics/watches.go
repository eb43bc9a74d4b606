package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
)

// watches measures watches. It is watches.Measure.
type watches struct {
	events  *prometheus.CounterVec
	sizes   *prometheus.HistogramVec
	initial *prometheus.HistogramVec
	ended   *prometheus.CounterVec
	sharded *prometheus.GaugeVec
	leftOut *prometheus.CounterVec
	named   func(r *kinds.Resource) string // resource of the events
	known   sync.Map                       // schema.GroupVersionKind -> func(int); resources of custom kinds come and go
}

func newWatches(s *metricset.Set, v release.Version) *watches {
	label, named := "kind", func(r *kinds.Resource) string { return r.Kind }
	if v.Has(release.MetricsByGroup) {
		label, named = "resource", func(r *kinds.Resource) string { return r.Plural }
	}
	return &watches{
		named:  named,
		events: s.Counters("apiserver_watch_events_total", "Events sent to watchers.", "group", "version", label),
		sizes:  s.Histograms("apiserver_watch_events_sizes", "Bytes of the events sent to watchers.", prometheus.ExponentialBuckets(1024, 2, 8), "group", "version", label),
		initial: s.Histograms("apiserver_watch_list_duration_seconds", "Time from the arrival of a streaming list to the end of its initial events.",
			[]float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60}, "group", "version", "resource", "scope"),
		ended:   s.Counters("apiserver_terminated_watchers_total", "Watches that were cut off because their clients were too slow.", "group", "resource"),
		sharded: s.Gauges("apiserver_watch_shards_total", "Open watches with a shard selector.", "group", "resource"),
		leftOut: s.Counters("apiserver_watch_filtered_events_total", "Objects that watches did not send because of their shard selectors: a changed object counts as it was and as it is.", "group", "resource"),
	}
}

// Watch implements watches.Measure.
func (m *Metrics) Watch(r *kinds.Resource) (sent func(bytes int)) {
	gvk := r.GVK()
	if f, ok := m.watches.known.Load(gvk); ok {
		return f.(func(int))
	}
	m.meet(r.Group, r.Version, r.Plural)
	of := m.watches.named(r)
	events, sizes := m.watches.events.WithLabelValues(r.Group, r.Version, of), m.watches.sizes.WithLabelValues(r.Group, r.Version, of)
	f, _ := m.watches.known.LoadOrStore(gvk, func(bytes int) {
		events.Inc()
		sizes.Observe(float64(bytes))
	})
	return f.(func(int))
}

// InitialEvents implements watches.Measure.
func (m *Metrics) InitialEvents(r *kinds.Resource, info *request.Info, took time.Duration) {
	m.meet(r.Group, r.Version, r.Plural)
	m.watches.initial.WithLabelValues(r.Group, r.Version, r.Plural, scopeOf(info)).Observe(took.Seconds())
}

// Sharded implements watches.Measure.
func (m *Metrics) Sharded(r *kinds.Resource) (leftOut func()) {
	m.meet(r.Group, r.Version, r.Plural)
	m.watches.sharded.WithLabelValues(r.Group, r.Plural).Inc()
	return m.watches.leftOut.WithLabelValues(r.Group, r.Plural).Inc
}

// ShardedEnded implements watches.Measure.
func (m *Metrics) ShardedEnded(r *kinds.Resource) {
	m.watches.sharded.WithLabelValues(r.Group, r.Plural).Dec()
}

// Terminated implements watches.Measure.
func (m *Metrics) Terminated(r *kinds.Resource) {
	m.meet(r.Group, r.Version, r.Plural)
	m.watches.ended.WithLabelValues(r.Group, r.Plural).Inc()
}
