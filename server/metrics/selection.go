package metrics

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/rowlock/rowlock/server/release"
)

// Selection determines which metrics are shown, and with which values of labels. The zero Selection shows all metrics
// except those that are hidden because they were deprecated long ago.
type Selection struct {
	// Release is the release of the server, which determines the hidden metrics.
	Release release.Version
	// Hidden shows hidden metrics too.
	Hidden bool
	// Disabled are names of metrics that are left out.
	Disabled []string
	// Allowed are the values that a label may have, by "metric,label"; all others are
	// shown together as "unexpected".
	Allowed map[string][]string
}

// unexpected replaces all label values that are not allowed.
const unexpected = "unexpected"

var allowKey = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$`)

// Validate returns an error for invalid names.
func (s *Selection) Validate() error {
	for key := range s.Allowed {
		if !allowKey.MatchString(key) {
			return fmt.Errorf("--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`")
		}
	}
	return nil
}

// Of selects from the metrics of another gatherer, and adds their stability to the help.
func (s *Selection) Of(all prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := all.Gather()
		families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
			return s.omits(f.GetName(), lifeOf(s.Release, f.GetName(), f.GetHelp()))
		})
		for _, f := range families {
			f.Help = proto.String(marked(s.Release, f.GetName(), f.GetHelp()))
			if len(s.Allowed) > 0 {
				s.restrict(f)
			}
		}
		return families, err
	})
}

// restrict replaces label values that are not allowed, and adds up series that become equal.
func (s *Selection) restrict(f *dto.MetricFamily) {
	sums := make(map[string]*dto.Metric)
	f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool {
		labels, changed := s.allowed(f.GetName(), m.Label)
		if !changed {
			return false
		}
		key := labelsKey(labels)
		if sum := sums[key]; sum != nil {
			addTo(sum, m)
		} else {
			// Gathered metrics share memory with the counters.
			sums[key] = proto.Clone(m).(*dto.Metric)
			sums[key].Label = labels
		}
		return true
	})
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		f.Metric = append(f.Metric, sums[key])
	}
}

// allowed returns the labels of a metric as they may be shown.
func (s *Selection) allowed(name string, labels []*dto.LabelPair) (shown []*dto.LabelPair, changed bool) {
	shown = labels
	for i, l := range labels {
		values, ok := s.Allowed[name+","+l.GetName()]
		if !ok || slices.Contains(values, l.GetValue()) {
			continue
		}
		if !changed {
			shown, changed = slices.Clone(labels), true
		}
		shown[i] = &dto.LabelPair{Name: l.Name, Value: proto.String(unexpected)}
	}
	return shown, changed
}

func labelsKey(labels []*dto.LabelPair) string {
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
	}
	return key.String()
}

// addTo adds the second metric to the first. Both belong to one family, so their buckets are equal.
func addTo(sum, m *dto.Metric) {
	switch {
	case sum.Counter != nil && m.Counter != nil:
		sum.Counter.Value = proto.Float64(sum.Counter.GetValue() + m.Counter.GetValue())
	case sum.Gauge != nil && m.Gauge != nil:
		sum.Gauge.Value = proto.Float64(sum.Gauge.GetValue() + m.Gauge.GetValue())
	case sum.Histogram != nil && m.Histogram != nil:
		a, b := sum.Histogram, m.Histogram
		a.SampleCount, a.SampleSum = proto.Uint64(a.GetSampleCount()+b.GetSampleCount()), proto.Float64(a.GetSampleSum()+b.GetSampleSum())
		for i := range min(len(a.Bucket), len(b.Bucket)) {
			a.Bucket[i].CumulativeCount = proto.Uint64(a.Bucket[i].GetCumulativeCount() + b.Bucket[i].GetCumulativeCount())
		}
	}
}
