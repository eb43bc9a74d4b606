package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

var _ sqlstore.Copier = (*Driver)(nil)

// Triggers drop the keys of copies where a live row is changed in place, by whatever program. A dump
// of the file that is edited and read into another one has the keys and fires no triggers, but dumps do not
// have user_version, which must be that of the edition. INSERT OR REPLACE of a row under its own
// revision is not seen: what came from a copy is held to the rows once the server is ready, for that.

// Copies implements sqlstore.Copier.
func (d *Driver) Copies(ctx context.Context) (c sqlstore.Copies, err error) {
	ok := false
	err = d.reader(ctx, func(r *conn) error {
		c, ok, err = copies(r)
		return err
	})
	if err == nil && !ok {
		_, err = d.writing(ctx, func(w *conn) error {
			if c, ok, err = copies(w); err != nil || ok {
				return err
			}
			c = sqlstore.NewCopies()
			if err := w.exec(fmt.Sprintf("PRAGMA user_version = %d", markOf(c.Edition))); err != nil {
				return err
			}
			return w.exec(qSetCopies, c.Text())
		})
	}
	if err != nil {
		return c, fmt.Errorf("reading the keys of copies: %w", err)
	}
	return c, nil
}

// copies are those of the file; false: it has no edition.
func copies(c *conn) (sqlstore.Copies, bool, error) {
	var v [1]driver.Value
	if found, err := c.one(v[:], qCopies); err != nil || !found {
		return sqlstore.Copies{}, false, err
	}
	list, ok := sqlstore.ParseCopies(text(v[0]))
	if !ok {
		return list, false, nil
	}
	version, err := c.number("PRAGMA user_version")
	return list, version == markOf(list.Edition), err
}

// markOf is what user_version is in an edition.
func markOf(edition string) int64 {
	n, _ := strconv.ParseUint(edition[:8], 16, 32) // ParseCopies and NewCopies have only digits there
	return int64(n>>1 | 1)
}

// Vouch implements sqlstore.Copier.
func (d *Driver) Vouch(ctx context.Context, edition, name string, key [32]byte) error {
	_, err := d.writing(ctx, func(w *conn) error {
		c, ok, err := copies(w)
		if err != nil {
			return err
		}
		if !ok || c.Edition != edition {
			return sqlstore.ErrEdited
		}
		c.Add(name, key)
		return w.exec(qSetCopies, c.Text())
	})
	if err != nil {
		return fmt.Errorf("vouching for a copy: %w", err)
	}
	return nil
}

// lastKey is behind all keys.
var lastKey = sqlstore.Key{Resource: "\xff"}

// Outline implements sqlstore.Copier: it reads an index alone, on several connections.
func (d *Driver) Outline(ctx context.Context, revision int64, splits []sqlstore.Key, take func([]int64) error) error {
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
				if err := d.outline(within, revision, take, qOutline, r[0].Resource, r[0].Namespace, r[0].Name, r[1].Resource, r[1].Namespace, r[1].Name, revision); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	if err == nil { // last: what ended while the others were read is among them
		err = d.outline(ctx, revision, take, qOutlineEnded, revision)
	}
	if err != nil {
		return fmt.Errorf("reading the revisions of everything at %d: %w", revision, err)
	}
	return nil
}

func (d *Driver) outline(ctx context.Context, revision int64, take func([]int64) error, query string, args ...any) error {
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

// ReadRows implements sqlstore.Copier.
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
