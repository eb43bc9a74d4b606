package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestCacheFiles(t *testing.T) {
	storetest.CacheFiles(t, fresh, map[string]storetest.Event{
		"keys are damaged": storetest.ByExec(`UPDATE kv_meta SET value = 'x' || value WHERE key = 'cache_files'`),
	}, nil)
}

// nothing is a sink of changes that are not looked at.
type nothing struct{}

func (nothing) Apply([]sqlstore.Change) {}

// TestCacheFileOfALaterState: a server that has shown revisions which the database lacks has no file attested to.
func TestCacheFileOfALaterState(t *testing.T) {
	s := sqlstore.New(fresh(t).Open(t), sqlstore.Config{})
	known, err := s.Attestor().CacheFiles(t.Context())
	if err == nil {
		err = s.Attestor().Attest(t.Context(), known.Epoch, "file", [32]byte{1})
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
	if err := s.Attestor().Attest(t.Context(), known.Epoch, "late", [32]byte{2}); !errors.Is(err, sqlstore.ErrEpochChanged) {
		t.Errorf("attesting to what is ahead of the database: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	known, err = s.Attestor().CacheFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := known.Key("late"); ok {
		t.Error("the database attests to the late file")
	}
	if _, ok := known.Key("file"); !ok {
		t.Error("the database does not attest to the first file")
	}
}
