// Package foreign defines access to stores that other API servers filled: a kine database, an etcd snapshot, a
// live etcd. A Source is read, a Sink is written; server/transfer interprets keys and values, and nothing here
// decodes a value.
//
// Implementations hold some pages of entries in memory, never the whole store. They start no goroutine that
// outlives Close, Commit or Abort, and write no log; Describe and errors contain no credentials.
package foreign

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// MaxValue bounds the bytes of a value of a foreign store; larger ones are refused unread. etcd
// takes requests of 1.5 MiB by default, and servers are run with ten times that; a larger one is
// no object, but damage.
const MaxValue = 32 << 20

// MaxKey bounds the bytes of a key.
const MaxKey = 4 << 10

// Entry is a live key of a foreign store, as an API server left it there.
type Entry struct {
	Key            string    // with its prefix: "/registry/pods/default/web"
	Value          []byte    // as stored: Protobuf with its prefix, JSON, or encrypted; valid until the next Entry
	CreateRevision int64     // of the write that made the key
	ModRevision    int64     // of the newest write; several keys of one transaction may share it
	ExpiresAt      time.Time // zero: never (etcd's leases, kine's column "lease" in seconds)
	Unread         error     // set by sources alone: why the value was not read; Value is then nil
}

// Source is a foreign store, read consistently at one revision: writes to
// it after it was opened are not seen, or end the reading with an error.
type Source interface {
	// Describe names the source for people, without credentials: "kine SQLite file state.db".
	Describe() string

	// Revision is the newest revision of the source, as it is read. No Entry has a
	// larger ModRevision.
	Revision() int64

	// Entries yields the live keys in bytewise order of Key, each once. It may be called more than
	// once, one call after the other. It ends with the first error.
	Entries(ctx context.Context) iter.Seq2[Entry, error]

	// Close releases files and connections. The source is unchanged.
	Close() error
}

// Counter is a Source that knows how much there is to read, for progress.
type Counter interface {
	// Count returns an upper bound of the number of entries.
	Count(ctx context.Context) (int64, error)
}

// Sink is filled with the live keys of a store. Nothing appears under its name
// until Commit, and nothing remains of it after Abort.
type Sink interface {
	// Describe names the sink for people, without credentials.
	Describe() string

	// Put adds a key, each once, in any order. ModRevision is kept if the form of the sink can. The sink
	// copies the parts of Value that it keeps.
	Put(ctx context.Context, e Entry) error

	// Commit makes everything that was put appear at once. revision is that of the whole: at least as large
	// as each ModRevision, and later writes continue above it.
	Commit(ctx context.Context, revision int64) error

	// Abort ends a sink that was not committed. After Commit it does nothing.
	Abort() error
}

// KeyError is an error about one key that a source or sink does not support.
type KeyError struct {
	Key string
	Why string
}

func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", Shown(e.Key), e.Why) }

// Shown returns a key for messages, of bounded length.
func Shown(key string) string {
	const most = 256
	if len(key) <= most {
		return key
	}
	return key[:most] + "…"
}

// Check returns an error if an entry that was read is out of bounds.
func Check(key string, valueBytes int64) error {
	switch {
	case key == "":
		return &KeyError{Key: key, Why: "is empty"}
	case len(key) > MaxKey:
		return &KeyError{Key: key, Why: fmt.Sprintf("is %d bytes long, and at most %d are read", len(key), MaxKey)}
	case valueBytes > MaxValue:
		return &KeyError{Key: key, Why: fmt.Sprintf("its value has %d bytes, and at most %d are read", valueBytes, MaxValue)}
	}
	return nil
}
