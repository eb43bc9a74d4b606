package reconcile_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// TestMeter follows two objects through a queue by a clock that only the test moves.
func TestMeter(t *testing.T) {
	now := time.Unix(1000, 0)
	queues := reconcile.NewMetrics(func() time.Time { return now })
	registry := prometheus.NewRegistry()
	registry.MustRegister(queues)
	q := queues.Of("namespace")
	check := func(when string, want map[string]float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			m := f.Metric[0]
			if f.GetName() == "rowlock_controllers_standing_back" {
				continue
			}
			if len(f.Metric) != 1 || len(m.Label) != 1 || m.Label[0].GetName() != "name" || m.Label[0].GetValue() != "namespace" {
				t.Fatal(f)
			}
			switch f.GetType() {
			case dto.MetricType_GAUGE:
				got[f.GetName()] = m.Gauge.GetValue()
			case dto.MetricType_COUNTER:
				got[f.GetName()] = m.Counter.GetValue()
			default:
				got[f.GetName()+" sum"], got[f.GetName()+" count"] = m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount())
			}
		}
		if len(got) != 9 {
			t.Errorf("%s: %v", when, got)
		}
		for name, value := range got {
			if value != want[name] {
				t.Errorf("%s: %s is %v, want %v", when, name, value, want[name])
			}
		}
	}
	check("at first", nil)
	q.Add(2)
	now = now.Add(3 * time.Second)
	check("waiting", map[string]float64{"workqueue_depth": 2, "workqueue_adds_total": 2})
	q.Work(func() bool {
		now = now.Add(2 * time.Second)
		check("working", map[string]float64{
			"workqueue_depth": 1, "workqueue_adds_total": 2, "workqueue_queue_duration_seconds sum": 3, "workqueue_queue_duration_seconds count": 1,
			"workqueue_unfinished_work_seconds": 2, "workqueue_longest_running_processor_seconds": 2,
		})
		return false
	})
	q.Work(func() bool { return true })
	check("done", map[string]float64{
		"workqueue_adds_total": 2, "workqueue_queue_duration_seconds sum": 8, "workqueue_queue_duration_seconds count": 2,
		"workqueue_work_duration_seconds sum": 2, "workqueue_work_duration_seconds count": 2, "workqueue_retries_total": 1,
	})
	q.Add(1)
	q.Clear()
	check("cleared", map[string]float64{
		"workqueue_adds_total": 3, "workqueue_queue_duration_seconds sum": 8, "workqueue_queue_duration_seconds count": 2,
		"workqueue_work_duration_seconds sum": 2, "workqueue_work_duration_seconds count": 2, "workqueue_retries_total": 1,
	})
	var none *reconcile.Meter
	none.Add(1)
	none.Clear()
	if !none.Work(func() bool { return true }) {
		t.Error("nothing was done without a queue")
	}
}
