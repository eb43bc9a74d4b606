package sqlstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// able is a driver of which each role has something that many databases lack.
type able struct {
	sqlstore.Driver
	attestor sqlstore.Attestor
	err      error
}

func (a able) ReadAll(context.Context, int64, func([]sqlstore.Row) error) error { return a.err }
func (a able) Healthy() error                                                   { return a.err }
func (a able) RewindCount() int64                                               { return 7 }
func (a able) Rewinds() sqlstore.Rewinds                                        { return sqlstore.Rewinds{Count: 7} }
func (a able) ChecksRows() bool                                                 { return true }
func (a able) Attestor() sqlstore.Attestor                                      { return a.attestor }

// wrapped embeds a driver, as wrappers do.
type wrapped struct{ sqlstore.Driver }

// TestWrappersLoseNothing: a Store has the abilities of its driver behind any wrapper.
func TestWrappersLoseNothing(t *testing.T) {
	failed := errors.New("asked of the driver")
	var attestor struct{ sqlstore.Attestor }
	s := sqlstore.New(wrapped{wrapped{able{attestor: attestor, err: failed}}}, sqlstore.Config{})
	if err := s.ReadAll(t.Context(), 1, nil); !errors.Is(err, failed) {
		t.Errorf("ReadAll: %v", err)
	}
	if err := s.Writable(); !errors.Is(err, failed) {
		t.Errorf("Healthy: %v", err)
	}
	if s.Rewinds().Count != 7 || s.Rewound() {
		t.Errorf("%+v, went back: %v", s.Rewinds(), s.Rewound())
	}
	if !s.ChecksRows() || s.Attestor() == nil {
		t.Errorf("it checks rows: %v, an attestor: %v", s.ChecksRows(), s.Attestor())
	}
}
