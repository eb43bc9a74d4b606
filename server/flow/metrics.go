package flow

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/flow/seats"
)

// pair is a schema and a level.
type pair struct{ level, schema string }

// counts are the metrics of the requests of a schema in a level.
type counts struct {
	seats.Flow
	waited              [2]prometheus.Observer // until refused; until seated
	ran                 [2]prometheus.Observer // requests; beginnings of watches
	queueLength         prometheus.Observer
	estimated, watchers prometheus.Observer
}

// metrics are the histograms; the scheduler provides the rest whenever
// metrics are scraped.
type metrics struct {
	waited, ran, queueLength, estimated, watchers *prometheus.HistogramVec
	plain                                         seats.Flow // if requests are not classified
}

const prefix = "apiserver_flowcontrol_"

func newMetrics() metrics {
	histogram := func(name, help string, buckets []float64, more ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets},
			append([]string{"priority_level", "flow_schema"}, more...))
	}
	seconds := []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	return metrics{
		waited:      histogram("request_wait_duration_seconds", "Time that requests spent in a queue.", seconds, "execute"),
		ran:         histogram("request_execution_seconds", "Time that requests had seats, or ran without; of watches, their beginning.", seconds, "type"),
		queueLength: histogram("request_queue_length_after_enqueue", "Length of its queue as each request that waits has joined it.", []float64{0, 10, 25, 50, 100, 250, 500, 1000}),
		estimated:   histogram("work_estimated_seats", "Seats that requests were expected to need, during them or after.", []float64{1, 2, 4, 10}),
		watchers:    histogram("watch_count_samples", "Watchers that receive the event of a write.", []float64{0, 1, 10, 100, 1000, 10000}),
	}
}

// countsOf finds the counts of a pair. It and forget are called with ranking held.
func (c *Classifier) countsOf(p pair) *counts {
	k := c.counts[p]
	if k == nil {
		with := func(h *prometheus.HistogramVec, more ...string) prometheus.Observer {
			return h.WithLabelValues(append([]string{p.level, p.schema}, more...)...)
		}
		m := &c.metrics
		k = &counts{
			waited: [2]prometheus.Observer{with(m.waited, "false"), with(m.waited, "true")}, ran: [2]prometheus.Observer{with(m.ran, "regular"), with(m.ran, "watch")},
			queueLength: with(m.queueLength), estimated: with(m.estimated), watchers: with(m.watchers),
		}
		c.counts[p] = k
	}
	return k
}

// forget drops the series of removed pairs, once no request runs or waits there.
func (c *Classifier) forget(list []*Class) {
	used := make(map[*counts]bool, len(list))
	for _, class := range list {
		used[class.counts] = true
	}
	for p, k := range c.counts {
		if used[k] {
			continue
		}
		if n := c.Seats.Counts([]*seats.Flow{&k.Flow})[0]; n.Running+n.Waiting > 0 {
			continue
		}
		delete(c.counts, p)
		labels := prometheus.Labels{"priority_level": p.level, "flow_schema": p.schema}
		for _, h := range c.metrics.histograms() {
			h.DeletePartialMatch(labels)
		}
	}
}

func (m *metrics) histograms() []*prometheus.HistogramVec {
	return []*prometheus.HistogramVec{m.waited, m.ran, m.queueLength, m.estimated, m.watchers}
}

// Entered records how long a request waited until it was admitted, or refused with an error.
func (k *Class) Entered(r *seats.Request, err error) {
	if k.Exempt {
		return
	}
	waited, queued := r.Waited()
	if queued {
		k.counts.queueLength.Observe(float64(r.Length))
	}
	let := 1
	if err != nil {
		let = 0
	}
	k.counts.waited[let].Observe(waited.Seconds())
}

// Left records how long a request ran, or the start of a watch took.
func (k *Class) Left(watch bool, took time.Duration) {
	kind := 0
	if watch {
		kind = 1
	}
	k.counts.ran[kind].Observe(took.Seconds())
}

// Collectors returns the metrics of classes.
func (c *Classifier) Collectors() []prometheus.Collector {
	list := []prometheus.Collector{c}
	for _, h := range c.metrics.histograms() {
		list = append(list, h)
	}
	return list
}

// family is a metric that is read from the scheduler.
type family[T any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*T) float64
}

func gauge[T any](name, help string, labels []string, of func(*T) float64) family[T] {
	return family[T]{prometheus.NewDesc(prefix+name, help, labels, nil), prometheus.GaugeValue, of}
}

// timed is a histogram of values over time: it counts nanoseconds.
type timed[T any] struct {
	desc   *prometheus.Desc
	of     func(*T) *seats.Timing
	labels []string // its first ones
}

func timing[T any](name, help string, always prometheus.Labels, labels []string, of func(*T) *seats.Timing, first ...string) timed[T] {
	return timed[T]{prometheus.NewDesc(prefix+name, help, labels, always), of, first}
}

