package archive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// compacting is a database whose server compacts the history below the log while a backup reads it.
type compacting struct {
	sqlstore.Driver
	t     *testing.T
	after int // how many pages are read before
	to    map[string]int64
}

func (c *compacting) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) ([]sqlstore.Row, error) {
	if c.after--; c.after == 0 {
		f, err := c.Driver.Floors(ctx)
		if err == nil {
			f, err = c.Driver.Retain(ctx, sqlstore.Floors{Log: f.Log, Past: c.to})
		}
		if err == nil {
			err = sqlstore.Pack(ctx, c.Driver, 1, func(sqlstore.Packed) {})
		}
		if err == nil {
			err = sqlstore.Forget(ctx, c.Driver, 1)
		}
		if err != nil {
			c.t.Error(err)
		}
	}
	return c.Driver.Older(ctx, upTo, after, min(limit, 2))
}

// TestHistoryCompactedMeanwhile: where a server deletes history while a backup with history reads it, the backup begins again: each
// past state that the restored database has is one that there was.
func TestHistoryCompactedMeanwhile(t *testing.T) {
	for name, to := range map[string]map[string]int64{
		"of all":            {"": 20},
		"of one resource":   {"": 0, "leases": 20},
		"of the rest":       {"": 20, "leases": 0},
		"nothing was there": {"": 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			d := memory.New(memory.Config{}).Open()
			defer d.Close()
			last := map[sqlstore.Key]int64{}
			states := map[int64]map[sqlstore.Key]int64{}
			for i := range 40 {
				key := sqlstore.Key{Resource: []string{"leases.coordination.k8s.io", "pods"}[i%2], Namespace: "ns", Name: fmt.Sprint(i % 6)}
				op := sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: fmt.Appendf(nil, `{"n":%d}`, i)}
				if last[key] > 0 {
					op.Verb, op.Expect = sqlstore.Update, last[key]
				}
				out, err := d.Apply(ctx, []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now())
				if err == nil {
					err = out[0].Err
				}
				if err != nil {
					t.Fatal(err)
				}
				last[key] = out[0].Revisions[0]
				states[last[key]] = maps.Clone(last)
			}
			if _, err := d.Retain(ctx, sqlstore.Floors{Log: 30, Past: map[string]int64{"": 0}}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "backup.gz")
			if _, _, err := archive.BackupFile(ctx, &compacting{d, t, 2, to}, path, archive.Options{History: true}); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			again := memory.New(memory.Config{}).Open()
			defer again.Close()
			if _, _, err := archive.Restore(ctx, again, file, nil); err != nil {
				t.Fatal(err)
			}
			for revision, want := range states {
				for _, resource := range []string{"leases.coordination.k8s.io", "pods"} {
					rows, err := again.Scan(ctx, sqlstore.ScanRequest{Resource: resource, Revision: revision, Limit: 100})
					var compacted *sqlstore.CompactedError
					if errors.As(err, &compacted) && (revision < 20 && name != "nothing was there") {
						continue
					}
					if err != nil {
						t.Fatalf("%s at %d: %v", resource, revision, err)
					}
					got := map[sqlstore.Key]int64{}
					for _, row := range rows {
						got[row.Key] = row.Revision
					}
					wanted := maps.Clone(want)
					maps.DeleteFunc(wanted, func(k sqlstore.Key, _ int64) bool { return k.Resource != resource })
					if !maps.Equal(got, wanted) {
						t.Errorf("%s at %d: %v, want %v", resource, revision, got, wanted)
					}
				}
			}
		})
	}
}
