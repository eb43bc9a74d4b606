package follow

import (
	"sync"
	"time"
)

// Stats holds the figures of a Follower.
type Stats struct {
	Active    bool          // it follows; on other servers another does
	Revision  int64         // the newest on the disk
	Head      int64         // the newest of the database, when it was last read
	Behind    time.Duration // how long ago everything that there was then was on the disk
	Bytes     int64         // written since the start
	Synced    time.Time     // when the disk last had everything; zero: never
	Bases     int64         // taken since the start
	Gaps      int64         // since the start
	Failures  int64         // since the start
	LastError string        // of the newest failure to follow, until it is caught up again
	BaseError string        // why the newest base could not be taken, until one is
}

// statsCollector gathers Stats.
type statsCollector struct {
	mu    sync.Mutex
	s     Stats
	since time.Time // when it caught up last, or began
}

func (t *statsCollector) do(fn func(*Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn(&t.s)
}

func (t *statsCollector) active(on bool) {
	t.do(func(s *Stats) { s.Active, t.since = on, time.Now() })
}
func (t *statsCollector) saw(head int64) { t.do(func(s *Stats) { s.Head = head }) }
func (t *statsCollector) wrote(n int) {
	t.do(func(s *Stats) { s.Bytes += int64(n); s.Synced = time.Now() })
}
func (t *statsCollector) based() { t.do(func(s *Stats) { s.Bases, s.BaseError = s.Bases+1, "" }) }
func (t *statsCollector) gap()   { t.do(func(s *Stats) { s.Gaps++ }) }
func (t *statsCollector) fail(err error) {
	t.do(func(s *Stats) { s.Failures++; s.LastError = err.Error() })
}
func (t *statsCollector) failBase(err error) {
	t.do(func(s *Stats) { s.Failures++; s.BaseError = err.Error() })
}
func (t *statsCollector) caught(revision int64) {
	t.do(func(s *Stats) { s.Revision, s.LastError, t.since = revision, "", time.Now() })
}

func (t *statsCollector) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.s
	if s.Active {
		s.Behind = time.Since(t.since)
	}
	return s
}
