package metrics

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/sqlstore"
)

// Store measures a store and its database. It is a sqlstore.Observer and a prometheus.Collector. Make one
// with NewStore.
type Store struct {
	// Pool, if set, returns the numbers of connections: open, idle and allowed.
	Pool func() (open, idle, most int)
	// Behind, if set, returns for how long memory has lacked a known change.
	Behind func() time.Duration
	// Relaxed, if set, counts writes that were acknowledged before the disk had them.
	Relaxed func() sqlstore.RelaxedStats
	// Rewinds, if set, returns how often the database went back.
	Rewinds func() sqlstore.Rewinds
	// Stats, if set, returns rows and bytes. It is called at most every five minutes, as
	// counting takes time.
	Stats func(ctx context.Context) (sqlstore.Stats, error)

	*metricset.Set
	commits    *prometheus.HistogramVec
	batches    prometheus.Histogram
	operations prometheus.Counter
	reconnects prometheus.Counter
	reloads    prometheus.Counter
	trimmed    prometheus.Counter
	packed     prometheus.Counter
	saved      prometheus.Gauge
	expired    prometheus.Counter
	keeping    *prometheus.GaugeVec
	lowering   prometheus.Gauge
	queries    *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	refusals   *prometheus.CounterVec

	mu    sync.Mutex
	stats sqlstore.Stats
	kept  string // as it is shown
	asked time.Time

	lag   atomic.Int64 // of the newest change, in nanoseconds
	fedAt atomic.Int64 // since began
	began time.Time
}

const statsEvery = 5 * time.Minute

// NewStore makes the metrics of a store.
func NewStore() *Store {
	fast := prometheus.ExponentialBuckets(0.0001, 2, 17) // 0.1 ms to 6.5 s
	s := metricset.New("rowlock_store_")
	return &Store{
		Set: s, began: time.Now(),
		commits:    s.Histograms("commit_duration_seconds", "Time of one commit of a group of writes, by result: ok, failed, uncertain.", fast, "result"),
		batches:    s.Histogram("commit_writes", "Writes in one commit.", prometheus.ExponentialBuckets(1, 2, 10)),
		operations: s.Counter("operations_total", "Operations in commits that were done."),
		reconnects: s.Counter("feed_reconnects_total", "How often the connection that listens for other servers' writes was reestablished."),
		reloads:    s.Counter("feed_reloads_total", "How often all objects were loaded anew, because the feed had fallen behind the history that is kept."),
		trimmed:    s.Counter("compacted_rows_total", "Rows of history that compaction deleted."),
		packed:     s.Counter("packed_rows_total", "Rows of history that were put together in packs."),
		saved:      s.Gauge("packed_saved_bytes", "How much smaller packs are than the values that this server put into them."),
		expired:    s.Counter("expired_objects_total", "Objects deleted because their time had come."),
		keeping:    s.Gauges("history_retention_seconds", "For how long the server that compacts keeps history, by resource; * is the rest.", "resource"),
		lowering:   s.Gauge("history_lowered_in_seconds", "Time until the server that compacts deletes history that a lowered --history-retention does not cover; 0 where none waits."),
		queries:    s.Histograms("query_duration_seconds", "Time of a call of the database other than a commit, by its kind.", fast, "query"),
		failures:   s.Counters("query_failures_total", "Calls that the database did not answer, or refused.", "query"),
		refusals:   s.Counters("refusals_total", "Commits (operation write) and other calls that the database refused for good, by kind: full, read-only, gone, damaged, refused, uncertain, busy, unavailable, rejected.", "operation", "kind"),
	}
}

// Committed implements sqlstore.Observer.
func (s *Store) Committed(txns, ops int, d time.Duration, err error) {
	result := "ok"
	switch {
	case errors.Is(err, sqlstore.ErrUncertain):
		result = "uncertain"
	case err != nil:
		result = "failed"
	default:
		s.batches.Observe(float64(txns))
		s.operations.Add(float64(ops))
	}
	s.commits.WithLabelValues(result).Observe(d.Seconds())
}

// Applied implements sqlstore.Observer.
func (s *Store) Applied(_, _ int64, lag time.Duration) {
	s.lag.Store(int64(max(0, lag)))
	s.fedAt.Store(int64(time.Since(s.began)))
}

// lagged returns how old the newest change was when memory got it, or for how long one
// has been missing; nothing where none came for a while.
func (s *Store) lagged() time.Duration {
	if s.Behind != nil {
		if d := s.Behind(); d > 0 {
			return d
		}
	}
	if time.Since(s.began)-time.Duration(s.fedAt.Load()) > lagFor {
		return 0
	}
	return time.Duration(s.lag.Load())
}

// lagFor is the time for which the lag of a change is reported: longer than usual scrape
// intervals.
const lagFor = time.Minute

// Reloaded implements sqlstore.Observer.
func (s *Store) Reloaded(int64, time.Duration) { s.reloads.Inc() }

// Trimmed implements sqlstore.Observer.
func (s *Store) Trimmed(_ int64, rows int) { s.trimmed.Add(float64(rows)) }

