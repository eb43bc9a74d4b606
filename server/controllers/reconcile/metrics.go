package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures the work of controllers, under the names of client-go's work queue metrics. It is a
// prometheus.Collector.
type Metrics struct {
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
	label, buckets := []string{"name"}, prometheus.ExponentialBuckets(1e-8, 10, 12)
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_" + name, Help: help, Buckets: buckets}, label)
	}
	return &Metrics{
		clock:      clock,
		depth:      gauge("depth", "Objects that wait for a controller."),
		unfinished: gauge("unfinished_work_seconds", "How long the work under way has taken, of all objects together."),
		longest:    gauge("longest_running_processor_seconds", "How long the oldest work under way has taken."),
		adds:       counter("adds_total", "Objects that were given to a controller."),
		retries:    counter("retries_total", "Objects that a controller has to look at again."),
		waited:     histogram("queue_duration_seconds", "How long objects waited for a controller."),
		worked:     histogram("work_duration_seconds", "How long a controller worked on an object."),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "running_managed_controllers", Help: "Which controllers work on this server now.",
		}, []string{"manager", "name"}),
		standby: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rowlock_controllers_standing_back", Help: "Whether controllers leave their work to a kube-controller-manager, whose Lease is renewed.",
		}),
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

func (m *Metrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.depth, m.unfinished, m.longest, m.adds, m.retries, m.waited, m.worked, m.running, m.standby}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range m.parts() {
		p.Describe(ch)
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
	for _, p := range m.parts() {
		p.Collect(ch)
	}
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
