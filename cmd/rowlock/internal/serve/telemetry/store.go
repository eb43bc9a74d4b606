package telemetry

import (
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// MeasureStore makes the metrics of a store; use sets the driver once it is open.
func MeasureStore() (m *metrics.Store, use func(sqlstore.Driver)) {
	m = metrics.NewStore()
	return m, func(d sqlstore.Driver) {
		m.Stats = d.Stats
		m.Relaxed, m.Rewinds = d.RelaxedStats, d.Rewinds
		if pg, ok := d.(*postgres.Driver); ok {
			m.Pool = func() (open, idle, most int) {
				total, free, _, limit := pg.Pool()
				return int(total), int(free), int(limit)
			}
		}
	}
}
