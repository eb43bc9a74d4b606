package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metricCounts counts the registered metrics, under the names of a stock server, at each scrape, whether or not they have a
// value.
type metricCounts struct {
	m *Metrics

	registered, hidden, disabled *prometheus.Desc
}

func newMetricCounts(m *Metrics) *metricCounts {
	return &metricCounts{
		m: m,
		registered: prometheus.NewDesc("registered_metrics_total",
			"Metrics that are registered and shown, by stability and by the release that deprecated them.", []string{"stability_level", "deprecated_version"}, nil),
		hidden:   prometheus.NewDesc("hidden_metrics_total", "Metrics that are not shown, because they are disabled or were deprecated long ago.", nil, nil),
		disabled: prometheus.NewDesc("disabled_metrics_total", "Names of metrics that flags disable.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *metricCounts) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.registered
	ch <- c.hidden
	ch <- c.disabled
}

// Collect implements prometheus.Collector.
func (c *metricCounts) Collect(ch chan<- prometheus.Metric) {
	shown, hidden := map[life]int{}, 0
	for name, help := range registeredIn(c.m.Registry) {
		l := lifeOf(c.m.Shown.Release, name, help)
		if c.m.Shown.omits(name, l) {
			hidden++
		} else {
			shown[l]++
		}
	}
	for l, n := range shown {
		deprecated := ""
		if l.deprecated != 0 {
			deprecated = fmt.Sprintf("1.%d.0", l.deprecated)
		}
		ch <- prometheus.MustNewConstMetric(c.registered, prometheus.CounterValue, float64(n), string(l.stability), deprecated)
	}
	ch <- prometheus.MustNewConstMetric(c.hidden, prometheus.CounterValue, float64(hidden))
	ch <- prometheus.MustNewConstMetric(c.disabled, prometheus.CounterValue, float64(len(c.m.Shown.Disabled)))
}

// registeredIn returns the metrics of a registry and their help, without those that libraries register for any
// process.
func registeredIn(r *prometheus.Registry) map[string]string {
	found := map[string]string{}
	descs := make(chan *prometheus.Desc)
	go func() { // it ends when all are taken, which is below
		r.Describe(descs)
		close(descs)
	}()
	for d := range descs {
		if name, help := nameAndHelp(d); !plain(name) {
			found[name] = help
		}
	}
	return found
}

// nameAndHelp reads the text of a description, which is the only way to its parts.
func nameAndHelp(d *prometheus.Desc) (name, help string) {
	text := d.String()
	for _, part := range []struct {
		after string
		into  *string
	}{{"Desc{fqName: ", &name}, {", help: ", &help}} {
		rest, ok := strings.CutPrefix(text, part.after)
		quoted, err := strconv.QuotedPrefix(rest)
		if !ok || err != nil {
			return name, help
		}
		text = rest[len(quoted):]
		if *part.into, err = strconv.Unquote(quoted); err != nil {
			return name, help
		}
	}
	return name, help
}

// omits reports whether a metric is not shown.
func (s *Selection) omits(name string, l life) bool {
	return slices.Contains(s.Disabled, name) || !s.Hidden && l.hidden(s.Release)
}
