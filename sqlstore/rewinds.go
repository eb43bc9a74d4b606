package sqlstore

import (
	"errors"
	"time"
)

// A database can go back to an older state while servers run: a standby that lacks the last commits takes
// over, an administrator restores a backup or deletes rows, an old primary returns. Then the cache has
// objects that the database lacks, and the database assigns revisions a second time.
//
// A driver notices that, and continues above every revision that any server may have shown, so that no
// revision is used twice. The Store then serves nothing from memory until it has reloaded the sink.

// ErrRewound: the database went back to an older state, and the cache has not been reloaded yet.
var ErrRewound = errors.New("the database has gone back to an older state")

// Rewinds counts and describes the rewinds of the database that a driver has noticed.
type Rewinds struct {
	Count  int64     // how often the database was found to have gone back, or may have
	Lost   int64     // revisions that servers had read and the database lacks, in total
	Last   Rewind    // the last time
	At     time.Time // when that was
	Others int64     // connections that the driver refused because their database is older than the one that it used before
	Other  string    // why the last of them was refused
	Seen   time.Time // when that was
}

// Rewind describes one step of a database back to an older state.
type Rewind struct {
	Reason      string // how it was noticed
	Shown       int64  // the newest revision that this process had seen
	Found       int64  // the newest one that the database had
	ContinuesAt int64  // the database continues above this revision
}

// Lost returns how many revisions this process has seen that the database lacks.
func (r Rewind) Lost() int64 { return max(0, r.Shown-r.Found) }

// RevisionGap returns how many revisions are skipped after a database went back by an unknown distance: those that servers
// may have allocated since its newest write, and RelaxedReserve in any case.
func RevisionGap(sinceNewest time.Duration) int64 {
	return RelaxedReserve + int64(min(max(sinceNewest, 0), longestReturn)/time.Second)*maxRevisions
}

const (
	maxRevisions  = 50_000 // far more than in any second
	longestReturn = 10 * 365 * 24 * time.Hour
)

// Rewound reports whether the cache may show revisions that the database lacks because it went back: nothing
// may be answered from the cache until it has been reloaded.
func (s *Store) Rewound() bool { return s.driver.RewindCount() != s.loaded.Load() }

// Rewinds describes how the database went back, as far as the driver noticed.
func (s *Store) Rewinds() Rewinds { return s.driver.Rewinds() }
