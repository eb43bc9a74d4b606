package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

var _ sqlstore.Copier = (*Driver)(nil)

// Triggers drop the keys of copies where a live row is changed in place, by whatever program. Around
// them, too, a table may get other rows: kv is dropped and made anew from a dump, or a dump with
// the keys in it is edited and read into this database or another one, by inserts, which fire no trigger. So the
// keys hold only in the table that they were written for (its number, and that of the cluster), and in the very row
// that they were written to: its number is the transaction that wrote it, which PostgreSQL remembers of
// each row, and who reads a dump in has another. Physical copies, standbys and templates have all three.
//
// A database that goes back to an older state, as by a standby that lacked commits, or point-in-time recovery, has the keys that
// it had then, and they hold. But servers may have gone on beside it, with objects in memory that it never had. So what they
// read is vouched for only in the database that they read it from, and while PostgreSQL has not been started anew.
// The row, of whatever content, is what triggers and servers wait for each other at: an edition begins after all
// transactions that changed rows in place before it.

// Copies implements sqlstore.Copier.
func (d *Driver) Copies(ctx context.Context) (c sqlstore.Copies, err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	known, err := readCopies(ctx, d.pool, qCopies)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	if err == nil && !known.usable() {
		if _, err = d.pool.Exec(ctx, qCopiesRow); err == nil {
			err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
				if known, err = readCopies(ctx, tx, qLockCopies); err != nil || known.usable() {
					return err
				}
				if !known.guarded {
					return errUnguarded
				}
				known.Copies = sqlstore.NewCopies()
				return known.write(ctx, tx)
			})
		}
	}
	if err != nil {
		return c, fmt.Errorf("reading the keys of copies: %w", err)
	}
	known.Edition = known.readAs()
	return known.Copies, nil
}

// Vouch implements sqlstore.Copier.
func (d *Driver) Vouch(ctx context.Context, edition, name string, key [32]byte) (err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		known, err := readCopies(ctx, tx, qLockCopies)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && (!known.usable() || known.readAs() != edition) {
			return sqlstore.ErrEdited
		}
		if err != nil {
			return err
		}
		known.Add(name, key)
		return known.write(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("vouching for a copy: %w", err)
	}
	return nil
}

// storedCopies are those in kv_meta, and whether they are of this table.
type storedCopies struct {
	sqlstore.Copies
	table   string // the number of the cluster, and of kv in it
	guarded bool   // the triggers are there, and fire
	since   string // the number of the database, and when PostgreSQL was started
	valid   bool
}

// readAs is what who reads rows now has to show to vouch for them.
func (c *storedCopies) readAs() string { return c.Edition + " " + c.since }

// errUnguarded: a table that was made anew has no triggers, and somebody may have switched them off.
var errUnguarded = errors.New("table kv lacks triggers that tell of rows that are changed in place, or they are switched off (migrations/postgres/0009_copies.up.sql makes them)")

// usable says that the keys hold, and will be dropped when they do not any more.
func (c *storedCopies) usable() bool { return c.valid && c.guarded }

func readCopies(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, query string) (c storedCopies, err error) {
	var word string
	var written bool
	if err := q.QueryRow(ctx, query).Scan(&c.table, &c.guarded, &c.since, &word, &written); err != nil {
		return c, err
	}
	table, list, _ := strings.Cut(word, "\n")
	if written && table == c.table {
		c.Copies, c.valid = sqlstore.ParseCopies(list)
	}
	return c, nil
}

func (c *storedCopies) write(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, qSetCopies, c.table+"\n"+c.Text())
	return err
}

// outlinePiece is how many revisions are handed out at once.
const outlinePiece = 4096

// Outline implements sqlstore.Copier: it visits the pages of kv that have live rows, in their order, and no
// values that are stored aside. One connection does: several would visit them all, each for its part.
func (d *Driver) Outline(ctx context.Context, revision int64, _ []sqlstore.Key, take func([]int64) error) error {
	// However long it takes in all, it has to go on.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(d.cfg.StatementTimeout, func() { cancel(errSilent) })
	defer silence.Stop()
	var refused error // by take
	err := d.whole(ctx, revision, func(tx pgx.Tx, head int64) error {
		rows, err := tx.Query(ctx, qOutline, revision, head)
		if err != nil {
			return err
		}
		defer rows.Close()
		piece := make([]int64, 0, outlinePiece)
		for more := true; more && refused == nil; {
			for more = false; len(piece) < outlinePiece && rows.Next(); {
				var n int64
				if err := rows.Scan(&n); err != nil {
					return err
				}
				piece, more = append(piece, n), true
			}
			if len(piece) > 0 {
				refused = take(piece)
				silence.Reset(d.cfg.StatementTimeout)
				piece = piece[:0]
			}
		}
		if refused != nil {
			return refused
		}
		return rows.Err()
	})
	if err != nil && refused == nil {
		err = d.translate(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("reading the revisions of everything at %d: %w", revision, err)
	}
	return nil
}

// tripRows is how many rows are asked for at once.
const tripRows = 256

// ReadRows implements sqlstore.Copier.
func (d *Driver) ReadRows(ctx context.Context, revisions []int64, take func([]sqlstore.Row) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(d.parts)
	for some := range slices.Chunk(revisions, tripRows) {
		group.Go(func() error {
			if err := ctx.Err(); err != nil { // of another one
				return err
			}
			return d.readRows(ctx, some, take)
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading rows by their revisions: %w", err)
	}
	return nil
}

func (d *Driver) readRows(ctx context.Context, revisions []int64, take func([]sqlstore.Row) error) (err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	found := make([]int64, 0, len(revisions))
	hand := func(piece []sqlstore.Row) error {
		for i := range piece {
			found = append(found, piece[i].Revision)
		}
		return take(piece)
	}
	b, err := d.snapshot(ctx, func(batch *pgx.Batch) {
		batch.Queue(qWholeRows, revisions).Query(func(rows pgx.Rows) error { return handOut(rows, hand) })
	})
	if err != nil || len(found) == len(revisions) { // none comes twice
		return err
	}
	for _, revision := range revisions {
		if !slices.Contains(found, revision) {
			return &sqlstore.CompactedError{Revision: revision, Floor: b.Floor}
		}
	}
	return nil
}
