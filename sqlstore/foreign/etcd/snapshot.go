// Package etcd reads and writes snapshot files of etcd 3, and reads a live etcd by its gRPC API.
//
// A file is not trusted: each number in it is checked before it is followed (pages.go), a fault while it is read
// is an error, and its cost is bounded, by foreign.MaxKey and foreign.MaxValue for each record and by a bound on
// all keys together. It writes files as `etcdctl snapshot save` of etcd 3.5 would, with one record for each key.
//
// It starts no goroutine of its own; those of the connection to a live etcd end with Close.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

var (
	// ErrDamaged is wrapped by errors about a file that etcd would not write.
	ErrDamaged = errors.New("the snapshot is damaged")
	// ErrNoHash is wrapped where a file ends without the hash that a snapshot has.
	ErrNoHash = errors.New("the file has no hash at its end")
)

// maxLeases bounds the leases of a snapshot. A cluster has one for about a thousand events, and one
// for each server.
const maxLeases = 1 << 20

// SnapshotOptions define how a snapshot is read.
type SnapshotOptions struct {
	// Unhashed accepts a file without a hash too: one that was copied from a member's folder (member/snap/db)
	// instead of saved. An existing hash is always checked.
	Unhashed bool
	Now      func() time.Time // default time.Now; leases run from then
}

// Snapshot is the state that a snapshot file holds.
type Snapshot struct {
	path     string
	db       *bbolt.DB
	tx       *bbolt.Tx
	revision int64
	newest   foreign.Newest[place]
	leases   map[int64]int64 // seconds by ID
	opened   time.Time
}

var _ foreign.Source = (*Snapshot)(nil)

// OpenSnapshot opens a snapshot file, checks all of it, and finds the newest record of each key. Errors:
// ErrDamaged, ErrNoHash, foreign.KeyError, wrapped with the file's name, and those of the file system.
func OpenSnapshot(ctx context.Context, path string, o SnapshotOptions) (*Snapshot, error) {
	s := &Snapshot{path: path, opened: time.Now()}
	if o.Now != nil {
		s.opened = o.Now()
	}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("reading etcd snapshot %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Snapshot) open(ctx context.Context, o SnapshotOptions) error {
	info, err := os.Stat(s.path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file") // to open a pipe waits for a writer
	}
	if err != nil {
		return err
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := checkHash(ctx, f, o.Unhashed)
	if err != nil {
		return err
	}
	if err := checkPages(f, size); err != nil {
		return err
	}
	err = guarded(func() (err error) {
		s.db, err = bbolt.Open(s.path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		if errors.Is(err, bolterrors.ErrTimeout) {
			return errors.New("it is in use by another process: save a snapshot (etcdctl snapshot save) and read that")
		}
		if err == nil {
			s.tx, err = s.db.Begin(false)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := guarded(s.readMeta); err != nil {
		return err
	}
	if err := guarded(s.readLeases); err != nil {
		return err
	}
	return guarded(func() error { return s.index(ctx) })
}

// guarded runs functions that read mapped pages. A file that changes while it is read can still cause a fault
// or a panic of the library: both become errors.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged("%v", p)
		}
	}()
	return fn()
}

// readMeta reads up to which revision history was compacted: where the newest writes
// were deletes, no record has a revision as high.
func (s *Snapshot) readMeta() error {
	meta := s.tx.Bucket(metaBucket)
	if meta == nil || s.tx.Bucket(keyBucket) == nil {
		return damaged("it has no buckets %q and %q: it is of no etcd 3", metaBucket, keyBucket)
	}
	for _, name := range [][]byte{scheduledCompactKey, finishedCompactKey} {
		value := meta.Get(name)
		if value == nil {
			continue
		}
		at, _, ok := readPlace(value)
		if !ok {
			return damaged("%s is no revision", name)
		}
		s.revision = max(s.revision, at.main)
	}
	return nil
}

func (s *Snapshot) readLeases() error {
	s.leases = make(map[int64]int64)
	bucket := s.tx.Bucket(leaseBucket)
	if bucket == nil {
		return nil
	}
	return bucket.ForEach(func(_, value []byte) error {
		id, seconds, err := readLease(value)
		if err != nil {
			return err
		}
		if s.leases[id] = seconds; len(s.leases) > maxLeases {
			return fmt.Errorf("it has more than %d leases", maxLeases)
		}
		return nil
	})
}

// index finds the newest record of each live key.
func (s *Snapshot) index(ctx context.Context) error {
	var r record
	var last place
	cursor := s.tx.Bucket(keyBucket).Cursor()
	n := 0
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at, deleted, ok := readPlace(k)
		if !ok || !last.before(at) {
			return damaged("a record's revision is none, or out of order, after revision %d", last.main)
		}
		kv, err := r.read(at, v)
		if err != nil {
			return err
		}
		last = at
		if deleted {
			s.newest.Delete(kv.key)
			continue
		}
		if kv.modified != at.main || kv.created > kv.modified || kv.created < 0 {
			return damaged("key %q says that it was written at revision %d, created at %d, and lies at %d", foreign.Shown(string(kv.key)), kv.modified, kv.created, at.main)
		}
		if err := s.newest.Set(kv.key, at); err != nil {
			return err
		}
	}
	s.revision = max(s.revision, last.main)
	return nil
}

// Describe implements foreign.Source.
func (s *Snapshot) Describe() string { return "etcd snapshot " + s.path }

// Revision implements foreign.Source.
func (s *Snapshot) Revision() int64 { return s.revision }

// Entries implements foreign.Source.
func (s *Snapshot) Entries(ctx context.Context) iter.Seq2[foreign.Entry, error] {
	return func(yield func(foreign.Entry, error) bool) {
		var r record
		bucket := s.tx.Bucket(keyBucket)
		for _, key := range s.newest.Keys() {
			var e foreign.Entry
			err := ctx.Err()
			if err == nil {
				err = guarded(func() (err error) {
					e, err = s.entry(bucket, &r, key)
					return err
				})
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Count implements foreign.Counter.
func (s *Snapshot) Count(context.Context) (int64, error) { return int64(len(s.newest.Keys())), nil }

func (s *Snapshot) entry(bucket *bbolt.Bucket, r *record, key string) (foreign.Entry, error) {
	at := s.newest.At(key)
	kv, err := r.read(at, bucket.Get(at.bytes()))
	if err != nil {
		return foreign.Entry{}, err
	}
	if string(kv.key) != key {
		return foreign.Entry{}, damaged("it changed while it was read")
	}
	e := foreign.Entry{Key: key, Value: kv.value, CreateRevision: kv.created, ModRevision: kv.modified}
	if e.Unread = r.unread; e.Unread != nil {
		e.Value = nil
	}
	if seconds := s.leases[kv.leased]; kv.leased != 0 && seconds > 0 {
		e.ExpiresAt = s.opened.Add(time.Duration(seconds) * time.Second)
	}
	return e, nil
}

// Close implements foreign.Source.
func (s *Snapshot) Close() error {
	var err error
	if s.tx != nil {
		err = s.tx.Rollback()
		s.tx = nil
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
		s.db = nil
	}
	return err
}
