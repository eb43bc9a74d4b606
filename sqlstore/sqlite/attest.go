package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

// Attestor implements sqlstore.Admin.
func (d *Driver) Attestor() sqlstore.Attestor { return d }

// CacheFiles implements sqlstore.Attestor.
func (d *Driver) CacheFiles(ctx context.Context) (files sqlstore.CacheFiles, err error) {
	found := false
	err = d.reader(ctx, func(r *conn) error {
		files, found, err = cacheFiles(r)
		return err
	})
	if err == nil && !found {
		_, err = d.writing(ctx, func(w *conn) error {
			if files, found, err = cacheFiles(w); err != nil || found {
				return err
			}
			files = sqlstore.NewEpoch()
			return w.exec(qSetCacheFiles, files.Text())
		})
	}
	if err != nil {
		return files, fmt.Errorf("reading which cache files the database attests to: %w", err)
	}
	return files, nil
}

// cacheFiles returns the cache files of the database; ok is false if it has no epoch.
func cacheFiles(c *conn) (files sqlstore.CacheFiles, ok bool, err error) {
	var v [1]driver.Value
	if found, err := c.one(v[:], qCacheFiles); err != nil || !found {
		return files, false, err
	}
	files, ok = sqlstore.ParseCacheFiles(text(v[0]))
	return files, ok, nil
}

// Attest implements sqlstore.Attestor.
func (d *Driver) Attest(ctx context.Context, epoch, name string, key [32]byte) error {
	_, err := d.writing(ctx, func(w *conn) error {
		files, ok, err := cacheFiles(w)
		if err != nil {
			return err
		}
		if !ok || files.Epoch != epoch {
			return sqlstore.ErrEpochChanged
		}
		files.Add(name, key)
		return w.exec(qSetCacheFiles, files.Text())
	})
	if err != nil {
		return fmt.Errorf("attesting to a cache file: %w", err)
	}
	return nil
}

// NewEpoch implements sqlstore.Attestor.
func (d *Driver) NewEpoch(ctx context.Context) error {
	_, err := d.writing(ctx, func(w *conn) error {
		files := sqlstore.NewEpoch()
		return w.exec(qSetCacheFiles, files.Text())
	})
	if err != nil {
		return fmt.Errorf("beginning a new epoch: %w", err)
	}
	return nil
}

// lastKey is behind all keys.
var lastKey = sqlstore.Key{Resource: "\xff"}

// ListRevisions implements sqlstore.Attestor: it reads an index alone, on several connections.
func (d *Driver) ListRevisions(ctx context.Context, revision int64, splits []sqlstore.Key, take func([]int64) error) error {
	ranges := make(chan [2]sqlstore.Key, len(splits)+1)
	from := sqlstore.Key{}
	for _, to := range append(splits[:len(splits):len(splits)], lastKey) {
		ranges <- [2]sqlstore.Key{from, to}
		from = to
	}
	close(ranges)
	group, within := errgroup.WithContext(ctx)
	for range d.parallel() {
		group.Go(func() error {
			for r := range ranges {
				if err := d.listRevisions(within, revision, take, qListRevisions, r[0].Resource, r[0].Namespace, r[0].Name, r[1].Resource, r[1].Namespace, r[1].Name, revision); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	if err == nil { // last: it contains the rows that ended while the others were read
		err = d.listRevisions(ctx, revision, take, qListEnded, revision)
	}
	if err != nil {
		return fmt.Errorf("reading the revisions of everything at %d: %w", revision, err)
	}
	return nil
}

func (d *Driver) listRevisions(ctx context.Context, revision int64, take func([]int64) error, query string, args ...any) error {
	piece := make([]int64, 0, spanRows)
	return d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		err := c.query(context.Background(), func(v []driver.Value) error {
			n, ok := v[0].(int64)
			if !ok {
				return &sqlstore.CorruptError{Reason: "a revision is no number"}
			}
			if piece = append(piece, n); len(piece) < spanRows {
				return nil
			}
			err := take(piece)
			if piece = piece[:0]; err == nil {
				err = ctx.Err()
			}
			return err
		}, query, args...)
		if err != nil || len(piece) == 0 {
			return err
		}
		return take(piece)
	})
}

// ReadRows implements sqlstore.Attestor.
func (d *Driver) ReadRows(ctx context.Context, revisions []int64, take func([]sqlstore.Row) error) error {
	parts := make(chan []int64)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(parts)
		for len(revisions) > 0 {
			n := min(len(revisions), spanRows)
			select {
			case parts <- revisions[:n]:
			case <-ctx.Done():
				return ctx.Err()
			}
			revisions = revisions[n:]
		}
		return nil
	})
	for range d.parallel() {
		group.Go(func() error {
			p := pieces{Pieces: sqlstore.Pieces{Take: take}}
			for some := range parts {
				if err := d.readRows(ctx, some, &p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading rows by their revisions: %w", err)
	}
	return nil
}

func (d *Driver) readRows(ctx context.Context, revisions []int64, p *pieces) error {
	return d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		p.dec.c = c
		for _, revision := range revisions {
			p.Last = 0
			if err := c.query(context.Background(), p.add, qRow, revision); err != nil {
				return err
			}
			if p.Last != revision {
				return &sqlstore.CompactedError{Revision: revision, Floor: b.Floor}
			}
		}
		return p.Flush()
	})
}
