package pack_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// distant is a database with ended rows, one of each of many keys, to which each query takes long.
type distant struct {
	pack.Snapshot
	keys int
}

func (distant) wait(ctx context.Context) error {
	sqlstore.Sleep(ctx, 30*time.Millisecond)
	return ctx.Err()
}

func (distant) key(n int) sqlstore.Key {
	return sqlstore.Key{Resource: "pods", Namespace: "a", Name: fmt.Sprintf("%06d", n)}
}

func (d distant) Ended(ctx context.Context, key sqlstore.Key, written, _, _ int64, _ int) (rows []sqlstore.Row, more bool, err error) {
	if key.Name != "" && written < 1 {
		rows = append(rows, sqlstore.Row{Key: key, Revision: 1, Created: 1, Superseded: 2})
	}
	return rows, false, d.wait(ctx)
}

func (d distant) Around(ctx context.Context, _ sqlstore.Key, _ int64) (*pack.Pack, error) {
	return nil, d.wait(ctx)
}

func (d distant) NextEnded(ctx context.Context, after sqlstore.Key) (sqlstore.Key, bool, error) {
	n := 0
	if after.Name != "" {
		if _, err := fmt.Sscanf(after.Name, "%d", &n); err != nil {
			return after, false, err
		}
		n++
	}
	return d.key(n), n < d.keys, d.wait(ctx)
}

func (d distant) NextPacked(ctx context.Context, after sqlstore.Key) (sqlstore.Key, bool, error) {
	return after, false, d.wait(ctx)
}

func (distant) Stays(*sqlstore.Row) bool { return false }

func (d distant) Below(ctx context.Context, _ sqlstore.Key, _, _ int64, _ int) ([]pack.Pack, error) {
	return nil, d.wait(ctx)
}

// TestGatherFromAfar: less is packed at once where each query takes long, so that there is time to write it. All rows are packed.
func TestGatherFromAfar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := distant{keys: 1000}
		var done sqlstore.Packed
		for calls := 0; !done.Done; calls++ {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err := pack.Gather(ctx, d, sqlstore.Floors{}, 10, done.Next, 1000, pack.MaxRows, &done)
			cancel()
			if err != nil || calls > 50 {
				t.Fatalf("after %d calls %d rows are packed, %v", calls, done.Rows, err)
			}
		}
		if done.Rows != d.keys {
			t.Errorf("%d rows are packed", done.Rows)
		}
	})
}

// TestOlderFromAfar: pages of history are shorter where each query takes long, so that a page is read before its time is over. All rows
// come, each once.
func TestOlderFromAfar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := distant{keys: 1000}
		read, pages := 0, 0
		for after := (sqlstore.Cursor{}); ; pages++ {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			rows, err := pack.Older(ctx, d, sqlstore.Floors{}, 10, after, 1000)
			cancel()
			if err != nil {
				t.Fatalf("after %d rows: %v", read, err)
			}
			if len(rows) == 0 {
				break
			}
			for _, row := range rows {
				if row.Key != d.key(read) {
					t.Fatalf("row %d is %s", read, row.Key)
				}
				read++
			}
			after = sqlstore.Cursor{Key: rows[len(rows)-1].Key, Revision: rows[len(rows)-1].Revision}
		}
		if read != d.keys || pages > 50 {
			t.Errorf("%d rows in %d pages", read, pages)
		}
	})
}
