package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

func newWatches(v release.Version) *watches {
	label, named := "kind", func(r *kinds.Resource) string { return r.Kind }
	if v.Has(release.MetricsByGroup) {
		label, named = "resource", func(r *kinds.Resource) string { return r.Plural }
	}
	return &watches{
		named: named,
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Events sent to watchers.",
		}, []string{"group", "version", label}),
		sizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_events_sizes", Help: "Bytes of the events sent to watchers.", Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
		}, []string{"group", "version", label}),
		initial: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_list_duration_seconds", Help: "Time from the arrival of a streaming list to the end of its initial events.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60},
		}, []string{"group", "version", "resource", "scope"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_terminated_watchers_total", Help: "Watches that were cut off because their clients were too slow.",
		}, []string{"group", "resource"}),
		sharded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_watch_shards_total", Help: "Open watches with a shard selector.",
		}, []string{"group", "resource"}),
		leftOut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_filtered_events_total", Help: "Objects that watches did not send because of their shard selectors: a changed object counts as it was and as it is.",
		}, []string{"group", "resource"}),
	}
}

func (w *watches) parts() []prometheus.Collector {
	return []prometheus.Collector{w.events, w.sizes, w.initial, w.ended, w.sharded, w.leftOut}
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
