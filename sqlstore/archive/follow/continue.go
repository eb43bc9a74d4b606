package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// names are the newest files of a folder, by their names alone.
type names struct {
	run     int    // the newest that any file is of
	base    int64  // revision of its newest base
	segment string // its newest
}

func newest(dir string) (n names, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return n, err
	}
	for _, e := range entries { // in the order of their names
		if run, revision, ok := parseName(e.Name(), basePrefix, baseSuffix); ok {
			n.run, n.base = run, revision
		}
	}
	for _, e := range entries {
		if run, _, ok := parseName(e.Name(), logPrefix, logSuffix); ok && run >= n.run {
			n.run, n.segment = run, e.Name()
		}
	}
	return n, nil
}

// continues has the writer go on where the folder ends, or begin a new run where it cannot.
func (s *session) continues(ctx context.Context) error {
	if err := s.clock.begin(s.cfg.Dir); err != nil {
		return err
	}
	for {
		n, err := newest(s.cfg.Dir)
		if err != nil {
			return err
		}
		b, err := s.cfg.Driver.Bounds(ctx)
		if err != nil {
			return fmt.Errorf("reading the database: %w", err)
		}
		switch {
		case n.segment == "" && n.run > 0: // ended before the first commit behind the base
			s.w.begin(n.run, n.base)
			return nil
		case n.segment == "":
			s.newRun(1, b.Head, "", 0)
			return nil
		}
		r, err := s.w.resume(filepath.Join(s.cfg.Dir, n.segment))
		if errors.Is(err, ErrDamaged) {
			s.tally.fail(err)
			s.newRun(n.run+1, b.Head, err.Error(), r.next-1)
			return nil
		}
		if err != nil {
			return err
		}
		if r.size == 0 {
			continue // it was removed: the one before it is the newest
		}
		if r.header.ClusterID != s.source.cluster {
			return fmt.Errorf("%s is of cluster %s, and the database of cluster %s: another folder is needed", s.cfg.Dir, r.header.ClusterID, s.source.cluster)
		}
		if r.cut > 0 {
			s.cfg.Log.Warn("the end of the backup was truncated and is written again", "file", n.segment, "bytes", r.cut)
		}
		if r.last == nil {
			if r.last, err = lastRow(s.cfg.Dir, n.run, n.segment); err != nil {
				return err
			}
		}
		return s.agrees(ctx, r, b)
	}
}

// lastRow returns the newest row of a run in the segments before one; nil: none of them has any, or it cannot be read.
func lastRow(dir string, run int, before string) (*sqlstore.Change, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(entries) {
		if of, _, ok := parseName(e.Name(), logPrefix, logSuffix); !ok || of != run || e.Name() >= before {
			continue
		}
		r, err := readEnd(filepath.Join(dir, e.Name()))
		if errors.Is(err, ErrDamaged) {
			return nil, nil
		}
		if err != nil || r.last != nil {
			return r.last, err
		}
	}
	return nil, nil
}

// agrees checks whether the database is the one of the log, including one that was restored to an earlier
// state and has continued since.
func (s *session) agrees(ctx context.Context, r resumed, b sqlstore.Bounds) error {
	at := s.cfg.Driver.Now()
	if b.Head < s.w.last() || r.last == nil {
		return nil // the first round sees to that; without rows there is nothing to compare
	}
	var compacted *sqlstore.CompactedError
	log, err := s.cfg.Driver.Changes(ctx, r.last.Revision-1, 1, false)
	if errors.As(err, &compacted) && compacted.Floor == r.last.Revision && !r.last.Deleted {
		log, err = s.rowOf(ctx, r.last) // nothing behind it is compacted
	}
	switch {
	case errors.As(err, &compacted):
		return s.gap(at, b.Head, "the database no longer has the last commit of the backup: it was away for longer than they are kept")
	case err != nil:
		return fmt.Errorf("reading the database: %w", err)
	case len(log) == 0 || !sameCommit(archive.Restorable(log[0].Row), &r.last.Row):
		return s.gap(at, b.Head, "the database has another commit at the last revision of the backup: it was restored to an earlier state")
	}
	return nil
}

// rowOf returns the row that an object has at a commit which the log no longer has; none: it has no row there.
func (s *session) rowOf(ctx context.Context, c *sqlstore.Change) ([]sqlstore.Change, error) {
	row, err := s.cfg.Driver.Read(ctx, c.Key, c.Revision)
	if _, ok := errors.AsType[*sqlstore.NotFoundError](err); ok {
		return nil, nil
	}
	return []sqlstore.Change{{Row: row}}, err
}

func sameCommit(a sqlstore.Row, b *sqlstore.Row) bool {
	return a.Key == b.Key && a.Revision == b.Revision && a.Created == b.Created && a.Deleted == b.Deleted && a.WrittenAt.UnixMicro() == b.WrittenAt.UnixMicro()
}
