package sqlstore

import (
	"context"
	"time"
)

// Driver is the interface of a database, by roles. Each driver implements all roles, and reports by a result what its
// database cannot do, so that a wrapper that embeds a Driver loses nothing. Drivers hold SQL and no code that two of them
// would share; Simple has the methods of a database without special abilities. Methods may be called concurrently, except
// Apply, which has one caller at a time. Returned bytes belong to the caller, and so do those of a Txn once Apply or
// Resolve has returned its outcome, unless they are Immutable.
//
// Any method may fail with ErrUnavailable, ErrBusy or ErrClosed (wrapped).
type Driver interface {
	Reader
	Writer
	Log
	History
	Leases
	Admin
}

// Reader reads states of the table.
type Reader interface {
	// Bounds reads floor and head in one statement. It sees every commit that
	// was acknowledged by any process before the call.
	Bounds(ctx context.Context) (Bounds, error)

	// Scan reads one page. Errors: CompactedError, FutureError.
	Scan(ctx context.Context, req ScanRequest) ([]Row, error)

	// Read returns the row of one key, live (revision 0) or as of a revision.
	// Errors: NotFoundError, CompactedError, FutureError.
	Read(ctx context.Context, key Key, revision int64) (Row, error)

	// ReadAll passes every row of the snapshot at a revision to take, once, in any order, in pieces: the key, the
	// revisions of its write and creation, and the value. Several goroutines may call take at a time, each with at least one
	// row. It must not keep the slice, but may keep the values. An error of take ends the reading.
	// Errors: CompactedError, FutureError, those of take, and ErrIndexMismatch after all rows of the table.
	ReadAll(ctx context.Context, revision int64, take func(rows []Row) error) error

	// Expired returns up to limit live rows whose ExpiresAt is at or before now, in the order of ExpiresAt; fewer once their
	// values have ChangesBytes.
	Expired(ctx context.Context, now time.Time, limit int) ([]Row, error)
}

// Writer commits.
type Writer interface {
	// Apply runs batch as one transaction and returns one Outcome for each Txn.
	// Txns see the effects of those before them. now is the written_at of all rows.
	// An error means that nothing was committed, except ErrUncertain: then the
	// caller must call Resolve. A cancelled ctx before commit leaves nothing behind.
	Apply(ctx context.Context, batch []Txn, now time.Time) ([]Outcome, error)

	// Stage writes the large values of ops ahead of Apply, if Apply would keep other writers waiting for them, in short
	// transactions that other batches come between, and sets Staged of each such Op. It waits while other staged values take too
	// much room. It writes nothing for an Op whose condition does not hold. Apply writes the values that were not staged, for whatever reason.
	// Several goroutines may call Stage and Unstage, also during Apply. Errors: those of ctx; then nothing is staged.
	Stage(ctx context.Context, ops []Op) error

	// Unstage is called once after each successful Stage, with the same ops, when their outcome is known. It deletes, later, what was
	// written for them, unless they were committed. It does not wait.
	Unstage(ops []Op, committed bool)

	// Resolve finds out what became of the last batch whose Apply ended with
	// ErrUncertain. The Outcomes are as Apply would have returned them; committed
	// is false if nothing of it is in the table and, from now on, never will be. ErrUncertain: that can no longer be found out.
	Resolve(ctx context.Context) (out []Outcome, committed bool, err error)

	// Healthy returns ErrGone if it is known, without a write, that writes would be lost: the database is not
	// at its old place, or a sync of it failed.
	Healthy() error

	// RelaxedStats counts commits that were acknowledged before they were durable.
	RelaxedStats() RelaxedStats
}

