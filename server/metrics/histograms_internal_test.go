package metrics

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/testing/protocmp"

	dto "github.com/prometheus/client_model/go"
)

var someOpts = prometheus.HistogramOpts{Name: "some_seconds", Help: "Some.", Buckets: []float64{0.005, 0.1, 1, 5}}

// gathered returns the metrics of a collector, without when they were made.
func gathered(t *testing.T, c prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.Metric {
			m.Histogram.CreatedTimestamp = nil
		}
	}
	return all
}

// TestHistograms: the gathered values equal those of the library's histograms.
func TestHistograms(t *testing.T) {
	ours, theirs := newHistograms(someOpts, []string{"verb", "group"}), prometheus.NewHistogramVec(someOpts, []string{"verb", "group"})
	for range 1000 {
		verb, group := fmt.Sprint("v", rand.IntN(3)), fmt.Sprint("g", rand.IntN(2))
		v := []float64{0, 0.005, 0.5, 0.25, 1, 5, 8, 1024}[rand.IntN(8)]
		ours.with(verb, group).Observe(v)
		theirs.WithLabelValues(verb, group).Observe(v)
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
	if d := cmp.Diff(gathered(t, theirs), gathered(t, ours), protocmp.Transform(), near); d != "" {
		t.Error(d)
	}
}

// TestHistogramsAtOnce: nothing is lost where many observe.
func TestHistogramsAtOnce(t *testing.T) {
	h := newHistograms(someOpts, []string{"verb"})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				h.with("a").Observe(2)
			}
		})
	}
	wg.Wait()
	if got := gathered(t, h)[0].Metric[0].Histogram; got.GetSampleCount() != 4000 || got.GetSampleSum() != 8000 {
		t.Errorf("%d, %v", got.GetSampleCount(), got.GetSampleSum())
	}
}

// BenchmarkHistograms measures what a histogram takes, and what an observation does.
func BenchmarkHistograms(b *testing.B) {
	opts := someOpts
	opts.Buckets = make([]float64, 22)
	for i := range opts.Buckets {
		opts.Buckets[i] = float64(i)
	}
	labels := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	theirs, ours := prometheus.NewHistogramVec(opts, labels), newHistograms(opts, labels)
	for name, with := range map[string]func(...string) prometheus.Observer{
		"library": func(v ...string) prometheus.Observer { return theirs.WithLabelValues(v...) }, "own": ours.with,
	} {
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				with("GET", fmt.Sprint("group-", b.N, i), "v1", "lamps", "", "resource", "apiserver").Observe(1)
			}
		})
		one := with("GET", "group", "v1", "lamps", "", "resource", "apiserver")
		b.Run(name+"/observe", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.Observe(7)
			}
		})
	}
}
