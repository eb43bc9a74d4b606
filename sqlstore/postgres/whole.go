package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

// maxParts bounds the connections that share reading all rows. Where the database's cache is cold
// they keep as many reads under way; more than a few only add work.
const maxParts = 4

// ReadAll implements sqlstore.Reader: on several connections, and on each in the order in which the
// table stores its rows. Key order would visit its pages at random, and those with values that are
// stored out of line many times over. The snapshot is one of revisions, so the connections need not
// share one of PostgreSQL's.
func (d *Driver) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for part := range d.parts {
		group.Go(func() error { return d.readPart(ctx, revision, d.parts, part, take) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading everything at %d: %w", revision, err)
	}
	return nil
}

func (d *Driver) readPart(ctx context.Context, revision int64, parts, part int, take func([]sqlstore.Row) error) error {
	return d.whole(ctx, revision, func(ctx context.Context, tx pgx.Tx, head int64, taken func(error) error) error {
		rows, err := tx.Query(ctx, qWhole, revision, head, parts, part)
		if err != nil {
			return err
		}
		return handOut(rows, func(piece []sqlstore.Row) error { return taken(take(piece)) })
	})
}

// handOut hands out rows of wholeColumns, in pieces.
func handOut(rows pgx.Rows, take func([]sqlstore.Row) error) error {
	defer rows.Close()
	p := sqlstore.Pieces{Take: take}
	var last sqlstore.Key // neighbours share their strings
	for rows.Next() {
		var r sqlstore.Row
		if err := rows.Scan(&r.Revision, &r.Key.Resource, &r.Key.Namespace, &r.Key.Name, &r.Created, &r.Value); err != nil {
			return err
		}
		if r.Key.Resource == last.Resource {
			r.Key.Resource = last.Resource
		}
		if r.Key.Namespace == last.Namespace {
			r.Key.Namespace = last.Namespace
		}
		last = r.Key
		if err := p.Add(r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return p.Flush()
}

// whole calls read in a transaction that reads pages in their order, if a revision can be read in it. It may take long in all, but
// fails once the database is silent for StatementTimeout: read passes the result of the caller's take for each piece to taken,
// and ends with an error of it.
func (d *Driver) whole(ctx context.Context, revision int64, read func(ctx context.Context, tx pgx.Tx, head int64, taken func(error) error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(d.cfg.StatementTimeout, func() { cancel(errSilent) })
	defer silence.Stop()
	var refused error
	taken := func(err error) error {
		refused = err
		silence.Reset(d.cfg.StatementTimeout)
		return err
	}
	txOptions := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, d.pool, txOptions, func(tx pgx.Tx) error {
		var b sqlstore.Bounds
		batch := &pgx.Batch{}
		d.queueSettings(batch)
		batch.Queue(qWholeSettings)
		batch.Queue(qBounds).QueryRow(func(row pgx.Row) error { return row.Scan(&b.Floor, &b.Head) })
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		d.grown(b.Head)
		if err := b.Check(revision); err != nil {
			return err
		}
		return read(ctx, tx, b.Head, taken)
	})
	if err == nil || refused != nil {
		return refused
	}
	return d.translate(ctx, err)
}
