package sqlstore

import (
	"errors"
	"fmt"
)

// Errors without data. Match with errors.Is.
var (
	ErrUnavailable = errors.New("store unavailable")                // network, pool, failover: may be retried
	ErrBusy        = errors.New("store busy")                       // lock or pool timeout: may be retried
	ErrUncertain   = errors.New("outcome of the commit is unknown") // even after looking
	ErrClosed      = errors.New("store closed")
	ErrFull        = errors.New("store full")           // disk or quota: writes are refused, reads continue
	ErrReadOnly    = errors.New("store read-only")      // a standby, or a read-only file
	ErrGone        = errors.New("store gone")           // the database is not at its old place, or a sync of it failed: writes are refused, reads continue
	ErrRefused     = errors.New("store refuses")        // the database answers, but refuses the operation: a missing right or table, or a limit that an administrator must raise
	ErrLeadLost    = errors.New("another server leads") // a write on behalf of a lead: nothing was written
	ErrTooLarge    = errors.New("value too large")
)

// NotFoundError: there is no live row, or none at the requested revision.
type NotFoundError struct{ Key Key }

// ExistsError: a Create met a live row.
type ExistsError struct {
	Key     Key
	Current Row
}

// ConflictError: an Update or Delete expected another revision. Current is the live row.
type ConflictError struct {
	Key     Key
	Expect  int64
	Current Row
}

// CompactedError: the requested history has been compacted. Floor is the highest compacted revision.
type CompactedError struct{ Revision, Floor int64 }

// FutureError: the requested revision is above Head.
type FutureError struct{ Revision, Head int64 }

// CorruptError: a stored value differs from the one that was written. Without a Key the database itself is damaged.
type CorruptError struct {
	Key      Key
	Revision int64
	Reason   string
}

// SchemaError: this binary cannot use the database's schema.
type SchemaError struct {
	Found, Known uint
	Needs        uint // the oldest schema whose binaries can use the database; 0: it is Known or older
	Reason       string
}

// Unmet returns the key of an Op whose condition failed because another write came first; ok is false for other errors.
func Unmet(err error) (key Key, ok bool) {
	if e, ok := errors.AsType[*ExistsError](err); ok {
		return e.Key, true
	}
	if e, ok := errors.AsType[*ConflictError](err); ok {
		return e.Key, true
	}
	if e, ok := errors.AsType[*NotFoundError](err); ok {
		return e.Key, true
	}
	return Key{}, false
}

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Resource + "/" + k.Name
	}
	return k.Resource + "/" + k.Namespace + "/" + k.Name
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s: not found", e.Key) }
func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s: exists at revision %d", e.Key, e.Current.Revision)
}
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: expected revision %d, newest is %d", e.Key, e.Expect, e.Current.Revision)
}
func (e *CompactedError) Error() string {
	return fmt.Sprintf("revision %d is compacted (floor %d)", e.Revision, e.Floor)
}
func (e *FutureError) Error() string {
	return fmt.Sprintf("revision %d is in the future (head %d)", e.Revision, e.Head)
}
func (e *CorruptError) Error() string {
	if e.Key == (Key{}) {
		return fmt.Sprintf("store corrupt at revision %d: %s", e.Revision, e.Reason)
	}
	return fmt.Sprintf("%s at revision %d: corrupt: %s", e.Key, e.Revision, e.Reason)
}
func (e *SchemaError) Error() string {
	return fmt.Sprintf("database schema %d, this binary knows up to %d: %s", e.Found, e.Known, e.Reason)
}
