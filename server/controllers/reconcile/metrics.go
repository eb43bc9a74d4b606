package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// Metrics measures the work of controllers, under the names of client-go's work queue metrics. It is a
// prometheus.Collector.
type Metrics struct {
	*metricset.Set
	clock func() time.Time

	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waited, worked             *prometheus.HistogramVec
	running                    *prometheus.GaugeVec
	standby                    prometheus.Gauge

	mu  sync.Mutex
	all []*Meter
}

// NewMetrics makes the metrics.
func NewMetrics(clock func() time.Time) *Metrics {
	s, buckets := metricset.New(""), prometheus.ExponentialBuckets(1e-8, 10, 12)
	return &Metrics{
		Set: s, clock: clock,
		depth:      s.Gauges("workqueue_depth", "Objects that wait for a controller.", "name"),
		unfinished: s.Gauges("workqueue_unfinished_work_seconds", "How long the work under way has taken, of all objects together.", "name"),
		longest:    s.Gauges("workqueue_longest_running_processor_seconds", "How long the oldest work under way has taken.", "name"),
		adds:       s.Counters("workqueue_adds_total", "Objects that were given to a controller.", "name"),
		retries:    s.Counters("workqueue_retries_total", "Objects that a controller has to look at again.", "name"),
		waited:     s.Histograms("workqueue_queue_duration_seconds", "How long objects waited for a controller.", buckets, "name"),
		worked:     s.Histograms("workqueue_work_duration_seconds", "How long a controller worked on an object.", buckets, "name"),
		running:    s.Gauges("running_managed_controllers", "Which controllers work on this server now.", "manager", "name"),
		standby:    s.Gauge("rowlock_controllers_standing_back", "Whether controllers leave their work to a kube-controller-manager, whose Lease is renewed."),
	}
}

// standBy shows whether controllers are on standby.
func (m *Metrics) standBy(on bool) {
	if m == nil {
		return
	}
	m.standby.Set(0)
	if on {
		m.standby.Set(1)
	}
}

// Shown returns the work of a controller, which metrics show while it is under way.
func (m *Metrics) Shown(name string, work func(context.Context) error) func(context.Context) error {
	gauge := m.running.WithLabelValues("rowlock", name)
	return func(ctx context.Context) error {
		gauge.Set(1)
		defer gauge.Set(0)
		return work(ctx)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	all := slices.Clone(m.all)
	m.mu.Unlock()
	for _, one := range all {
		one.measure()
	}
	m.Set.Collect(ch)
}

// Of makes the meter of a controller, under the name that its work queue has in a stock cluster.
func (m *Metrics) Of(name string) *Meter {
	one := &Meter{
		clock: m.clock, depth: m.depth.WithLabelValues(name), unfinished: m.unfinished.WithLabelValues(name), longest: m.longest.WithLabelValues(name),
		adds: m.adds.WithLabelValues(name), retries: m.retries.WithLabelValues(name), waited: m.waited.WithLabelValues(name), worked: m.worked.WithLabelValues(name),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, one)
	return one
}

// Meter measures the work of one controller, in the order in which it came. A nil Meter
// measures nothing.
type Meter struct {
	clock                      func() time.Time
	depth, unfinished, longest prometheus.Gauge
	adds, retries              prometheus.Counter
	waited, worked             prometheus.Observer

	mu      sync.Mutex
	waiting []time.Time // since when
	begun   []time.Time // the work under way; zero: none is, and the place is free
}

// Add records that objects wait.
func (q *Meter) Add(objects int) {
	if q == nil || objects == 0 {
		return
	}
	now := q.clock()
	q.mu.Lock()
	defer q.mu.Unlock()
	for range objects {
		q.waiting = append(q.waiting, now)
	}
	q.adds.Add(float64(objects))
}

// Remove records that the object that was added last no longer waits, without being processed.
func (q *Meter) Remove() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.waiting); n > 0 {
		q.waiting = q.waiting[:n-1]
	}
}

// Work calls a function for the object that has waited longest, and counts a retry if it fails. It may be called
// concurrently.
func (q *Meter) Work(do func() (ok bool)) bool {
	if q == nil {
		return do()
	}
	began := q.clock()
	q.mu.Lock()
	index := slices.IndexFunc(q.begun, time.Time.IsZero)
	if index < 0 {
		index, q.begun = len(q.begun), append(q.begun, began)
	}
	q.begun[index] = began
	if len(q.waiting) > 0 {
		q.waited.Observe(began.Sub(q.waiting[0]).Seconds())
		q.waiting = q.waiting[1:]
	}
	q.mu.Unlock()
	ok := do()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.worked.Observe(q.clock().Sub(began).Seconds())
	q.begun[index] = time.Time{}
	if !ok {
		q.retries.Inc()
	}
	return ok
}

// Clear drops the waiting objects.
func (q *Meter) Clear() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = nil
}

func (q *Meter) measure() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.depth.Set(float64(len(q.waiting)))
	var all, longest float64
	for _, began := range q.begun {
		if !began.IsZero() {
			took := q.clock().Sub(began).Seconds()
			all, longest = all+took, max(longest, took)
		}
	}
	q.unfinished.Set(all)
	q.longest.Set(longest)
}
