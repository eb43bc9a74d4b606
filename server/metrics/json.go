package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/json"
)

// JSON collects the outcomes of a codec.
type JSON struct{ Codec json.Codec }

var jsonValues = prometheus.NewDesc("rowlock_json_values_total",
	"JSON values that were decoded, encoded, checked or made Protobuf, by the way it was done: own code, the standard packages because of --json-codec or the type, or these because the value was unclean or own code failed.",
	[]string{"operation", "way"}, nil)

// Describe implements prometheus.Collector.
func (JSON) Describe(ch chan<- *prometheus.Desc) { ch <- jsonValues }

// Collect implements prometheus.Collector.
func (j JSON) Collect(ch chan<- prometheus.Metric) {
	j.Codec.Each(func(o json.Operation, w json.Outcome, times int64) {
		ch <- prometheus.MustNewConstMetric(jsonValues, prometheus.CounterValue, float64(times), o.String(), w.String())
	})
}
