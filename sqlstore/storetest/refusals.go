package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Refusing is something that keeps a database from taking writes, or from answering reads.
type Refusing struct {
	Name  string
	Begin func(t *testing.T) (end func(t *testing.T))
	Kind  sqlstore.Kind
	Words string // of the database, for the log and the check
	Reads bool   // it is reads that are refused
}

// follower is a driver that never leads, so that nothing but the test asks.
type follower struct{ sqlstore.Driver }

func (follower) Lead(context.Context, string) (<-chan struct{}, func(), bool, error) {
	return nil, nil, false, nil
}

// linesWith counts the lines of a log that have all of some parts.
func linesWith(log *Log, parts ...string) (n int) {
	for line := range strings.Lines(log.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

// Refusals tries each on a database of its own: while it lasts, writes (or reads) fail with its kind, the log has one
// line about it, with the database's text, and the store reports it; when it ends they succeed, the log has a line, and
// the store is healthy. open gets short limits, as each try waits for them.
func Refusals(t *testing.T, fresh func(t testing.TB) Database, cases []func(db Database) Refusing) {
	for _, c := range cases {
		db := fresh(t)
		r := c(db)
		t.Run(r.Name, func(t *testing.T) {
			var log Log
			s := serve(t, follower{db.Open(t)}, sqlstore.Config{RetryFor: time.Millisecond, Log: log.Logger()})
			write(t, s, create(pod("a"), "0").Ops...)
			try := func() error {
				if r.Reads {
					_, err := s.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Limit: 10})
					return err
				}
				_, err := s.Write(t.Context(), create(pod("b"), "0").Ops...)
				return err
			}
			state, begins, ends := s.Writable, "the store takes no writes", "the store takes writes again"
			if r.Reads {
				state, begins, ends = s.Readable, "the store answers no reads", "the store answers reads again"
			}
			if err := state(); err != nil {
				t.Fatalf("before: %v", err)
			}
			end := r.Begin(t)
			for range 3 {
				if err := try(); sqlstore.KindOf(err) != r.Kind || !strings.Contains(err.Error(), r.Words) {
					t.Errorf("while it lasts: %q, which is %q; want %q with %q", err, sqlstore.KindOf(err), r.Kind, r.Words)
				}
				if err := state(); sqlstore.KindOf(err) != r.Kind || !strings.Contains(err.Error(), r.Words) {
					t.Errorf("the store reports %v while it lasts", err)
				}
			}
			if n := linesWith(&log, begins, "kind="+string(r.Kind), r.Words); n != 1 {
				t.Errorf("%d lines say that it began: %s", n, log.String())
			}
			end(t)
			for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
				err := try()
				if err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("it is over, and still: %v", err)
				}
			}
			if err := state(); err != nil {
				t.Errorf("when it is over the store reports %v", err)
			}
			if n := linesWith(&log, ends, "kind="+string(r.Kind)); n != 1 {
				t.Errorf("%d lines say that it ended: %s", n, log.String())
			}
		})
	}
}

// BySQL is refused from one statement to another.
func BySQL(name string, kind sqlstore.Kind, words, begin, end string) func(Database) Refusing {
	return func(db Database) Refusing {
		return Refusing{Name: name, Kind: kind, Words: words, Begin: func(t *testing.T) func(*testing.T) {
			db.Exec(t, begin)
			return func(t *testing.T) { db.Exec(t, end) }
		}}
	}
}
