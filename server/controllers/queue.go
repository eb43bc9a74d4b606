package controllers

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Queues measures the work of controllers, under the names that dashboards know from
// work queues. It is a prometheus.Collector.
type Queues struct {
	clock func() time.Time

	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waited, worked             *prometheus.HistogramVec

	mu  sync.Mutex
	all []*Queue
}

// NewQueues makes the metrics.
func NewQueues(clock func() time.Time) *Queues {
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
	return &Queues{
		clock:      clock,
		depth:      gauge("depth", "Objects that wait for a controller."),
		unfinished: gauge("unfinished_work_seconds", "How long the work under way has taken, of all objects together."),
		longest:    gauge("longest_running_processor_seconds", "How long the oldest work under way has taken."),
		adds:       counter("adds_total", "Objects that were given to a controller."),
		retries:    counter("retries_total", "Objects that a controller has to look at again."),
		waited:     histogram("queue_duration_seconds", "How long objects waited for a controller."),
		worked:     histogram("work_duration_seconds", "How long a controller worked on an object."),
	}
}

func (q *Queues) parts() []prometheus.Collector {
	return []prometheus.Collector{q.depth, q.unfinished, q.longest, q.adds, q.retries, q.waited, q.worked}
}

// Describe implements prometheus.Collector.
func (q *Queues) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range q.parts() {
		p.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (q *Queues) Collect(ch chan<- prometheus.Metric) {
	q.mu.Lock()
	all := slices.Clone(q.all)
	q.mu.Unlock()
	for _, one := range all {
		one.measure()
	}
	for _, p := range q.parts() {
		p.Collect(ch)
	}
}

// Of makes the queue of a controller, under the name that it has elsewhere.
func (q *Queues) Of(name string) *Queue {
	one := &Queue{
		clock: q.clock, depth: q.depth.WithLabelValues(name), unfinished: q.unfinished.WithLabelValues(name), longest: q.longest.WithLabelValues(name),
		adds: q.adds.WithLabelValues(name), retries: q.retries.WithLabelValues(name), waited: q.waited.WithLabelValues(name), worked: q.worked.WithLabelValues(name),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, one)
	return one
}

// Queue measures the work of one controller, which does one thing at a time, in the
// order in which it came. A nil Queue measures nothing.
type Queue struct {
	clock                      func() time.Time
	depth, unfinished, longest prometheus.Gauge
	adds, retries              prometheus.Counter
	waited, worked             prometheus.Observer

	mu      sync.Mutex
	waiting []time.Time // since when
	began   time.Time   // the work under way; zero: none is
}

// add says that objects wait.
func (q *Queue) add(objects int) {
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

// work does something for the object that has waited longest, and counts it as
// one to come back to if that fails.
func (q *Queue) work(do func() (ok bool)) bool {
	if q == nil {
		return do()
	}
	q.mu.Lock()
	q.began = q.clock()
	if len(q.waiting) > 0 {
		q.waited.Observe(q.began.Sub(q.waiting[0]).Seconds())
		q.waiting = q.waiting[1:]
	}
	q.mu.Unlock()
	ok := do()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.worked.Observe(q.clock().Sub(q.began).Seconds())
	q.began = time.Time{}
	if !ok {
		q.retries.Inc()
	}
	return ok
}

// clear forgets what waits.
func (q *Queue) clear() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = nil
}

func (q *Queue) measure() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.depth.Set(float64(len(q.waiting)))
	var took float64
	if !q.began.IsZero() {
		took = q.clock().Sub(q.began).Seconds()
	}
	q.unfinished.Set(took)
	q.longest.Set(took)
}
