package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/json"
)

// JSON collects the outcomes of a codec.
type JSON struct{ Codec json.Codec }

var jsonValues = prometheus.NewDesc("rowlock_json_values_total",
	"JSON values that were decoded, encoded, checked or converted to Protobuf, by implementation: own; standard, because of --json-codec or the type; or standard after own, because the value was unclean or own code failed.",
	[]string{"operation", "implementation"}, nil)

// Describe implements prometheus.Collector.
func (JSON) Describe(ch chan<- *prometheus.Desc) { ch <- jsonValues }

// Collect implements prometheus.Collector.
func (j JSON) Collect(ch chan<- prometheus.Metric) {
	j.Codec.Each(func(o json.Operation, w json.Outcome, times int64) {
		ch <- prometheus.MustNewConstMetric(jsonValues, prometheus.CounterValue, float64(times), o.String(), w.String())
	})
}
