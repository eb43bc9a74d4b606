package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestBackupHealth: the text of the check of a backup, which is a remark and leaves the server ready.
func TestBackupHealth(t *testing.T) {
	for name, c := range map[string]struct {
		stats follow.Stats
		want  string
	}{
		"another server writes":     {follow.Stats{Behind: time.Hour, LastError: "x", BaseError: "y"}, ""},
		"well":                      {follow.Stats{Active: true, Behind: time.Second}, ""},
		"a failure that was mended": {follow.Stats{Active: true, Failures: 3, Behind: lateAfter}, ""},
		"behind":                    {follow.Stats{Active: true, Behind: lateAfter + time.Second, LastError: "no space left"}, "16s behind: no space left"},
		"no base":                   {follow.Stats{Active: true, BaseError: "the disk is slow"}, "no new base: the disk is slow"},
	} {
		err := backupHealth(c.stats)
		var remark *health.Remark
		switch {
		case c.want == "" && err == nil:
		case c.want == "" || !errors.As(err, &remark) || !strings.Contains(remark.Err.Error(), c.want):
			t.Errorf("%s: the check says %v, want %q", name, err, c.want)
		}
	}
}

// TestBackupMetrics follows a database, takes the folder away for a while, and reads the metrics.
func TestBackupMetrics(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "backup")
	d, err := sqlite.Open(t.Context(), filepath.Join(parent, "test.db"), sqlite.Config{Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	write := func(name string) {
		t.Helper()
		op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: name}, Value: []byte("{}")}
		if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	f := follow.New(follow.Config{Driver: d, Dir: dir, Every: 5 * time.Millisecond})
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(&backupMetrics{f})
	if got := gathered(t, metrics); got["rowlock_backup_active"] != 0 || len(got) != 5 {
		t.Errorf("before it runs it reports %v", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	write("a")
	got := await(t, metrics, func(m map[string]float64) bool {
		return m["rowlock_backup_bases_total"] == 1 && m["rowlock_backup_revision"] == 1
	})
	if got["rowlock_backup_active"] != 1 || got["rowlock_backup_lag_seconds"] > lateAfter.Seconds() || got["rowlock_backup_failures_total"]+got["rowlock_backup_gaps_total"] != 0 {
		t.Errorf("while it follows it reports %v", got)
	}
	if now := float64(time.Now().Unix()); got["rowlock_backup_last_sync_timestamp_seconds"] > now+1 || got["rowlock_backup_last_sync_timestamp_seconds"] < now-60 || len(got) != 9 {
		t.Errorf("it was synced at %v", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	write("b")
	got = await(t, metrics, func(m map[string]float64) bool {
		return m["rowlock_backup_failures_total"] > 0 && m["rowlock_backup_lag_revisions"] == 1
	})
	if s := f.Stats(); s.LastError == "" || got["rowlock_backup_active"] != 1 {
		t.Errorf("without its folder it reports %v, %q", got, s.LastError)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	await(t, metrics, func(m map[string]float64) bool {
		return m["rowlock_backup_revision"] == 2 && m["rowlock_backup_lag_revisions"] == 0
	})
	if s := f.Stats(); s.LastError != "" {
		t.Errorf("after catching up it still reports %q", s.LastError)
	}
}

// gathered returns the values of metrics by name. Their help texts must be sentences.
func gathered(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		if !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("the help of %s is %q", f.GetName(), f.GetHelp())
		}
		m := f.GetMetric()[0]
		values[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return values
}

func await(t *testing.T, from prometheus.Gatherer, done func(map[string]float64) bool) map[string]float64 {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := gathered(t, from)
		if done(got) {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("in vain: %v", got)
		}
	}
}