// Log reads the log of changes, announces changes, and notices that the database went back to an earlier state.
type Log interface {
	// Changes returns up to limit entries after a revision, ascending, without
	// gaps, with previous values if asked; fewer once their values have ChangesBytes. Errors: CompactedError if after < floor.
	Changes(ctx context.Context, after int64, limit int, previous bool) ([]Change, error)

	// LastChanges returns, of the revisions above after and up to upTo, the newest of each resource that has one.
	// Errors: CompactedError if after < floor: the rows of deletions are gone there.
	LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error)

	// RevisionAt returns the newest revision written at or before t (0: none; the floor if all kept revisions
	// are newer).
	RevisionAt(ctx context.Context, t time.Time) (int64, error)

	// Aged returns the newest revision that is certain to have been written at or before t, also where clocks were set, and its
	// time: its row has that time, which is not before newest, the result of an earlier call, and no row before it has a later time,
	// up to now. If there is none, it returns the floor, below which nothing is kept, and newest. It reads the log from its floor to
	// the first row of after t, which is what compaction is to delete.
	Aged(ctx context.Context, newest, t, now time.Time) (revision int64, at time.Time, err error)

	// Since returns the earliest time at which the revision, or a newer one, is known to have been the newest; RevisionAt
	// is undefined for earlier times. It is exact within the log, and to the second below its floor.
	// ok is false if neither a row nor a mark at or above the revision is kept.
	Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error)

	// Hints delivers "look again" after a commit of any process. Hints may be
	// lost or merged and carry no data. The channel closes with ctx.
	Hints(ctx context.Context) <-chan struct{}

	// Exclusive is 0 while other processes may write to the database. Otherwise it is a number that stays the same only as
	// long as no other process could have written: bounds that were read under this number are still valid.
	Exclusive() uint64

	// RewindCount is Rewinds().Count, and cheap.
	RewindCount() int64
	// Rewinds describes how the database went back since the driver was opened, as far as the driver has noticed. It sends
	// no query.
	Rewinds() Rewinds
	// RewindNotices receives a value after RewindCount has changed. Values may be merged. Nil: the driver never notices.
	RewindNotices() <-chan struct{}
}

// History reads and shortens the history: rows that were replaced or deleted.
type History interface {
	// Past returns up to limit rows of one key with a revision below before (0: from the
	// newest), newest first: the live one, and those that ended above the floor of its
	// resource, deletes among them. None is no error. Errors: those of Floors.CheckBefore.
	Past(ctx context.Context, key Key, before int64, limit int) ([]Row, error)

	// Older returns up to limit rows that ended at or below a revision and above the floor of their resource, after a
	// cursor, in the order of keys and revisions, packed or not; fewer once their values have ChangesBytes, or if reading takes long. No rows means that none is left.
	// Errors: CorruptError of a pack, whose Key and Revision are the cursor to continue from.
	Older(ctx context.Context, upTo int64, after Cursor, limit int) ([]Row, error)
	// AllEnded returns rows as Older does, of all that ended, also of those below the floor of their resource that are
	// not deleted yet. Errors: as Older; errors.ErrUnsupported: as ReplaceEnded.
	AllEnded(ctx context.Context, after Cursor, limit int) ([]Row, error)

	// Floors returns how far back the log and snapshots reach.
	Floors(ctx context.Context) (Floors, error)

	// Retain raises the floors, durably, to those of Floors.Raised, and deletes nothing. It may raise the log's floor by
	// less, and returns the new floors. From then on Trim is not called, which would raise the log's floor and that of all
	// snapshots together.
	Retain(ctx context.Context, to Floors) (Floors, error)

	// Trim raises the floor to to, durably and first, then deletes up to limit
	// rows that ended at or below the floor. It returns how many; fewer than
	// limit means that none is left. A floor is never lowered. If packs reach beyond the floor
	// and to does not, it deletes nothing: rows that ended below are packed first.
	Trim(ctx context.Context, to int64, limit int) (deleted int, err error)

	// ConcurrentTrim reports whether writers continue while Trim runs. If they do not, Trim is called for few rows at a
	// time, with long pauses.
	ConcurrentTrim() bool

	// Pack moves about limit rows that ended at or below the floor of the log, from a cursor on, into packs: in each
	// transaction all rows of some objects, or the oldest of one. It deletes rows below the floor of their resource. Readers
	// and writers see no difference. Its transactions stay when ctx ends or a later call fails.
	Pack(ctx context.Context, from Cursor, limit int) (Packed, error)

	// Forget deletes up to limit packs that are below the floors of their resources. Fewer than limit
	// means that none is left.
	Forget(ctx context.Context, limit int) (deleted int, err error)

	// ReplaceEnded replaces the values of ended rows of one object, packed or not, in one transaction. The rows have the same
	// key, and ascending revisions; no rows ask whether the driver supports it. It returns how many rows it found, as some
	// may be gone. Errors: CorruptError of a pack that has some of the rows, ErrBusy if another process packed or restated
	// them, errors.ErrUnsupported of a database that no other process has.
	ReplaceEnded(ctx context.Context, rows []Row) (done int, err error)
}

