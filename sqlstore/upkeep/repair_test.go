package upkeep_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// cut is a driver that loses the answer to each commit, and is busy when it is asked for the outcome for the first time. Like
// other drivers it forgets the outcome with the next commit.
type cut struct {
	sqlstore.Driver
	out  []sqlstore.Outcome
	busy bool
}

func (c *cut) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) (out []sqlstore.Outcome, err error) {
	if c.out, err = c.Driver.Apply(ctx, batch, now); err != nil {
		return nil, err
	}
	c.busy = true
	return nil, fmt.Errorf("cut: %w", sqlstore.ErrUncertain)
}

func (c *cut) Resolve(context.Context) ([]sqlstore.Outcome, bool, error) {
	if c.busy {
		c.busy = false
		return nil, false, sqlstore.ErrBusy
	}
	return c.out, true, nil
}

// TestDeleteWithALostAnswer: a command asks again for the outcome of its write, and does not write again.
func TestDeleteWithALostAnswer(t *testing.T) {
	memory := storetest.NewShared().Open()
	create := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Value: []byte("{}")}
	if _, err := memory.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{create}}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	row, err := memory.Read(t.Context(), create.Key, 0)
	if err != nil {
		t.Fatal(err)
	}
	if revision, err := upkeep.Delete(t.Context(), &cut{Driver: memory}, row); err != nil || revision != 2 {
		t.Errorf("the delete has revision %d, %v", revision, err)
	}
}
