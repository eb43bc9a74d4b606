package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// ServerFlags are the flags of a server that backs up its database.
type ServerFlags struct {
	dir string
	Flags
}

const backupPrefix = "backup-"

func (o *ServerFlags) AddTo(f *pflag.FlagSet) {
	f.StringVar(&o.dir, "backup-dir", "", "folder that each commit is backed up to within a second, as by store backup --follow; of several servers on a database one does so at a time, so that theirs should be the same folder")
	o.Flags.AddTo(f, backupPrefix)
}

// Validate checks the flags before anything is opened.
func (o *ServerFlags) Validate(flags *pflag.FlagSet) error {
	if _, err := o.Config(backupPrefix); err != nil {
		return err
	}
	for _, name := range []string{backupPrefix + "keep", backupPrefix + "base-every"} {
		if o.dir == "" && flags != nil && flags.Changed(name) {
			return fmt.Errorf("--%s: is of use with --backup-dir alone", name)
		}
	}
	return nil
}

// leadName is the name of the lead for backups: one server at a time holds it.
const leadName = "backup"

// lateAfter is the lag from which on health checks mention it.
const lateAfter = 15 * time.Second

// Apply adds the backup to the server. A failed backup is tried again and does not affect requests.
func (o *ServerFlags) Apply(cfg *server.Config, d sqlstore.Driver, log *slog.Logger) error {
	if o.dir == "" {
		return nil
	}
	c, err := o.Config(backupPrefix)
	if err != nil {
		return err
	}
	c.Dir, c.Driver, c.Log = o.dir, d, log
	f := follow.New(c)
	store := cfg.Store
	cfg.Loops = append(cfg.Loops, server.Loop{Name: leadName, Run: func(ctx context.Context) error {
		return store.Lead(ctx, leadName, func(ctx context.Context) {
			if err := f.Run(ctx); err != nil {
				log.Error("the backup ended; starting it again", "error", err)
			}
		})
	}})
	cfg.Collectors = append(cfg.Collectors, &backupMetrics{f})
	cfg.ReadyChecks = append(cfg.ReadyChecks, health.Check{Name: "backup", Probe: func(context.Context) error { return backupHealth(f.Stats()) }})
	return nil
}

// backupHealth returns a remark if the backup lags. It does not make the server unready: requests are served as usual.
func backupHealth(s follow.Stats) error {
	var err error
	switch {
	case !s.Active:
	case s.Behind > lateAfter:
		err = fmt.Errorf("the backup is %s behind: %s", s.Behind.Round(time.Second), s.LastError)
	case s.BaseError != "":
		err = errors.New("the backup has no new base: " + s.BaseError)
	}
	if err == nil {
		return nil
	}
	return &health.Remark{Shown: "the backup is behind", Err: err}
}

// backupMetrics are the metrics of this server's backup.
type backupMetrics struct{ f *follow.Follower }

var (
	backupActive   = prometheus.NewDesc("rowlock_backup_active", "Whether this server writes the backup: 1, or 0 where another does.", nil, nil)
	backupLag      = prometheus.NewDesc("rowlock_backup_lag_revisions", "Commits of the database that are not in the backup yet.", nil, nil)
	backupBehind   = prometheus.NewDesc("rowlock_backup_lag_seconds", "How long ago the backup last had everything that was in the database.", nil, nil)
	backupRevision = prometheus.NewDesc("rowlock_backup_revision", "The newest revision in the backup.", nil, nil)
	backupSynced   = prometheus.NewDesc("rowlock_backup_last_sync_timestamp_seconds", "When the backup was last written to the disk, in seconds since 1970.", nil, nil)
	backupBytes    = prometheus.NewDesc("rowlock_backup_log_bytes_total", "Bytes written to the log of the backup.", nil, nil)
	backupBases    = prometheus.NewDesc("rowlock_backup_bases_total", "Bases that were taken for the backup.", nil, nil)
	backupGaps     = prometheus.NewDesc("rowlock_backup_gaps_total", "How often commits could not be followed, and the backup has a gap.", nil, nil)
	backupFailures = prometheus.NewDesc("rowlock_backup_failures_total", "How often the backup could not go on, and was tried again.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *backupMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backupActive, backupLag, backupBehind, backupRevision, backupSynced, backupBytes, backupBases, backupGaps, backupFailures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Only the server that writes the backup reports its progress.
func (m *backupMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.f.Stats()
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	count := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	count(backupBytes, s.Bytes)
	count(backupBases, s.Bases)
	count(backupGaps, s.Gaps)
	count(backupFailures, s.Failures)
	if !s.Active {
		gauge(backupActive, 0)
		return
	}
	gauge(backupActive, 1)
	gauge(backupLag, float64(max(0, s.Head-s.Revision)))
	gauge(backupBehind, s.Behind.Seconds())
	gauge(backupRevision, float64(s.Revision))
	if !s.Synced.IsZero() {
		gauge(backupSynced, float64(s.Synced.UnixMilli())/1000)
	}
}
