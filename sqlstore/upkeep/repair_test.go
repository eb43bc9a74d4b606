package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// cut is a driver that loses the answer to each commit, and fails the first times when it is asked for the outcome. Like other drivers it
// forgets the outcome with the next commit.
type cut struct {
	sqlstore.Driver
	out   []sqlstore.Outcome
	fails error
	times int
}

func (c *cut) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) (out []sqlstore.Outcome, err error) {
	if c.out, err = c.Driver.Apply(ctx, batch, now); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("cut: %w", sqlstore.ErrUncertain)
}

func (c *cut) Resolve(context.Context) ([]sqlstore.Outcome, bool, error) {
	if c.times > 0 {
		c.times--
		return nil, false, fmt.Errorf("resolving: %w", c.fails)
	}
	return c.out, true, nil
}

// TestDeleteWithALostAnswer: a command asks again for the outcome of its write, also while the database cannot be reached, and does not
// write again. If it does not find the outcome, it reports no other error than that.
func TestDeleteWithALostAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		fails error
		times int
		want  error
	}{
		"busy":                {sqlstore.ErrBusy, 1, nil},
		"a failover":          {sqlstore.ErrUnavailable, 250, nil},
		"no database anymore": {sqlstore.ErrUnavailable, 1000, sqlstore.ErrUncertain},
		"busy for long":       {sqlstore.ErrBusy, 1000, sqlstore.ErrUncertain},
		"never to be found":   {sqlstore.ErrUncertain, 1, sqlstore.ErrUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := storetest.NewShared().Open()
				create := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Value: []byte("{}")}
				if _, err := memory.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{create}}}, time.Now()); err != nil {
					t.Fatal(err)
				}
				row, err := memory.Read(t.Context(), create.Key, 0)
				if err != nil {
					t.Fatal(err)
				}
				revision, err := upkeep.Delete(t.Context(), &cut{Driver: memory, fails: c.fails, times: c.times}, row)
				if c.want == nil && (err != nil || revision != 2) || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("the delete has revision %d, %v", revision, err)
				}
				if b, err := memory.Bounds(t.Context()); err != nil || b.Head != 2 {
					t.Errorf("%+v, %v: it was written again", b, err)
				}
			})
		})
	}
}
