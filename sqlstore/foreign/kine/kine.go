// Package kine reads and fills databases that kine keeps for API servers of other makers: k3s, and other uses
// of kine with a kube-apiserver.
//
//	kine.go     the rows of its table, whatever the database
//	url.go      which of them a URL names
//	write.go    the table filled anew, whatever the database; write_sqlite.go: as a file
//	postgres.go, mysql.go  those databases
//	sqlite.go   a SQLite file, also one that is in use or was left with its -wal
//	queries.go  the statements
//
// Its table `kine` has a row for each write: id is the revision, name the key; the newest row of a name is
// the live one, unless it is marked as deleted. created marks the first write of a key, whose create_revision
// is 0; later ones name the first. lease is the lifetime of the key in seconds. kine's own rows
// (compact_rev_key, gaps) are returned like others.
//
// A read sees one state of the database, despite concurrent writes; it does not change the source; memory
// holds a row at a time. A Source is for one goroutine at a time and starts none.
package kine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// dialect holds the differences between databases.
type dialect struct {
	describe string // for people, without credentials
	head     string // the newest revision; statement without parameters
	// live selects id, name, create_revision, lease, bytes and value of the live rows in
	// bytewise order of name; the value is NULL where it is longer than the parameter.
	live string
	tx   *sql.TxOptions
	// limit is the parameter of live, as the driver takes it.
	limit any
}

// Source is a kine database.
type Source struct {
	db       *sql.DB
	tx       *sql.Tx // in which everything is read
	dialect  dialect
	revision int64
	now      time.Time
	cleanup  func() error
}

var _ foreign.Source = (*Source)(nil)

// begin reads the revision in the transaction in which everything else is read. It owns db
// and cleanup, also where it fails.
func begin(ctx context.Context, db *sql.DB, d dialect, cleanup func() error) (*Source, error) {
	s := &Source{db: db, dialect: d, now: time.Now(), cleanup: cleanup}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", d.describe, err), s.Close())
	}
	return s, nil
}

// isKine refuses databases that are not kine's; table counts the columns that there are.
func isKine(ctx context.Context, db *sql.DB, table, otherwise string) error {
	var columns int
	if err := db.QueryRowContext(ctx, table).Scan(&columns); err != nil {
		return err
	}
	if columns != kineColumns {
		return errors.New(otherwise + ": it has no table kine with its columns")
	}
	return nil
}

// beginTx begins a transaction that outlives ctx, which only bounds the wait for a database that does not
// answer.
func beginTx(ctx context.Context, db *sql.DB, opt *sql.TxOptions) (*sql.Tx, error) {
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	tx, err := db.BeginTx(waiting, opt)
	if err != nil {
		cancel()
		return nil, err
	}
	if !stop() { // ctx has ended in the meantime, and the transaction with it
		return nil, errors.Join(ctx.Err(), tx.Rollback())
	}
	return tx, nil
}

func (s *Source) begin(ctx context.Context) (err error) {
	if s.tx, err = beginTx(ctx, s.db, s.dialect.tx); err != nil {
		return err
	}
	var head sql.NullInt64
	if err := s.tx.QueryRowContext(ctx, s.dialect.head).Scan(&head); err != nil {
		return err
	}
	if !head.Valid || head.Int64 <= 0 {
		return errors.New("the table kine has no rows")
	}
	s.revision = head.Int64
	return nil
}

// Describe implements foreign.Source.
func (s *Source) Describe() string { return s.dialect.describe }

// Revision implements foreign.Source.
func (s *Source) Revision() int64 { return s.revision }

// Close implements foreign.Source.
func (s *Source) Close() error {
	var errs []error
	if s.tx != nil {
		if err := s.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, s.db.Close())
	if s.cleanup != nil {
		errs = append(errs, s.cleanup())
	}
	return errors.Join(errs...)
}

// Entries implements foreign.Source.
func (s *Source) Entries(ctx context.Context) iter.Seq2[foreign.Entry, error] {
	return func(yield func(foreign.Entry, error) bool) {
		err := s.entries(ctx, func(e foreign.Entry) bool { return yield(e, nil) })
		if err != nil {
			yield(foreign.Entry{}, fmt.Errorf("reading %s: %w", s.dialect.describe, err))
		}
	}
}

// Count implements foreign.Counter. It includes deleted names.
func (s *Source) Count(ctx context.Context) (n int64, err error) {
	if err := s.tx.QueryRowContext(ctx, qNames).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting %s: %w", s.dialect.describe, err)
	}
	return n, nil
}

func (s *Source) entries(ctx context.Context, yield func(foreign.Entry) bool) error {
	rows, err := s.tx.QueryContext(ctx, s.dialect.live, s.dialect.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	last := ""
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.name, &r.created, &r.lease, &r.size, &r.value); err != nil {
			return err
		}
		e, err := r.entry(s.now)
		if err != nil {
			return err
		}
		if e.Key <= last {
			return fmt.Errorf("it sends key %q after %q, which is not the order that was asked for", foreign.Shown(e.Key), foreign.Shown(last))
		}
		last = e.Key
		if !yield(e) {
			return nil
		}
	}
	return rows.Err()
}

// row is the newest of its name, and not deleted.
type row struct {
	id             int64
	name           sql.RawBytes
	created, lease sql.NullInt64
	size           sql.NullInt64
	value          sql.RawBytes
}

// entry returns the entry of the row. A row whose value is too long is an entry without its value.
func (r *row) entry(now time.Time) (foreign.Entry, error) {
	if len(r.name) == 0 {
		return foreign.Entry{}, fmt.Errorf("the row with id %d has no name", r.id)
	}
	e := foreign.Entry{Key: string(r.name), Value: r.value, ModRevision: r.id, CreateRevision: r.created.Int64}
	e.CreateRevision = cmp.Or(e.CreateRevision, r.id)
	if seconds := r.lease.Int64; seconds > 0 && seconds < 1<<31 {
		e.ExpiresAt = now.Add(time.Duration(seconds) * time.Second)
	}
	if err := foreign.Check(e.Key, r.size.Int64); err != nil {
		e.Value, e.Unread = nil, err
	}
	return e, nil
}
