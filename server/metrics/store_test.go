package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/sqlstore"
)

func TestStore(t *testing.T) {
	s := metrics.NewStore()
	counted := 0
	s.Pool = func() (int, int, int) { return 5, 3, 8 }
	s.Stats = func(context.Context) (sqlstore.Stats, error) {
		counted++
		return sqlstore.Stats{Driver: "sqlite", LiveRows: 10, HistoryRows: 20, Bytes: 4096}, nil
	}
	var _ sqlstore.Observer = s
	s.Committed(3, 4, time.Millisecond, nil)
	s.Committed(1, 1, time.Millisecond, fmt.Errorf("%w: cut", sqlstore.ErrUncertain))
	s.Committed(1, 1, time.Millisecond, errors.New("other"))
	s.Applied(7, 9, 250*time.Millisecond)
	s.Trimmed(5, 100)
	s.Packed(60, 60_000, 4_000)
	s.Expired(2)
	s.EffectiveRetention(sqlstore.Retention{Default: time.Hour, ByResource: map[string]time.Duration{"events": time.Minute}}, 0)
	s.EffectiveRetention(sqlstore.Retention{Default: time.Hour, ByResource: map[string]time.Duration{"leases": time.Minute}}, time.Second)
	s.Queried("scan", time.Millisecond, nil)
	s.Queried("scan", time.Millisecond, sqlstore.ErrBusy)
	s.Reconnected()
	s.Refused(sqlstore.OpWrite, sqlstore.KindBusy)
	s.Refused(sqlstore.OpWrite, sqlstore.KindBusy)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	for range 2 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, f := range families {
			for _, m := range f.Metric {
				labels := ""
				for _, l := range m.Label {
					labels += l.GetName() + "=" + l.GetValue()
				}
				value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				fmt.Fprintf(&text, "%s{%s} %v\n", f.GetName(), labels, value)
			}
		}
		for _, line := range []string{
			"rowlock_store_commit_duration_seconds{result=ok} 1", "rowlock_store_commit_duration_seconds{result=uncertain} 1",
			"rowlock_store_commit_duration_seconds{result=failed} 1", "rowlock_store_commit_writes{} 1", "rowlock_store_operations_total{} 4",
			"rowlock_store_lag_seconds{} 0.25", "rowlock_store_compacted_rows_total{} 100", "rowlock_store_packed_rows_total{} 60", "rowlock_store_packed_saved_bytes{} 56000", "rowlock_store_expired_objects_total{} 2",
			"rowlock_store_history_retention_seconds{resource=*} 3600", "rowlock_store_history_retention_seconds{resource=leases} 60", "rowlock_store_history_lowered_in_seconds{} 1",
			"rowlock_store_query_duration_seconds{query=scan} 2", "rowlock_store_query_failures_total{query=scan} 1", "rowlock_store_feed_reconnects_total{} 1", "rowlock_store_refusals_total{kind=busyoperation=write} 2",
			"rowlock_store_connections{state=idle} 3", "rowlock_store_connections{state=in_use} 2", "rowlock_store_connections_max{} 8",
			"rowlock_store_rows{state=live} 10", "rowlock_store_rows{state=history} 20", "rowlock_store_bytes{} 4096",
		} {
			if !strings.Contains(text.String(), line+"\n") {
				t.Errorf("no %q in\n%s", line, text.String())
			}
		}
	}
	if counted != 1 {
		t.Errorf("the database was counted %d times", counted)
	}
}
