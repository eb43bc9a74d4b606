package kine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// compactKey names the row in which kine keeps, as its previous revision, up to where
// history was compacted.
const compactKey = "compact_rev_key"

// writing holds the differences between databases.
type writing struct {
	describe string
	table    string           // counts the columns of a table of kine
	schema   []string         // the table and its indexes
	insert   string           // of id, name, created, create_revision, prev_revision, lease and value
	after    string           // when all rows are there; may be ""
	drop     string           // takes a table away whose making is not undone with the transaction; may be ""
	name     int              // how long a name of ASCII may be; 0: any
	taken    func(error) bool // reports whether a name exists already, if the database takes some names for equal; may be nil
	done     func() error
	cleanup  func() error
}

// Sink fills a database of kine: one row for each key, as if history before were
// compacted. It is for one goroutine.
type Sink struct {
	db      *sql.DB // nil: committed or aborted
	tx      *sql.Tx
	insert  *sql.Stmt
	w       writing
	made    bool // the table, which is to be dropped
	newest  int64
	started time.Time
}

var _ foreign.Sink = (*Sink)(nil)

// create owns db and cleanup, also where it fails.
func create(ctx context.Context, db *sql.DB, w writing) (*Sink, error) {
	s := &Sink{db: db, w: w, started: time.Now()}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(s.failed(err), s.Abort())
	}
	return s, nil
}

func (s *Sink) failed(err error) error { return fmt.Errorf("writing %s: %w", s.w.describe, err) }

func (s *Sink) begin(ctx context.Context) error {
	var columns, id int64
	if err := s.db.QueryRowContext(ctx, s.w.table).Scan(&columns); err != nil {
		return err
	}
	if columns > 0 {
		if err := s.db.QueryRowContext(ctx, qAny).Scan(&id); !errors.Is(err, sql.ErrNoRows) {
			return errors.Join(err, errors.New("its table kine has rows: an export goes into an empty database"))
		}
	}
	schema := s.w.schema
	if columns > 0 {
		schema = nil // kine made it, and adds missing indexes
	}
	if s.w.drop != "" {
		for _, statement := range schema {
			if _, err := s.db.ExecContext(ctx, statement); err != nil {
				return err
			}
			s.made = true
		}
		schema = nil
	}
	var err error
	if s.tx, err = beginTx(ctx, s.db, nil); err != nil {
		return err
	}
	for _, statement := range schema {
		if _, err := s.tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	s.insert, err = s.tx.PrepareContext(ctx, s.w.insert)
	return err
}

// Describe implements foreign.Sink.
func (s *Sink) Describe() string { return s.w.describe }

// Put implements foreign.Sink.
func (s *Sink) Put(ctx context.Context, e foreign.Entry) error {
	if err := foreign.Check(e.Key, int64(len(e.Value))); err != nil {
		return err
	}
	switch {
	case e.ModRevision <= 0 || e.CreateRevision <= 0 || e.CreateRevision > e.ModRevision:
		return &foreign.KeyError{Key: e.Key, Why: fmt.Sprintf("was created at revision %d and written at %d, which no key can be", e.CreateRevision, e.ModRevision)}
	case s.w.name > 0 && (len(e.Key) > s.w.name || !ascii(e.Key)):
		return &foreign.KeyError{Key: e.Key, Why: fmt.Sprintf("is longer than %d characters, or not of ASCII, which the table cannot hold", s.w.name)}
	}
	s.newest = max(s.newest, e.ModRevision)
	created, from := 1, int64(0)
	if e.CreateRevision < e.ModRevision {
		created, from = 0, e.CreateRevision
	}
	value := e.Value
	if value == nil {
		value = []byte{}
	}
	// Replaced rows are missing. A row without a previous ID keeps kine's compaction from deleting an
	// unrelated row with that number.
	_, err := s.insert.ExecContext(ctx, e.ModRevision, e.Key, created, from, 0, s.lease(e.ExpiresAt), value)
	if s.w.taken != nil && s.w.taken(err) {
		return &foreign.KeyError{Key: e.Key, Why: "is there already, or differs from another by its case alone, which a table that kine made cannot hold"}
	}
	if err != nil {
		return s.failed(fmt.Errorf("key %q: %w", foreign.Shown(e.Key), err))
	}
	return nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lease returns the lifetime of a key in seconds from now on; 0: no limit.
func (s *Sink) lease(end time.Time) int64 {
	if end.IsZero() {
		return 0
	}
	left := (end.Sub(s.started) + time.Second - 1) / time.Second
	return min(max(int64(left), 1), math.MaxInt32)
}

// Commit implements foreign.Sink. The row of the revision up to which history is compacted has
// the revision, or where a key has it, the next one: then the whole ends there.
func (s *Sink) Commit(ctx context.Context, revision int64) error {
	var err error
	switch {
	case s.db == nil:
		return errors.New("it is committed or aborted already")
	case revision < s.newest || revision <= 0:
		err = fmt.Errorf("its revision %d is below %d of a key", revision, s.newest)
	default:
		err = s.finish(ctx, revision)
	}
	if err != nil {
		err = s.failed(err)
	}
	return errors.Join(err, s.Abort())
}

func (s *Sink) finish(ctx context.Context, revision int64) error {
	id := revision
	if s.newest == revision {
		id++
	}
	if _, err := s.insert.ExecContext(ctx, id, compactKey, 1, 0, revision, 0, []byte{}); err != nil {
		return err
	}
	if s.w.after != "" {
		if _, err := s.tx.ExecContext(ctx, s.w.after); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.tx.Commit(); err != nil {
		return err
	}
	s.tx, s.made = nil, false
	if s.w.done != nil {
		return s.w.done()
	}
	return nil
}

// Abort implements foreign.Sink.
func (s *Sink) Abort() error {
	if s.db == nil {
		return nil
	}
	var errs []error
	if s.tx != nil {
		if err := s.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			errs = append(errs, err)
		}
	}
	if s.made {
		_, err := s.db.Exec(s.w.drop)
		errs = append(errs, err)
	}
	errs = append(errs, s.db.Close())
	if s.w.cleanup != nil {
		errs = append(errs, s.w.cleanup())
	}
	s.db, s.tx = nil, nil
	return errors.Join(errs...)
}
