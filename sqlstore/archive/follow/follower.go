package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/lockfile"
)

// ErrLocked: another process writes to the folder.
var ErrLocked = errors.New("another process writes to this folder")

// Config sets a Follower up. Zero values take the defaults named.
type Config struct {
	Driver sqlstore.Driver
	Dir    string // made if its parent is there
	// Keep is the time for which any state can be restored; default 7 days. BaseEvery is the
	// interval between bases; default a day, at most Keep.
	Keep, BaseEvery time.Duration
	Every           time.Duration // how often to look for commits; default 250ms
	SegmentBytes    int64         // from which size on a new segment begins; default 64 MiB
	SegmentAge      time.Duration // from which age on; default an hour
	// Strict has Run return an error that it meets before it follows, such as ErrLocked;
	// otherwise it is logged, and tried again.
	Strict bool
	Log    *slog.Logger
}

func (c Config) withDefaults() Config {
	for v, d := range map[*time.Duration]time.Duration{&c.Keep: 7 * 24 * time.Hour, &c.Every: 250 * time.Millisecond, &c.SegmentAge: time.Hour} {
		if *v <= 0 {
			*v = d
		}
	}
	if c.BaseEvery <= 0 {
		c.BaseEvery = min(24*time.Hour, c.Keep)
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = 64 << 20
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Follower writes the commits of a database to a folder.
type Follower struct {
	cfg    Config
	tally  statsCollector
	seen   bool // the folder existed before: it is not created again
	source identity
	clock  steady
}

// identity is the identity of the database, as it states it.
type identity struct{ cluster, driver string }

// New makes a Follower. Nothing is opened until Run.
func New(cfg Config) *Follower { return &Follower{cfg: cfg.withDefaults()} }

// Stats returns how it goes; it may be called at any time.
func (f *Follower) Stats() Stats { return f.tally.stats() }

const (
	seenEvery = time.Second // how often a quiet database is noted as such
	stopsIn   = 80 * time.Millisecond
	retryMost = 10 * time.Second
)

// Run follows until ctx ends, and then once more. Failures are logged and retried; see Config.Strict. It may
// be called again.
func (f *Follower) Run(ctx context.Context) error {
	f.tally.active(true)
	defer f.tally.active(false)
	logged, ever := "", false
	for wait := f.cfg.Every; ctx.Err() == nil; {
		caught, err := f.follow(ctx)
		if ctx.Err() != nil || err == nil {
			return nil
		}
		f.tally.fail(err)
		if ever = ever || caught; f.cfg.Strict && !ever {
			return err
		}
		if caught {
			wait, logged = f.cfg.Every, ""
		}
		if text := err.Error(); text != logged { // once, and again when it is another
			f.cfg.Log.Error("cannot continue the backup, will try again", "folder", f.cfg.Dir, "error", err)
			logged = text
		}
		sqlstore.Sleep(ctx, wait)
		wait = min(2*wait, retryMost)
	}
	return nil
}

// follow opens the folder and follows until something fails or ctx ends. caught means that
// it had everything that there was at some time.
func (f *Follower) follow(ctx context.Context) (caught bool, err error) {
	s, err := f.open(ctx)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if e := s.close(); err == nil {
			err = e
		}
	}()
	f.cfg.Log.Info("the backup follows the store", "folder", f.cfg.Dir, "run", s.w.run, "revision", s.w.last())
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), stopsIn)
			defer stop()
			return caught, s.round(last)
		}
		if err := s.round(ctx); err != nil {
			return caught, err
		}
		caught = true
		s.upkeep(ctx)
		next.Reset(f.cfg.Every)
	}
}

// session is the folder while it is open for writing.
type session struct {
	*Follower
	lock    *os.File
	w       *writer
	base    base
	page    int       // rows to read at once
	flushed time.Time // when something was written last
}

func (f *Follower) open(ctx context.Context) (s *session, err error) {
	if err := f.ready(); err != nil {
		return nil, err
	}
	lock, err := lockfile.Take(filepath.Join(f.cfg.Dir, lockName))
	if err == nil && lock == nil {
		err = ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.cfg.Dir, err)
	}
	f.seen = true
	s = &session{Follower: f, lock: lock, page: leastPage}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// ready makes the folder, where it was never there.
