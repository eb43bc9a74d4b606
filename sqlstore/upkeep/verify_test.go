package upkeep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// trimmed is a database that another server compacts by one revision, so often, just before
// its log is read.
type trimmed struct {
	sqlstore.Driver
	times int
	to    int64
}

func (d *trimmed) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	if d.times > 0 && after == d.to {
		d.times--
		d.to++
		if _, err := d.Trim(ctx, d.to, 100); err != nil {
			return nil, err
		}
	}
	return d.Driver.Changes(ctx, after, limit, previous)
}

// TestVerifyDuringCompaction: compaction during Verify is no error; Verify begins again with the rest, and
// gives up if that is compacted again and again.
func TestVerifyDuringCompaction(t *testing.T) {
	for _, c := range []struct {
		times int
		ends  bool
	}{{1, true}, {4, true}, {5, false}} {
		d := memory.New(memory.Config{}).Open()
		defer d.Close()
		for i := range int64(10) {
			op := sqlstore.Op{Verb: sqlstore.Update, Expect: i, Key: sqlstore.Key{Resource: "r", Name: "x"}, Value: []byte(`{}`)}
			if i == 0 {
				op.Verb = sqlstore.Create
			}
			if _, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		report, err := upkeep.Verify(t.Context(), &trimmed{Driver: d, times: c.times}, nil)
		var compacted *sqlstore.CompactedError
		if c.ends && (err != nil || report.Count != 0 || report.From != int64(c.times) || report.To != 10 || report.Changes != 10-int64(c.times)) {
			t.Errorf("compacted %d times: %+v, %v", c.times, report, err)
		}
		if !c.ends && !errors.As(err, &compacted) {
			t.Errorf("compacted %d times: %+v, %v", c.times, report, err)
		}
	}
}
