package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// Restored describes the restored state.
type Restored struct {
	Plan
	ClusterID string `json:"clusterID"`
	Objects   int64  `json:"objects"`
	Commits   int64  `json:"commits"` // read from the log
	Floor     int64  `json:"floor"`   // at which the database begins; Revision, unless revisions were skipped
}

// Options of a restore.
type Options struct {
	// Skip is the number of revisions that the database leaves out, so that revisions which clients
	// saw after the restored state do not return with other content.
	Skip     int64
	Scratch  string                 // folder for a temporary one; empty: the system's
	Progress func(read, size int64) // bytes of the files of the plan; called as they are read; may be nil
}

// reading counts the bytes read from the files of a plan.
type reading struct {
	read, size int64
	progress   func(read, size int64)
}

func (p *Plan) reading(progress func(read, size int64)) *reading {
	r := &reading{progress: progress}
	for _, name := range append([]string{p.Base}, p.Segments...) {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err == nil { // opening it returns the error
			r.size += info.Size()
		}
	}
	return r
}

func (r *reading) of(in io.Reader) io.Reader { return &counting{in, r} }

type counting struct {
	in io.Reader
	of *reading
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.of.read += int64(n); c.of.progress != nil {
		c.of.progress(c.of.read, c.of.size)
	}
	return n, err
}

// Restore fills an empty database with a state, in one transaction: an interrupted restore, or one that finds
// damage, leaves it empty. Revisions and times are preserved. It needs little memory, and at most as much
// disk as was written since the base. Errors: UnreachableError, ErrDamaged, sqlstore.ErrNotEmpty, those of
// the driver.
func Restore(ctx context.Context, d sqlstore.Driver, p *Plan, opt Options) (r Restored, err error) {
	r.Plan = *p
	dir, done, err := scratch(opt.Scratch, restorePrefix)
	if err != nil {
		return r, err
	}
	defer func() {
		if e := done(); err == nil {
			err = e
		}
	}()
	pile := &externalSort{dir: dir}
	defer pile.close()
	files := p.reading(opt.Progress)
	if r.Commits, err = p.read(ctx, pile, files); err != nil {
		return r, err
	}
	f, err := openFile(filepath.Join(p.dir, p.Base))
	if err != nil {
		return r, err
	}
	defer f.Close()
	h, base, err := archive.Rows(files.of(f))
	if err != nil {
		return r, fmt.Errorf("%s: %w", p.Base, err)
	}
	r.ClusterID, r.Floor = h.ClusterID, p.Revision+opt.Skip
	rows := counted(live(named(p.Base, base), pile), &r.Objects)
	err = d.Load(ctx, sqlstore.Content{Bounds: sqlstore.Bounds{Floor: r.Floor, Head: r.Floor}, ClusterID: h.ClusterID, Rows: rows})
	return r, err
}

// read takes the commits of a plan into an externalSort. All that it reads is checked.
func (p *Plan) read(ctx context.Context, pile *externalSort, files *reading) (commits int64, err error) {
	unpack, err := newUnpacker()
	if err != nil {
		return 0, err
	}
	defer unpack.close()
	var before *segmentReader
	for _, name := range p.Segments {
		in, err := p.segment(ctx, name, files, before, func(one *frame) error {
			if one.kind != kindRows || one.last() <= p.From {
				return nil
			}
			return unpack.rows(one, func(c *sqlstore.Change) error {
				if c.Revision <= p.From || c.Revision > p.Revision {
					return nil
				}
				commits++
				return pile.add(&c.Row)
			})
		})
		if err != nil {
			return commits, err
		}
		before = in
	}
	if want := p.Revision - p.From; commits != want {
		return commits, fmt.Errorf("%s: %w: the log has %d commits after the base, not %d", p.dir, ErrDamaged, commits, want)
	}
	return commits, pile.seal()
}

// segment reads one segment up to the revision that is restored.
func (p *Plan) segment(ctx context.Context, name string, files *reading, before *segmentReader, each func(*frame) error) (*segmentReader, error) {
	f, err := openFile(filepath.Join(p.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := newSegmentReader(name, files.of(f))
	if err != nil {
		return nil, err
	}
	if before != nil && (!in.header.follows(before.sum) || in.header.First != before.next) {
		return nil, fmt.Errorf("%s: %w: it does not go on where %s ends", name, ErrDamaged, before.name)
	}
	for in.next <= p.Revision {
		one, err := in.read()
		switch {
		case errors.Is(err, io.EOF):
			return in, nil
		case err != nil:
			return nil, fmt.Errorf("%w; revision %d is the newest that can be restored before it", err, in.next-1)
		}
		if err := each(&one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// named adds the file to errors, and checks that its rows are in the order of their keys.
func named(name string, rows iter.Seq2[sqlstore.Row, error]) iter.Seq2[sqlstore.Row, error] {
	return func(yield func(sqlstore.Row, error) bool) {
		var last sqlstore.Key
		for row, err := range rows {
			if err == nil && row.Key.Compare(last) <= 0 {
				err = fmt.Errorf("%w: %s follows %s", ErrDamaged, row.Key, last)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			if !yield(row, err) || err != nil {
				return
			}
			last = row.Key
		}
	}
}

func counted(rows iter.Seq2[sqlstore.Row, error], n *int64) iter.Seq2[sqlstore.Row, error] {
	return func(yield func(sqlstore.Row, error) bool) {
		for row, err := range rows {
			if err == nil {
				*n++
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// live returns the objects of a base, replaced by those of an externalSort.
func live(base iter.Seq2[sqlstore.Row, error], pile *externalSort) iter.Seq2[sqlstore.Row, error] {
	return func(yield func(sqlstore.Row, error) bool) {
		newer, stop := iter.Pull2(pile.rows)
		defer stop()
		n, err, more := newer()
		// put yields the objects of the externalSort before a key.
		put := func(before *sqlstore.Key) bool {
			for more && err == nil && (before == nil || n.Key.Compare(*before) < 0) {
				if !n.Deleted && !yield(n, nil) {
					return false
				}
				n, err, more = newer()
			}
			if more && err != nil {
				yield(sqlstore.Row{}, err)
				return false
			}
			return true
		}
		for row, e := range base {
			if e != nil {
				yield(sqlstore.Row{}, e)
				return
			}
			if !put(&row.Key) {
				return
			}
			if more && n.Key == row.Key {
				continue // put yields it before the next key
			}
			if !yield(row, nil) {
				return
			}
		}
		put(nil)
	}
}