// Leases coordinate the servers on one database.
type Leases interface {
	// Now estimates the time of the clock that all processes on the database share. It sends no query.
	Now() time.Time

	// Lead tries to become the only holder of name. It does not wait: ok is false while another process holds
	// it. A holder that dies loses it within seconds; held is closed when it is lost; release gives it up. A
	// driver whose leads may be lost while their holder works verifies them in each transaction on behalf of
	// a lead: Txn.Lead in Apply, Leading(ctx) in all methods of History that write.
	Lead(ctx context.Context, name string) (held <-chan struct{}, release func(), ok bool, err error)

	// Note returns what SetNote stored last under a name, "" for nothing. Notes are small facts about the database
	// that its servers agree on.
	Note(ctx context.Context, name string) (string, error)

	// SetNote replaces the note was, durably. It reports false if the note was another one.
	SetNote(ctx context.Context, name, was, is string) (bool, error)
}

// Admin has the methods for operators, and those that a server calls once.
type Admin interface {
	// ChecksRows reports whether each row has a checksum that is compared whenever the row is read (a row that is not as
	// written has Row.Damaged), and ReadAll fails with ErrIndexMismatch if the table and its indexes do not have the same
	// rows. If it is false, the database itself has to notice damage.
	ChecksRows() bool

	// CheckRows compares the rows with their checksums (if values), and then the table with its indexes row by row, a page
	// at a time, concurrently with readers and writers. After each page it calls page with the rows that differ, whose
	// Damaged has the reason: the driver sets Key and Revision as it found them, and Superseded if no index of live rows has
	// the row. page may pause, and no value stays in memory. A driver that does not check rows compares nothing.
	CheckRows(ctx context.Context, values bool, page func(differ []Row) error) error

	// Attestor attests to cache files; nil: the database attests to none.
	Attestor() Attestor

	// Load fills an empty database in one transaction: with the rows as they are,
	// revisions and times included, and with the content's bounds and cluster id.
	// After an error, or a crash, the database is as empty as before, except after ErrUncertain.
	// Errors: ErrNotEmpty if anything was ever written, that of CheckHeadroom, and those of Rows.
	Load(ctx context.Context, content Content) error

	// SkipRevisions leaves out the next count revisions, durably: the log begins anew behind them, and
	// clients that have seen any of them list again. With count 0 it leaves out as many as may have been
	// assigned since the newest write. A database that cannot go back to an older state returns
	// errors.ErrUnsupported. Errors: that of CheckHeadroom, for a count.
	SkipRevisions(ctx context.Context, count int64) (from, to int64, err error)

	// Stats describes the stored data for operators; it may take seconds.
	Stats(ctx context.Context) (Stats, error)

	// Close waits for everything the driver started.
	Close() error
}

// Stats describes a database for operators.
type Stats struct {
	Driver          string // "sqlite", "postgres"
	ServerVersion   string
	SchemaVersion   uint
	ClusterID       string
	Bounds          Bounds
	LiveRows        int64
	HistoryRows     int64 // that are not packed
	PackedRows      int64
	Packs           int64
	Bytes           int64 // size of the database on disk
	OldestWrittenAt time.Time
	Resources       []ResourceStats
}

// ResourceStats counts the live objects of one resource.
type ResourceStats struct {
	Resource string
	Objects  int64
	Bytes    int64
}
