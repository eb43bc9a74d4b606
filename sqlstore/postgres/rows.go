package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// scanner reads rows of the columns list, behind the columns front and before the columns extra. It shares the strings that
// rows in key order repeat.
type scanner struct{ resource, namespace string }

func (s *scanner) row(rows pgx.Rows, extra ...any) (sqlstore.Row, error) {
	return s.scan(rows, nil, extra)
}

func (s *scanner) scan(rows pgx.Rows, front, extra []any) (sqlstore.Row, error) {
	var r sqlstore.Row
	var superseded *int64
	var expires *time.Time
	dest := append(front, &r.Revision, &r.Key.Resource, &r.Key.Namespace, &r.Key.Name, &r.Created, &superseded, &r.Deleted, &r.Value, &expires, &r.WrittenAt)
	dest = append(dest, extra...)
	if err := rows.Scan(dest...); err != nil {
		return r, err
	}
	if superseded != nil {
		r.Superseded = *superseded
	}
	if expires != nil {
		r.ExpiresAt = expires.UTC()
	}
	r.WrittenAt = r.WrittenAt.UTC()
	if r.Key.Resource == s.resource {
		r.Key.Resource = s.resource
	}
	if r.Key.Namespace == s.namespace {
		r.Key.Namespace = s.namespace
	}
	s.resource, s.namespace = r.Key.Resource, r.Key.Namespace
	return r, nil
}

func collect(rows pgx.Rows) ([]sqlstore.Row, error) {
	return collectPage(rows, &sqlstore.ScanRequest{Limit: math.MaxInt})
}

// collectPage collects rows until a page of the request is full.
func collectPage(rows pgx.Rows, req *sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	defer rows.Close()
	var out []sqlstore.Row
	var s scanner
	for bytes := 0; !req.Full(len(out), bytes) && rows.Next(); {
		r, err := s.row(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
		bytes += len(r.Value)
	}
	rows.Close()
	return out, rows.Err()
}

func queryRows(ctx context.Context, q querier, sql string, args ...any) ([]sqlstore.Row, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows)
}

func queryRow(ctx context.Context, q querier, sql string, args ...any) (sqlstore.Row, bool, error) {
	rows, err := queryRows(ctx, q, sql, args...)
	if err != nil || len(rows) == 0 {
		return sqlstore.Row{}, false, err
	}
	return rows[0], true, nil
}

// page makes a callback that carries the rows of a page out.
func page(dst *[]sqlstore.Row, req *sqlstore.ScanRequest) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*dst, err = collectPage(rows, req)
		return err
	}
}

// into makes a callback that carries rows out.
func into(dst *[]sqlstore.Row) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*dst, err = collect(rows)
		return err
	}
}

// snapshot sends reads behind the bounds that they must be seen with, and hands the
// bounds out. It takes one round trip, and one more after each nil among the reads.
func (d *Driver) snapshot(ctx context.Context, reads ...func(*pgx.Batch)) (b sqlstore.Bounds, err error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return b, err
	}
	defer conn.Release()
	batch := &pgx.Batch{}
	batch.Queue(qBeginSnapshot)
	d.queueSettings(batch)
	batch.Queue(qBounds).QueryRow(func(row pgx.Row) error { return row.Scan(&b.Floor, &b.Head) })
	for _, read := range reads {
		if read != nil {
			read(batch)
			continue
		}
		if err == nil {
			err = conn.SendBatch(ctx, batch).Close()
		}
		batch = &pgx.Batch{}
	}
	batch.Queue(qCommit)
	if err == nil {
		err = conn.SendBatch(ctx, batch).Close()
	}
	if err != nil && !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		_, e := conn.Exec(ctx, "ROLLBACK")
		err = errors.Join(err, e)
	}
	return b, err
}
