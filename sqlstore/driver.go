package sqlstore

import (
	"context"
	"time"
)

// Driver is what a database must do, by roles. Each driver has all of them, and says by an answer what its database
// cannot do: so a wrapper that embeds a Driver has what the driver has. Drivers hold SQL and nothing that two of
// them would share; Simple has the answers of a database that lacks what is special. Every method may be called concurrently,
// except Apply, which has one caller at a time. Returned bytes belong to the caller, as do those of a Txn
// when Apply or Resolve has told its outcome.
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

	// ReadAll hands out every row of the snapshot at a revision once, in any order, in pieces; of each row the key, the
	// revisions it was written and created at, and the value. take may be called by several goroutines at once, each time
	// with at least one row, and must not keep the slice, but may keep the values. An error of take ends the reading.
	// Errors: CompactedError, FutureError, those of take, and ErrIndexMismatch when all that the table has was handed out.
	ReadAll(ctx context.Context, revision int64, take func(rows []Row) error) error

	// Expired returns up to limit live rows whose ExpiresAt is at or before now.
	Expired(ctx context.Context, now time.Time, limit int) ([]Row, error)
}

// Writer commits.
type Writer interface {
	// Apply runs batch as one transaction and returns one Outcome for each Txn.
	// Txns see the effects of those before them. now is the written_at of all rows.
	// An error means that nothing was committed, except ErrUncertain: then the
	// caller must call Resolve. A cancelled ctx before commit leaves nothing behind.
	Apply(ctx context.Context, batch []Txn, now time.Time) ([]Outcome, error)

	// Resolve finds out what became of the last batch whose Apply ended with
	// ErrUncertain. The Outcomes are as Apply would have returned them; committed
	// is false if nothing of it is in the table and, from now on, never will be.
	Resolve(ctx context.Context) (out []Outcome, committed bool, err error)

	// Kept is ErrGone if it is known, without writing, that what was written would be lost: the database is not where it was
	// opened, or a sync of it failed.
	Kept() error

	// RelaxedStats counts commits that were acknowledged before they were durable.
	RelaxedStats() RelaxedStats
}

// Log is the log of changes: what it has, when it has more, and whether the database went back behind it.
type Log interface {
	// Changes returns up to limit entries after a revision, ascending, without
	// gaps, with previous values if asked. Errors: CompactedError if after < floor.
	Changes(ctx context.Context, after int64, limit int, previous bool) ([]Change, error)

	// RevisionAt returns the newest revision written at or before t (0: none; the floor
	// where all that is kept is newer).
	RevisionAt(ctx context.Context, t time.Time) (int64, error)

	// Since returns the earliest time of which it is known that the revision, or a newer one, was the newest by
	// then: RevisionAt means nothing for earlier ones. It is exact for what the log keeps, and to the second below.
	// ok is false where no row and no mark at or above the revision is kept.
	Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error)

	// Hints delivers "look again" after a commit of any process. Hints may be
	// lost or merged and carry no data. The channel closes with ctx.
	Hints(ctx context.Context) <-chan struct{}

	// Exclusive is 0 while other processes may write to the database. Otherwise it
	// is a number that stays the same only as long as none could have written: who
	// read the bounds under this number need not read them again.
	Exclusive() uint64

	// Returned is Returns().Count, and cheap.
	Returned() int64
	// Returns tells what was noticed, since the driver was opened, of a database that went back. It does not ask it.
	Returns() Returns
	// Noticed is sent to after Returned has changed. Sends may be merged. Nil: that is never noticed.
	Noticed() <-chan struct{}
}

