package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestSizeIsSteady updates the same objects over and over, with as many past rows
// kept at any time, and sees that file and log stop growing.
func TestSizeIsSteady(t *testing.T) {
	const objects, kept, rounds = 200, 400, 30
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{PollInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	hints := d.Hints(ctx)
	var at [objects]int64
	var sizes [rounds]int64
	for round := range rounds {
		var batch []sqlstore.Txn
		for i := range objects {
			key := sqlstore.Key{Resource: "pods", Namespace: "default", Name: fmt.Sprint(i * 7919 % objects)}
			op := sqlstore.Op{Verb: sqlstore.Update, Key: key, Expect: at[i], Value: bytes.Repeat([]byte{'a' + byte(round%26)}, 1500+(i*31+round*17)%1000)}
			if round == 0 {
				op.Verb = sqlstore.Create
			}
			batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{op}})
		}
		out, err := d.Apply(t.Context(), batch, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if out[i].Err != nil {
				t.Fatal(out[i].Err)
			}
			at[i] = out[i].Revisions[0]
		}
		for n := 50; n == 50; {
			if n, err = d.Trim(t.Context(), at[objects-1]-kept, 50); err != nil {
				t.Fatal(err)
			}
		}
		s, err := d.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sizes[round] = s.Bytes
		if log, err := os.Stat(path + "-wal"); err != nil || log.Size() > 66<<20 {
			t.Fatalf("the log has %v, %v", log, err)
		}
	}
	if soon, end := sizes[9], sizes[rounds-1]; end > soon+soon/10 {
		t.Errorf("the file has %d bytes after 10 rounds, %d after %d", soon, end, rounds)
	}
	cancel()
	for range hints {
	}
	storetest.CheckTable(t, d)
}
