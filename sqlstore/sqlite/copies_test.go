package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestCopies(t *testing.T) {
	storetest.Copies(t, fresh, map[string]storetest.Way{
		"a dump is read in": storetest.ByExec(`PRAGMA user_version = 0`),
		"keys are damaged":  storetest.ByExec(`UPDATE kv_meta SET value = 'x' || value WHERE key = 'copies'`),
	}, nil)
}

// nothing is a sink of changes that are not looked at.
type nothing struct{}

func (nothing) Apply([]sqlstore.Change) {}

// TestCopiesOfALaterState: who has shown revisions that the database does not have any more has a copy of another one.
func TestCopiesOfALaterState(t *testing.T) {
	s := sqlstore.New(fresh(t).Open(t), sqlstore.Config{})
	known, err := s.Copies().Copies(t.Context())
	if err == nil {
		err = s.Copies().Vouch(t.Context(), known.Edition, "copy", [32]byte{1})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, 7, nothing{}) }()
	for s.Applied() < 7 {
		time.Sleep(time.Millisecond)
	}
	if err := s.Copies().Vouch(t.Context(), known.Edition, "late", [32]byte{2}); !errors.Is(err, sqlstore.ErrEdited) {
		t.Errorf("vouching for what is ahead of the database: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	known, err = s.Copies().Copies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := known.Key("late"); ok {
		t.Error("the late copy is vouched for")
	}
	if _, ok := known.Key("copy"); !ok {
		t.Error("the first copy is not")
	}
}