// metric returns the present values of a timed metric.
func (f *timed[T]) metric(from *T, labels ...string) prometheus.Metric {
	t := f.of(from)
	buckets := make(map[float64]uint64, len(t.Bounds))
	count := uint64(0)
	for i, spent := range t.Spent {
		count += uint64(spent)
		if i < len(t.Bounds) {
			buckets[t.Bounds[i]] = count
		}
	}
	return prometheus.MustNewConstHistogram(f.desc, count, t.Sum, buckets, append(f.labels[:len(f.labels):len(f.labels)], labels...)...)
}

const (
	requestsHelp = "For how many nanoseconds the requests that ran or waited were which part of what a level has of seats, or of places in queues."
	kindsHelp    = "For how many nanoseconds the requests that ran or waited were which part of the limit on those that read, or write."
)

var (
	ofLevel = []string{"priority_level"}
	ofPair  = []string{"priority_level", "flow_schema"}
	ofPhase = []string{"phase", "priority_level"}
	ofKind  = []string{"phase", "request_kind"}

	levelFamilies = []family[seats.State]{
		gauge("nominal_limit_seats", "Seats of a level by its shares.", ofLevel, func(s *seats.State) float64 { return float64(s.Nominal) }),
		gauge("lower_limit_seats", "Seats that a level keeps, whatever it lends.", ofLevel, func(s *seats.State) float64 { return float64(s.Lower) }),
		gauge("upper_limit_seats", "Most seats of a level, including borrowed ones.", ofLevel, func(s *seats.State) float64 { return float64(s.Upper) }),
		gauge("current_limit_seats", "Seats of a level at present.", ofLevel, func(s *seats.State) float64 { return float64(s.Limit) }),
		gauge("request_concurrency_limit", "Seats of a level by its shares; the older name.", ofLevel, func(s *seats.State) float64 { return float64(s.Nominal) }),
		gauge("demand_seats_high_watermark", "Most seats that a level wanted in the last period.", ofLevel, func(s *seats.State) float64 { return s.High }),
		gauge("demand_seats_average", "Seats that a level wanted in the last period, on average.", ofLevel, func(s *seats.State) float64 { return s.Average }),
		gauge("demand_seats_stdev", "Standard deviation of the seats that a level wanted in the last period.", ofLevel, func(s *seats.State) float64 { return s.Deviation }),
		gauge("demand_seats_smoothed", "Seats that a level is thought to want.", ofLevel, func(s *seats.State) float64 { return s.Smoothed }),
		gauge("current_r", "Virtual time of a level: seat-seconds that each of its queues with work could have had.", ofLevel, func(s *seats.State) float64 { return s.Virtual }),
		gauge("dispatch_r", "Virtual time of a level as a request was let in last.", ofLevel, func(s *seats.State) float64 { return s.Ran }),
		gauge("latest_s", "Virtual time at which the request that was let in last was to begin.", ofLevel, func(s *seats.State) float64 { return s.Latest }),
		gauge("target_seats", "Seats that a level was to have when limits were set.", ofLevel, func(s *seats.State) float64 { return s.Target }),
	}
	pairFamilies = []family[seats.Counts]{
		{prometheus.NewDesc(prefix+"dispatched_requests_total", "Requests that were let through, by where they belong.", ofPair, nil),
			prometheus.CounterValue, func(n *seats.Counts) float64 { return float64(n.Dispatched) }},
		gauge("current_executing_requests", "Requests that run, the beginning of watches included, by where they belong.", ofPair, func(n *seats.Counts) float64 { return float64(n.Running) }),
		gauge("current_executing_seats", "Seats that are taken, by where their requests belong.", ofPair, func(n *seats.Counts) float64 { return float64(n.Seats) }),
		gauge("request_concurrency_in_use", "Seats that are taken, by where their requests belong; the older name.", ofPair, func(n *seats.Counts) float64 { return float64(n.Seats) }),
		gauge("current_inqueue_requests", "Requests that wait in queues, by where they belong.", ofPair, func(n *seats.Counts) float64 { return float64(n.Waiting) }),
		gauge("current_inqueue_seats", "Seats that those who wait in queues want, by where they belong.", ofPair, func(n *seats.Counts) float64 { return float64(n.WaitingSeats) }),
	}
	timedFamilies = []timed[seats.Timings]{
		timing("priority_level_seat_utilization", "For how many nanoseconds which part of the seats of a level was taken.", prometheus.Labels{"phase": "executing"}, ofLevel,
			func(t *seats.Timings) *seats.Timing { return &t.Seats }),
		timing("priority_level_request_utilization", requestsHelp, nil, ofPhase, func(t *seats.Timings) *seats.Timing { return &t.Running }, "executing"),
		timing("priority_level_request_utilization", requestsHelp, nil, ofPhase, func(t *seats.Timings) *seats.Timing { return &t.Waiting }, "waiting"),
		timing("demand_seats", "For how many nanoseconds a level wanted which part, or how many times, its seats.", nil, ofLevel, func(t *seats.Timings) *seats.Timing { return &t.Wanted }),
	}
	kindFamilies = []timed[seats.Kinds]{
		timing("read_vs_write_current_requests", kindsHelp, nil, ofKind, func(k *seats.Kinds) *seats.Timing { return &k.Running[seats.Reading] }, "executing", "readOnly"),
		timing("read_vs_write_current_requests", kindsHelp, nil, ofKind, func(k *seats.Kinds) *seats.Timing { return &k.Running[seats.Writing] }, "executing", "mutating"),
		timing("read_vs_write_current_requests", kindsHelp, nil, ofKind, func(k *seats.Kinds) *seats.Timing { return &k.Waiting[seats.Reading] }, "waiting", "readOnly"),
		timing("read_vs_write_current_requests", kindsHelp, nil, ofKind, func(k *seats.Kinds) *seats.Timing { return &k.Waiting[seats.Writing] }, "waiting", "mutating"),
	}
	nextDesc       = prometheus.NewDesc(prefix+"next_s_bounds", "Least and most virtual time at which queues go on in which requests wait.", append(ofLevel[:1:1], "bound"), nil)
	discountedDesc = prometheus.NewDesc(prefix+"next_discounted_s_bounds", "The same, less what those that run are expected to take.", append(ofLevel[:1:1], "bound"), nil)
	unplacedDesc   = prometheus.NewDesc(prefix+"request_dispatch_no_accommodation_total", "Times at which a request was the next to run and there was no room for it.", ofPair, nil)

	rejectedDesc = prometheus.NewDesc(prefix+"rejected_requests_total", "Requests that were refused, by where they belong and why.", append(ofPair[:2:2], "reason"), nil)
	fairDesc     = prometheus.NewDesc(prefix+"seat_fair_frac", "Part of their targets that levels were given.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *Classifier) Describe(to chan<- *prometheus.Desc) {
	for _, f := range levelFamilies {
		to <- f.desc
	}
	for _, f := range pairFamilies {
		to <- f.desc
	}
	for _, f := range timedFamilies {
		to <- f.desc
	}
	for _, f := range kindFamilies {
		to <- f.desc
	}
	to <- nextDesc
	to <- discountedDesc
	to <- unplacedDesc
	to <- rejectedDesc
	to <- fairDesc
}

// Collect implements prometheus.Collector.
func (c *Classifier) Collect(to chan<- prometheus.Metric) {
	kinds := c.Seats.Kinds()
	for _, f := range kindFamilies {
		to <- f.metric(&kinds)
	}
	if c.config.Plain {
		return
	}
	c.classes() // include levels that changed since the last request
	states, fair := c.Seats.States(seats.OfLevels)
	for i := range states {
		for _, f := range levelFamilies {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(&states[i]), states[i].Name)
		}
		for _, f := range timedFamilies {
			to <- f.metric(&states[i].Timings, states[i].Name)
		}
		if states[i].Active > 0 {
			for j, bound := range [2]string{"min", "max"} {
				to <- prometheus.MustNewConstMetric(nextDesc, prometheus.GaugeValue, states[i].Next[j], states[i].Name, bound)
				to <- prometheus.MustNewConstMetric(discountedDesc, prometheus.GaugeValue, states[i].Discounted[j], states[i].Name, bound)
			}
		}
	}
	to <- prometheus.MustNewConstMetric(fairDesc, prometheus.GaugeValue, fair)
	pairs, counts := c.counted()
	for i, p := range pairs {
		n := &counts[i]
		if n.Dispatched+n.Rejected[0]+n.Rejected[1]+n.Rejected[2]+n.Rejected[3] == 0 && n.Running+n.Waiting == 0 {
			continue
		}
		for _, f := range pairFamilies {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(n), p.level, p.schema)
		}
		if n.Unplaced > 0 {
			to <- prometheus.MustNewConstMetric(unplacedDesc, prometheus.CounterValue, float64(n.Unplaced), p.level, p.schema)
		}
		for j, why := range seats.Reasons {
			if n.Rejected[j] > 0 {
				to <- prometheus.MustNewConstMetric(rejectedDesc, prometheus.CounterValue, float64(n.Rejected[j]), p.level, p.schema, string(why))
			}
		}
	}
}

// counted reads the counts of all pairs.
func (c *Classifier) counted() ([]pair, []seats.Counts) {
	c.ranking.Lock()
	defer c.ranking.Unlock()
	pairs := slices.Collect(maps.Keys(c.counts))
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].level+"/"+pairs[i].schema < pairs[j].level+"/"+pairs[j].schema })
	flows := make([]*seats.Flow, len(pairs))
	for i, p := range pairs {
		flows[i] = &c.counts[p].Flow
	}
	return pairs, c.Seats.Counts(flows)
}
