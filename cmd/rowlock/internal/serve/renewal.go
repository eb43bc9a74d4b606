package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/datadir"
)

// renewEvery is the interval of checking the certificates in the data directory.
const renewEvery = time.Hour

// expiryWarning is the time before its expiry from which each check reports a certificate that nothing renews.
const expiryWarning = 30 * 24 * time.Hour

// renewalLoop renews certificates of the data directory while the server runs. Their users reload the files.
func renewalLoop(dir *datadir.Dir, alone bool, log *slog.Logger) server.Loop {
	look := func(now time.Time) {
		changed, err := dir.Renew(now, alone)
		if err != nil {
			log.Error("certificates of the data directory cannot be renewed", "error", err)
		} else if len(changed) > 0 {
			log.Info("certificates of the data directory are renewed", "files", changed)
		}
		for name, end := range dir.Ends() {
			if left := end.Sub(now); left < expiryWarning {
				log.Warn("a certificate expires soon; see `rowlock init --renew-authority`", "file", name, "left", left.Round(time.Hour))
			}
		}
	}
	return server.Loop{Name: "certificates of the data directory", Run: func(ctx context.Context) error {
		ticks := time.NewTicker(renewEvery)
		defer ticks.Stop()
		for {
			look(time.Now())
			select {
			case <-ctx.Done():
				return nil
			case <-ticks.C:
			}
		}
	}}
}

// certificateEnds reports the expiry of the certificates in the data directory.
type certificateEnds struct {
	dir  *datadir.Dir
	desc *prometheus.Desc
}

func newCertificateEnds(dir *datadir.Dir) prometheus.Collector {
	return &certificateEnds{dir, prometheus.NewDesc("rowlock_certificate_end_timestamp_seconds",
		"When a certificate of the data directory ends, in seconds since 1970.", []string{"file"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *certificateEnds) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *certificateEnds) Collect(ch chan<- prometheus.Metric) {
	for name, end := range c.dir.Ends() {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(end.Unix()), name)
	}
}
