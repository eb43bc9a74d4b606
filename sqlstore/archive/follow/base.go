package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// base describes the newest base of the run, and takes the next.
type base struct {
	run    int
	has    bool      // the run has one
	taken  time.Time // when, with a monotonic reading
	done   chan error
	cancel context.CancelFunc
	again  time.Time // not before
	wait1  time.Duration
	hurry  bool // the last one took longer than history is kept
	pruned time.Time
}

const (
	firstWait = time.Second
	maxWait   = 5 * time.Minute
	pruneFor  = time.Minute // how often to look for old files
	baseRests = 3           // times as long as it reads and writes
	maxRest   = 200 * time.Millisecond
)

// need records that a run has no base.
func (b *base) need(run int) { *b = base{run: run, wait1: firstWait} }

// find looks for the newest base of a run.
func (b *base) find(dir string, run int) error {
	b.need(run)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		r, revision, ok := parseName(e.Name(), basePrefix, baseSuffix)
		if !ok || r != run {
			continue
		}
		if one := readBase(dir, e.Name(), r, revision); one.Problem == "" {
			b.has, b.taken = true, time.Now().Add(-max(0, time.Since(one.Taken)))
		}
	}
	return nil
}

// wait ends the taking of a base, and waits for that.
func (b *base) wait() {
	if b.cancel != nil {
		b.cancel()
		<-b.done
		b.cancel = nil
	}
}

// upkeep takes bases when they are due, and deletes old files.
func (s *session) upkeep(ctx context.Context) {
	b := &s.base
	if b.cancel != nil {
		select {
		case err := <-b.done:
			b.cancel()
			b.cancel = nil
			s.took(ctx, err)
		default:
		}
		return
	}
	if due := !b.has || time.Since(b.taken) >= s.cfg.BaseEvery; due && !time.Now().Before(b.again) {
		taking, cancel := context.WithCancel(ctx)
		b.cancel, b.done = cancel, make(chan error, 1)
		run, hurry := b.run, b.hurry
		go func() { b.done <- s.takeBase(taking, run, hurry) }()
		return
	}
	if time.Since(b.pruned) >= min(pruneFor, s.cfg.Keep/4) {
		b.pruned = time.Now()
		if err := s.prune(); err != nil {
			s.tally.fail(err)
			s.cfg.Log.Warn("old parts of the backup cannot be deleted", "error", err)
		}
	}
}

// took notes how taking a base ended.
func (s *session) took(ctx context.Context, err error) {
	b := &s.base
	if err == nil {
		b.has, b.taken, b.wait1, b.hurry, b.pruned = true, time.Now(), firstWait, false, time.Time{}
		s.tally.based()
		return
	}
	if ctx.Err() != nil {
		return
	}
	var compacted *sqlstore.CompactedError
	b.hurry = errors.As(err, &compacted)
	b.again, b.wait1 = time.Now().Add(b.wait1), min(2*b.wait1, maxWait)
	s.tally.failBase(err)
	s.cfg.Log.Error("no base could be taken for the backup; it will be tried again", "error", err, "in", b.wait1/2)
}

// takeBase writes a base. It rests in between, so that it takes a quarter of a processor
// at most, unless that took too long.
func (s *session) takeBase(ctx context.Context, run int, hurry bool) error {
	began := time.Now()
	opt := archive.Options{Progress: func(int64, int64) {
		if !hurry {
			sqlstore.Sleep(ctx, min(baseRests*time.Since(began), maxRest))
		}
		began = time.Now()
	}}
	path := filepath.Join(s.cfg.Dir, fmt.Sprintf("%s%06d%s", basePrefix, run, partialSuffix))
	h, _, err := archive.BackupFile(ctx, s.cfg.Driver, path, opt)
	if err != nil {
		return errors.Join(err, removePartial(s.cfg.Dir))
	}
	name := fileName(basePrefix, baseSuffix, run, h.Revision)
	if err := os.Rename(path, filepath.Join(s.cfg.Dir, name)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	s.cfg.Log.Info("the backup has a new base", "file", name)
	return archive.SyncFolder(s.cfg.Dir)
}

// prune deletes files that no restore within Keep needs: all that come before the newest
// base that is older than that. There is always a base, and all that follows it.
func (s *session) prune() error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	type file struct {
		name     string
		run      int
		revision int64
	}
	var bases, segments []file
	for _, e := range entries {
		if run, revision, ok := parseName(e.Name(), basePrefix, baseSuffix); ok {
			bases = append(bases, file{e.Name(), run, revision})
		}
		if run, first, ok := parseName(e.Name(), logPrefix, logSuffix); ok {
			segments = append(segments, file{e.Name(), run, first})
		}
	}
	var keep *file // the base that everything is kept from
	for i := len(bases) - 1; i >= 0 && keep == nil; i-- {
		one := readBase(s.cfg.Dir, bases[i].name, bases[i].run, bases[i].revision)
		if one.Problem == "" && s.clock.age(&one) >= s.cfg.Keep {
			keep = &bases[i]
		}
	}
	if keep == nil {
		return nil
	}
	older := func(f file) bool {
		return cmp.Or(cmp.Compare(f.run, keep.run), cmp.Compare(f.revision, keep.revision)) < 0
	}
	var old []string
	for _, b := range bases {
		if older(b) {
			old = append(old, b.name)
		}
	}
	for i, g := range segments {
		// The next base of its run states the last revision.
		whole := g.run < keep.run || i+1 < len(segments) && segments[i+1].run == g.run && g.run == keep.run && segments[i+1].revision <= keep.revision+1
		if whole {
			old = append(old, g.name)
		}
	}
	slices.Sort(old) // bases first: the rest of a log without one is of no use, but does no harm
	for _, name := range old {
		if err := os.Remove(filepath.Join(s.cfg.Dir, name)); err != nil {
			return err
		}
	}
	if len(old) == 0 {
		return nil
	}
	s.cfg.Log.Info("old parts of the backup are deleted", "files", len(old))
	return archive.SyncFolder(s.cfg.Dir)
}
