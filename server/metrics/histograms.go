package metrics

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// histograms has the histograms of one name, one for each set of labels. The library's take two arrays of
// counters and a list of label pairs each, some two kilobytes; a thousand custom kinds in use need many
// thousands of them. Here one has only its counters, and label pairs are made on demand
// (docs/design/size.md). It is safe for concurrent use.
type histograms struct {
	desc   *prometheus.Desc
	labels []string
	bounds []float64

	mu sync.RWMutex
	of map[string]*histogram
}

// histogram counts the observations with one set of labels. Gathering may see an observation in a bucket
// before it is in the sum.
type histogram struct {
	bounds []float64
	values []string // of the labels
	sum    atomic.Uint64
	counts []atomic.Uint64 // by bucket; the last one counts values beyond all bounds
}

func newHistograms(opts prometheus.HistogramOpts, labels []string) *histograms {
	return &histograms{
		desc:   prometheus.NewDesc(opts.Name, opts.Help, labels, nil),
		labels: labels, bounds: opts.Buckets, of: map[string]*histogram{},
	}
}

// with returns the histogram of a set of values, in the order of the labels. It retains values.
func (h *histograms) with(values ...string) prometheus.Observer {
	key := strings.Join(values, "\x00")
	h.mu.RLock()
	one := h.of[key]
	h.mu.RUnlock()
	if one != nil {
		return one
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if one = h.of[key]; one == nil {
		one = &histogram{bounds: h.bounds, values: values, counts: make([]atomic.Uint64, len(h.bounds)+1)}
		h.of[key] = one
	}
	return one
}

// drop deletes those that label a resource that is gone.
func (h *histograms) drop(is catalogued) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := make(prometheus.Labels, len(h.labels))
	for key, one := range h.of {
		for i, name := range h.labels {
			l[name] = one.values[i]
		}
		if is.goneLabels(l) {
			delete(h.of, key)
		}
	}
}

// Observe implements prometheus.Observer.
func (h *histogram) Observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v) // a bound is in its bucket
	h.counts[i].Add(1)
	for {
		before := h.sum.Load()
		if h.sum.CompareAndSwap(before, math.Float64bits(math.Float64frombits(before)+v)) {
			return
		}
	}
}

// Describe implements prometheus.Collector.
func (h *histograms) Describe(ch chan<- *prometheus.Desc) { ch <- h.desc }

// Collect implements prometheus.Collector.
func (h *histograms) Collect(ch chan<- prometheus.Metric) {
	h.mu.RLock()
	all := slices.Collect(maps.Values(h.of))
	h.mu.RUnlock()
	for _, one := range all {
		buckets, n := make(map[float64]uint64, len(h.bounds)), uint64(0)
		for i := range one.counts {
			n += one.counts[i].Load()
			if i < len(h.bounds) {
				buckets[h.bounds[i]] = n
			}
		}
		ch <- prometheus.MustNewConstHistogram(h.desc, n, math.Float64frombits(one.sum.Load()), buckets, one.values...)
	}
}