// Packed implements sqlstore.Observer.
func (s *Store) Packed(rows int, bytes, stored int64) {
	s.packed.Add(float64(rows))
	s.saved.Add(float64(bytes - stored))
}

// Expired implements sqlstore.Observer.
func (s *Store) Expired(rows int) { s.expired.Add(float64(rows)) }

// EffectiveRetention implements sqlstore.Observer.
func (s *Store) EffectiveRetention(kept sqlstore.Retention, left time.Duration) {
	s.lowering.Set(left.Seconds())
	text := kept.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == text {
		return
	}
	s.kept = text
	s.keeping.Reset()
	s.keeping.WithLabelValues("*").Set(kept.Default.Seconds())
	for name, d := range kept.ByResource {
		s.keeping.WithLabelValues(name).Set(d.Seconds())
	}
}

// Queried implements sqlstore.Observer.
func (s *Store) Queried(name string, d time.Duration, err error) {
	s.queries.WithLabelValues(name).Observe(d.Seconds())
	if sqlstore.KindOf(err) != "" {
		s.failures.WithLabelValues(name).Inc()
	}
}

// Refused implements sqlstore.Observer.
func (s *Store) Refused(operation string, kind sqlstore.Kind) {
	s.refusals.WithLabelValues(operation, string(kind)).Inc()
}

// Reconnected counts a new connection of the feed.
func (s *Store) Reconnected() { s.reconnects.Inc() }

var (
	lagSecondsDesc  = prometheus.NewDesc("rowlock_store_lag_seconds", "Age of the newest change when memory got it, or for how long memory has lacked one; 0 when none came for a minute.", nil, nil)
	connectionsDesc = prometheus.NewDesc("rowlock_store_connections", "Connections to the database by state: idle, in_use.", []string{"state"}, nil)
	maxDesc         = prometheus.NewDesc("rowlock_store_connections_max", "Most connections that the pool may open.", nil, nil)
	rowsDesc        = prometheus.NewDesc("rowlock_store_rows", "Rows in the database by state: live, history; minutes old.", []string{"state"}, nil)
	relaxedDesc     = prometheus.NewDesc("rowlock_store_relaxed_writes_total", "Writes that were acknowledged before the disk had them (--relaxed-durability).", nil, nil)
	unsyncedDesc    = prometheus.NewDesc("rowlock_store_unsynced_seconds", "Age of the oldest acknowledged write that the disk may not have.", nil, nil)
	unflushedDesc   = prometheus.NewDesc("rowlock_store_relaxed_sync_failures_total", "How often bringing such writes to the disk failed.", nil, nil)
	wentBackDesc    = prometheus.NewDesc("rowlock_store_went_back_total", "How often the database was found to have gone back to an older state, or may have: promoted, restored, copied, or rows deleted.", nil, nil)
	lostDesc        = prometheus.NewDesc("rowlock_store_lost_revisions_total", "Revisions that this server had met and that the database did not have then.", nil, nil)
	refusedDesc     = prometheus.NewDesc("rowlock_store_refused_databases_total", "Connections that were refused as the database takes writes but is older than the one used before.", nil, nil)
	bytesDesc       = prometheus.NewDesc("rowlock_store_bytes", "Size of the database, on disk or in memory; minutes old.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	s.Set.Describe(ch)
	for _, d := range []*prometheus.Desc{lagSecondsDesc, connectionsDesc, maxDesc, rowsDesc, bytesDesc, relaxedDesc, unsyncedDesc, unflushedDesc, wentBackDesc, lostDesc, refusedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.Set.Collect(ch)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(lagSecondsDesc, s.lagged().Seconds())
	if s.Pool != nil {
		open, idle, most := s.Pool()
		gauge(connectionsDesc, float64(idle), "idle")
		gauge(connectionsDesc, float64(open-idle), "in_use")
		gauge(maxDesc, float64(most))
	}
	if s.Relaxed != nil {
		r := s.Relaxed()
		ch <- prometheus.MustNewConstMetric(relaxedDesc, prometheus.CounterValue, float64(r.Writes))
		ch <- prometheus.MustNewConstMetric(unflushedDesc, prometheus.CounterValue, float64(r.Failures))
		gauge(unsyncedDesc, r.Unsynced.Seconds())
	}
	if s.Rewinds != nil {
		r := s.Rewinds()
		ch <- prometheus.MustNewConstMetric(wentBackDesc, prometheus.CounterValue, float64(r.Count))
		ch <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, float64(r.Lost))
		ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(r.Others))
	}
	if stats, ok := s.counted(); ok {
		gauge(rowsDesc, float64(stats.LiveRows), "live")
		gauge(rowsDesc, float64(stats.HistoryRows), "history")
		gauge(bytesDesc, float64(stats.Bytes))
	}
}

// counted refreshes the statistics if they are old, and returns them.
func (s *Store) counted() (sqlstore.Stats, bool) {
	if s.Stats == nil {
		return sqlstore.Stats{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.IsZero() || time.Since(s.asked) > statsEvery {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.asked = time.Now()
		if stats, err := s.Stats(ctx); err == nil { // else the old ones stay
			s.stats = stats
		}
	}
	return s.stats, s.stats.Driver != ""
}