// History is what was replaced: how far it is kept, and in which form.
type History interface {
	// Past returns up to limit rows of one key with a revision below before (0: from the
	// newest), newest first: the live one, and those that ended above the floor of its
	// resource, deletes among them. None is no error.
	Past(ctx context.Context, key Key, before int64, limit int) ([]Row, error)

	// Older returns up to limit rows that ended at or below a revision and above the floor of their
	// resource, behind a place, in the order of keys and revisions, packed or not. None means that none is left.
	// Errors: CorruptError of a pack, whose Key and Revision are a place to go on from.
	Older(ctx context.Context, upTo int64, after Cursor, limit int) ([]Row, error)

	// Floors says how far back the log and snapshots reach.
	Floors(ctx context.Context) (Floors, error)

	// Retain raises the floors, durably, to those of Floors.Raised, and deletes nothing. Where
	// the log's would rise by much it may rise by less: the floors that are returned hold
	// then. From here on Trim is not called, as it raises the log's floor and that of all
	// snapshots with it.
	Retain(ctx context.Context, to Floors) (Floors, error)

	// Trim raises the floor to to, durably and first, then deletes up to limit
	// rows that ended at or below the floor. It returns how many; fewer than
	// limit means that none is left. A floor is never lowered. Where packs go beyond the floor
	// and to does not, it deletes nothing: what ended below waits to be packed.
	Trim(ctx context.Context, to int64, limit int) (deleted int, err error)

	// TrimsBeside tells whether writers go on while Trim works. Where they do not, it is
	// called for few rows at a time, with long rests.
	TrimsBeside() bool

	// Pack moves about limit rows that ended at or below the floor of the log, from a place
	// on, into packs, each transaction all rows of some objects or the oldest of one; it deletes
	// those whose resource's floor has passed them. Readers and writers see no difference. What it
	// did stays done when ctx ends or a later call fails.
	Pack(ctx context.Context, from Cursor, limit int) (Packed, error)

	// Forget deletes up to limit packs that are below the floors of their resources. Fewer than limit
	// means that none is left.
	Forget(ctx context.Context, limit int) (deleted int, err error)

	// Restate puts other values in the place of those of ended rows of one object, packed or not, in one
	// transaction. Of the rows the key, which is the same, revision and value are given, ascending; none asks whether the driver can. It returns how
	// many it found: rows may have gone meanwhile. Errors: CorruptError of a pack that has some of the rows,
	// ErrBusy where somebody else packed, or restated, the same, errors.ErrUnsupported of a database that no other process has.
	Restate(ctx context.Context, rows []Row) (done int, err error)
}

// Leases are what servers on one database agree on.
type Leases interface {
	// Now is the time by a clock that all processes on the database share, as well as
	// it is known. It does not ask the database.
	Now() time.Time

	// Lead tries to become the one holder of name. It does not wait: ok is false
	// while another process holds it. A holder that dies loses it within seconds;
	// held is closed when it is lost; release gives it up.
	Lead(ctx context.Context, name string) (held <-chan struct{}, release func(), ok bool, err error)

	// Note returns what SetNote stored last under a name, "" for nothing. Notes are small facts about the database
	// that its servers agree on.
	Note(ctx context.Context, name string) (string, error)

	// SetNote stores a note in the place of was, durably, and tells whether that was what stood there.
	SetNote(ctx context.Context, name, was, is string) (bool, error)
}

// Admin is for operators, and for what a server does once.
type Admin interface {
	// ChecksRows tells whether each row has a checksum that is compared whenever the row is read (what is not as it was
	// written has Row.Damaged), and ReadAll fails with ErrIndexMismatch where the table and its
	// indexes do not have the same rows. Where it is false, the database itself has to notice damage.
	ChecksRows() bool

	// CheckRows compares the rows with their checksums (if values), and then the table with its indexes row by row, a page
	// at a time, while others read and write. It calls page after each of them with the rows that differ, whose Damaged says
	// how: the driver sets Key and Revision as it found them, and Superseded where no index of live rows has the row. page
	// may rest, and no value stays in memory. A driver that does not check rows has nothing to compare.
	CheckRows(ctx context.Context, values bool, page func(differ []Row) error) error

	// Attestor attests to cache files; nil: the database attests to none.
	Attestor() Attestor

	// Load fills an empty database in one transaction: with the rows as they are,
	// revisions and times included, and with the content's bounds and cluster id.
	// After an error, or a crash, the database is as empty as before.
	// Errors: ErrNotEmpty if anything was ever written, and those of Rows.
	Load(ctx context.Context, content Content) error

	// SkipRevisions leaves out the next count revisions, durably: the log begins anew behind them, and clients that
	// have seen any of them list again. With count 0 it leaves out as many as may have been given since the newest write.
	// A database that nobody can take back to an older state has errors.ErrUnsupported.
	SkipRevisions(ctx context.Context, count int64) (from, to int64, err error)

	// Stats describes the stored data for operators; it may take seconds.
	Stats(ctx context.Context) (Stats, error)

	// Close waits for everything the driver started.
	Close() error
}

// Stats is what an operator asks of a database.
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
