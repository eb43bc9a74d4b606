package sqlstore

import (
	"context"
	"errors"
	"time"
)

// A database can go back to an older state while servers run: a standby that lacks the last commits takes over,
// somebody restores a backup or deletes rows, an old primary comes back. Then memory shows what is stored
// nowhere, and the database gives revisions a second time.
//
// A driver notices that, and goes on above every revision that any server may have shown, so that no
// revision means two things. The Store then serves nothing from memory until the sink has been loaded anew.

// ErrWentBack: the database went back to an older state, and memory has not been loaded anew yet.
var ErrWentBack = errors.New("the database has gone back to an older state")

// Returning is a Driver that notices when its database has gone back.
type Returning interface {
	// Returned is Returns().Count, and cheap.
	Returned() int64
	// Returns tells what was noticed since the driver was opened. It does not ask the database.
	Returns() Returns
	// Noticed is sent to after Returned has changed. Sends may be merged.
	Noticed() <-chan struct{}
}

// Returns is what a driver noticed of databases that are not as they were.
type Returns struct {
	Count  int64     // how often the database was found to have gone back, or may have
	Lost   int64     // revisions that were met and are not in the database, in all
	Last   Return    // the last time
	At     time.Time // when that was
	Others int64     // how many connections were refused, as the database at their end is older than the one that was used before
	Other  string    // why the last of them was refused
	Seen   time.Time // when that was
}

// Return is one time that a database went back.
type Return struct {
	Reason string // what showed it
	Shown  int64  // the newest revision that this process had met
	Found  int64  // the newest one that the database had
	GoesOn int64  // the database goes on behind this one
}

// Lost is how many revisions this process met that the database does not have.
func (r Return) Lost() int64 { return max(0, r.Shown-r.Found) }

// Skipper is a Driver whose revisions can be made to go on further up.
type Skipper interface {
	// SkipRevisions leaves out the next count revisions, durably: the log begins anew behind them, and clients that
	// have seen any of them list again. With count 0 it leaves out as many as may have been given since the newest write.
	SkipRevisions(ctx context.Context, count int64) (from, to int64, err error)
}

// LeftOut is how many revisions are left out where a database has gone back and nobody knows from where: those that
// servers may have given since its newest write, and RelaxedReserve in any case.
func LeftOut(sinceNewest time.Duration) int64 {
	return RelaxedReserve + int64(min(max(sinceNewest, 0), longestReturn)/time.Second)*mostRevisions
}

const (
	mostRevisions = 50_000 // in a second, by far
	longestReturn = 10 * 365 * 24 * time.Hour
)

// WentBack says that memory may show what the database does not have, as that has gone back: nothing may
// be answered from it until it has been loaded anew.
func (s *Store) WentBack() bool {
	return s.returning != nil && s.returning.Returned() != s.loaded.Load()
}

// Returns tells what the driver noticed of a database that went back.
func (s *Store) Returns() Returns {
	if s.returning == nil {
		return Returns{}
	}
	return s.returning.Returns()
}

// noticed is sent to when the database was found to have gone back.
func (s *Store) noticed() <-chan struct{} {
	if s.returning == nil {
		return nil
	}
	return s.returning.Noticed()
}