func (f *Follower) ready() error {
	if f.seen {
		_, err := os.Stat(f.cfg.Dir)
		return err
	}
	err := os.Mkdir(f.cfg.Dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return err
}

func (s *session) start(ctx context.Context) (err error) {
	if s.source.cluster == "" {
		stats, err := s.cfg.Driver.Stats(ctx)
		if err != nil {
			return fmt.Errorf("reading what the database is: %w", err)
		}
		s.source = identity{stats.ClusterID, stats.Driver}
	}
	if err := removePartial(s.cfg.Dir); err != nil {
		return err
	}
	if s.w, err = newWriter(s.cfg.Dir, s.cfg.SegmentBytes, s.cfg.SegmentAge, s.tally.wrote); err != nil {
		return err
	}
	s.w.identity = segmentHeader{ClusterID: s.source.cluster, Driver: s.source.driver}
	if err := s.continues(ctx); err != nil {
		return err
	}
	return s.base.find(s.cfg.Dir, s.w.run)
}

// close ends the session; the next one continues.
func (s *session) close() error {
	s.base.wait()
	var errs []error
	if s.w != nil {
		errs = append(errs, s.w.close(), s.w.zip.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

const (
	leastPage = 8
	maxPage   = 64
	aimPage   = 1 << 20 // bytes of values that are read at once, about
)

// round writes the commits since the last one, and reports if there were none.
func (s *session) round(ctx context.Context) error {
	at := s.cfg.Driver.Now()
	b, err := s.cfg.Driver.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("reading the database: %w", err)
	}
	s.tally.saw(b.Head)
	if b.Head < s.w.last() {
		return s.gap(at, b.Head, "the database is at an older revision than the backup: it was restored, or lost commits")
	}
	for after := s.w.last(); after < b.Head; {
		changes, err := s.cfg.Driver.Changes(ctx, after, int(min(int64(s.page), b.Head-after)), false)
		if _, ok := errors.AsType[*sqlstore.CompactedError](err); ok {
			return s.gap(at, b.Head, "the database no longer has the commits that follow: the backup was away for longer than they are kept, or the database left revisions out, as after it went back to an earlier state")
		}
		if err == nil && len(changes) == 0 {
			err = fmt.Errorf("revision %d is not there", after+1)
		}
		if err != nil {
			s.w.drop()
			return fmt.Errorf("reading the database: %w", err)
		}
		if err := s.take(changes, b.Head, at); err != nil {
			return err
		}
		after += int64(len(changes))
	}
	if time.Since(s.flushed) >= seenEvery {
		if err := s.flush(at); err != nil {
			return err
		}
	}
	s.tally.caught(s.w.last())
	return nil
}

// take adds changes to the frame, and writes it where it is large, or has the last of them.
func (s *session) take(changes []sqlstore.Change, head int64, at time.Time) error {
	bytes := 0
	for i := range changes {
		c := &changes[i]
		bytes += len(c.Value)
		if err := s.w.add(c); err != nil {
			s.w.drop()
			return err
		}
		last := c.Revision == head
		if !last && s.w.waiting() < aimPage {
			continue
		}
		by := at
		if !last {
			by = s.w.by(at)
		}
		if err := s.flush(by); err != nil {
			return err
		}
	}
	if s.page = min(2*s.page, maxPage); bytes > 2*aimPage {
		s.page = leastPage
	}
	return nil
}

func (s *session) flush(at time.Time) error {
	if err := s.w.flush(at); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	s.flushed = time.Now()
	return nil
}

// gap begins a new run at the head of the database, and records why. The run before it is complete up to its last commits, and not
// to at.
func (s *session) gap(at time.Time, head int64, why string) error {
	if s.w.waiting() > 0 {
		if err := s.flush(s.w.by(at)); err != nil {
			return err
		}
	}
	last := s.w.last()
	if err := s.w.end(); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	s.newRun(s.w.run+1, head, why, last)
	return nil
}

// newRun begins at a revision, for which a base is needed.
func (s *session) newRun(run int, head int64, why string, last int64) {
	s.base.wait()
	s.base.need(run)
	s.w.begin(run, head)
	if why != "" {
		s.tally.gap()
		s.cfg.Log.Warn("the backup has a gap: a new base is taken", "why", why, "until", last, "from", head)
	}
}
