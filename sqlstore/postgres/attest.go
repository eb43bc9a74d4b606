package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

// Attestor implements sqlstore.Admin.
func (d *Driver) Attestor() sqlstore.Attestor { return d }

// A database that goes back to an earlier state, by failover to a standby that lacked commits or by point-in-time recovery, has
// the keys of that state, and they are valid. But servers may have continued meanwhile, with objects in memory that it never had.
// So Attest accepts only what was read from this very database, and only until PostgreSQL restarts.

// CacheFiles implements sqlstore.Attestor.
func (d *Driver) CacheFiles(ctx context.Context) (files sqlstore.CacheFiles, err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	known, err := readCacheFiles(ctx, d.pool, qCacheFiles)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	if err == nil && !known.valid {
		if _, err = d.pool.Exec(ctx, qCacheFilesRow); err == nil {
			err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
				if known, err = readCacheFiles(ctx, tx, qLockCacheFiles); err != nil || known.valid {
					return err
				}
				known.CacheFiles = sqlstore.NewEpoch()
				return known.write(ctx, tx)
			})
		}
	}
	if err != nil {
		return files, fmt.Errorf("reading which cache files the database attests to: %w", err)
	}
	known.Epoch = known.shown()
	return known.CacheFiles, nil
}

// Attest implements sqlstore.Attestor.
func (d *Driver) Attest(ctx context.Context, epoch, name string, key [32]byte) (err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		known, err := readCacheFiles(ctx, tx, qLockCacheFiles)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && (!known.valid || known.shown() != epoch) {
			return sqlstore.ErrEpochChanged
		}
		if err != nil {
			return err
		}
		known.Add(name, key)
		return known.write(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("attesting to a cache file: %w", err)
	}
	return nil
}

// NewEpoch implements sqlstore.Attestor.
func (d *Driver) NewEpoch(ctx context.Context) (err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	files := sqlstore.NewEpoch()
	if _, err := d.pool.Exec(ctx, qSetCacheFiles, files.Text()); err != nil {
		return fmt.Errorf("beginning a new epoch: %w", err)
	}
	return nil
}

// storedFiles are the cache files in kv_meta.
type storedFiles struct {
	sqlstore.CacheFiles
	valid bool   // there is an epoch
	since string // the number of the database, when PostgreSQL was started, and the number of the line
}

// shown returns the epoch as CacheFiles shows it.
func (f *storedFiles) shown() string { return f.Epoch + " " + f.since }

func readCacheFiles(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, query string) (f storedFiles, err error) {
	var word string
	if err := q.QueryRow(ctx, query).Scan(&f.since, &word); err != nil {
		return f, err
	}
	f.CacheFiles, f.valid = sqlstore.ParseCacheFiles(word)
	return f, nil
}

func (f *storedFiles) write(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, qSetCacheFiles, f.Text())
	return err
}

// revisionsPiece is the number of revisions of a piece.
const revisionsPiece = 4096

// ListRevisions implements sqlstore.Attestor: it visits the pages of kv that have live rows, in their order, and no
// values that are stored out of line. One connection does: several would visit them all, each for its part.
func (d *Driver) ListRevisions(ctx context.Context, revision int64, _ []sqlstore.Key, take func([]int64) error) error {
	err := d.whole(ctx, revision, func(ctx context.Context, tx pgx.Tx, head int64, taken func(error) error) error {
		rows, err := tx.Query(ctx, qListRevisions, revision, head)
		if err != nil {
			return err
		}
		defer rows.Close()
		piece := make([]int64, 0, revisionsPiece)
		for more := true; more; {
			for more = false; len(piece) < revisionsPiece && rows.Next(); {
				var n int64
				if err := rows.Scan(&n); err != nil {
					return err
				}
				piece, more = append(piece, n), true
			}
			if len(piece) > 0 {
				if err := taken(take(piece)); err != nil {
					return err
				}
				piece = piece[:0]
			}
		}
		return rows.Err()
	})
	if err != nil {
		return fmt.Errorf("reading the revisions of everything at %d: %w", revision, err)
	}
	return nil
}

// tripRows is the number of rows that one query reads.
const tripRows = 256

// ReadRows implements sqlstore.Attestor.
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
