package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// stagings counts the calls of Stage that succeeded and whose Unstage is still due.
type stagings struct {
	sqlstore.Driver
	begun, due *atomic.Int64
}

func (s stagings) Stage(ctx context.Context, ops []sqlstore.Op) error {
	err := s.Driver.Stage(ctx, ops)
	if err == nil {
		s.begun.Add(1)
		s.due.Add(1)
	}
	return err
}

func (s stagings) Unstage(ops []sqlstore.Op, committed bool) {
	s.due.Add(-1)
	s.Driver.Unstage(ops, committed)
}

// largeThroughStore has several writers of large values, some of which give up, together with writers of small ones.
func largeThroughStore(t *testing.T, db Database) {
	var begun, due atomic.Int64
	d := stagings{db.Open(t), &begun, &due}
	s := serve(t, d, sqlstore.Config{Sealer: NewTestSealer("k")})
	const writers, writes = 3, 4
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			op := sqlstore.Op{Verb: sqlstore.Create, Key: key("secrets", "default", fmt.Sprint("large", w))}
			for i := range writes {
				op.Value = LargeJSON(w*10+i, sqlstore.LargeValue+w*sqlstore.LargeValue/2)
				out, err := s.Write(t.Context(), op)
				if err != nil {
					t.Errorf("%s: %v", op.Key, err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				stale := op
				stale.Key.Name, stale.Verb = fmt.Sprintf("stale%d-%d", w, i), sqlstore.Create
				time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
				if _, err := s.Write(ctx, stale); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", stale.Key, err)
				}
				if op.Verb == sqlstore.Update {
					var conflict *sqlstore.ConflictError
					if _, err := s.Write(t.Context(), op); !errors.As(err, &conflict) {
						t.Errorf("%s: writing it again gave %v", op.Key, err)
					}
				}
				op.Verb, op.Expect = sqlstore.Update, out.Revisions[0]
			}
		})
		writing.Go(func() {
			for i := range 30 {
				if _, err := s.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Create, Key: pod(fmt.Sprintf("small%d-%d", w, i)), Value: []byte("{}")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	for w := range writers {
		row, err := s.Read(t.Context(), key("secrets", "default", fmt.Sprint("large", w)), 0)
		if want := LargeJSON(w*10+writes-1, sqlstore.LargeValue+w*sqlstore.LargeValue/2); err != nil || !bytes.Equal(row.Value, want) {
			t.Errorf("large%d has %d bytes, %v; want %d", w, len(row.Value), err, len(want))
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	log := s.Log(t)
	contiguous(t, log, 0)
	last := sqlstore.Op{Verb: sqlstore.Create, Key: pod("late"), Value: LargeJSON(99, sqlstore.LargeValue)}
	_, err := s.Write(t.Context(), last)
	wantErr(t, err, sqlstore.ErrClosed)
	if begun.Load() < writers*writes+1 || due.Load() != 0 {
		t.Errorf("%d stagings were begun, %d have not ended", begun.Load(), due.Load())
	}
	table := changes(t, d, 0)
	if len(table) < len(log) {
		t.Fatalf("the sink has %d changes, the table %d", len(log), len(table))
	}
	CheckTable(t, d)
}
