package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

const (
	// pageBytes is the size of a written page; etcd reads any.
	pageBytes = 4096
	// batchBytes is the size of a batch that is written to the file.
	batchBytes = 16 << 20
	// leaseStep is the least distance between the ends of two leases: keys that expire within it
	// share one, as an API server shares them.
	leaseStep = time.Minute
)

// emptyBuckets are the buckets of a member of etcd 3.5 other than keys, leases and metadata. Restoring fills
// the last three with the members of the new cluster.
var emptyBuckets = []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "members", "members_removed"}

// SnapshotSink writes a snapshot file. It collects records in a database next to it, whatever the order of
// their revisions.
type SnapshotSink struct {
	path   string
	now    time.Time
	db     *bbolt.DB // nil: committed or aborted
	tx     *bbolt.Tx
	keys   *bbolt.Bucket
	bytes  int // in tx
	newest int64
	leases map[int64]int64 // ID by the step in which it ends
}

var _ foreign.Sink = (*SnapshotSink)(nil)

// CreateSnapshot begins a snapshot file, which replaces another of its name on Commit.
// now is the time from which leases count.
func CreateSnapshot(path string, now time.Time) (*SnapshotSink, error) {
	s := &SnapshotSink{path: path, now: now, leases: make(map[int64]int64)}
	err := s.removeParts()
	if err == nil {
		s.db, err = openPart(s.gathered())
	}
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing etcd snapshot %s: %w", path, err), s.Abort())
	}
	return s, nil
}

// gathered and ordered are the files of a snapshot that is not committed.
func (s *SnapshotSink) gathered() string { return s.path + ".gathered" }
func (s *SnapshotSink) ordered() string  { return s.path + ".ordered" }

func (s *SnapshotSink) removeParts() (err error) {
	for _, part := range []string{s.gathered(), s.ordered()} {
		if e := os.Remove(part); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// openPart opens a temporary file of this process: only the file that is made from it must reach the disk.
func openPart(path string) (*bbolt.DB, error) {
	return bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageBytes, NoSync: true, NoGrowSync: true, Timeout: time.Second})
}

func (s *SnapshotSink) begin() (err error) {
	s.bytes = 0
	if s.tx, err = s.db.Begin(true); err == nil {
		s.keys, err = s.tx.CreateBucketIfNotExists(keyBucket)
	}
	return err
}

// Describe implements foreign.Sink.
func (s *SnapshotSink) Describe() string { return "etcd snapshot " + s.path }

// Put implements foreign.Sink. Keys may come in any order, each once; two of one revision
// become two of one transaction.
func (s *SnapshotSink) Put(ctx context.Context, e foreign.Entry) error {
	if err := errors.Join(ctx.Err(), foreign.Check(e.Key, int64(len(e.Value)))); err != nil {
		return err
	}
	if e.ModRevision <= 0 || e.CreateRevision <= 0 || e.CreateRevision > e.ModRevision {
		return &foreign.KeyError{Key: e.Key, Why: fmt.Sprintf("was created at revision %d and written at %d, which no key can be", e.CreateRevision, e.ModRevision)}
	}
	kv := keyValue{key: []byte(e.Key), value: e.Value, created: e.CreateRevision, modified: e.ModRevision, versions: 1, leased: s.lease(e.ExpiresAt)}
	if e.ModRevision > e.CreateRevision {
		kv.versions = 2 // how often it was written is not known
	}
	value := kv.append(nil)
	at := place{main: e.ModRevision}
	for s.keys.Get(at.bytes()) != nil {
		at.sub++
	}
	if err := s.keys.Put(at.bytes(), value); err != nil {
		return fmt.Errorf("writing etcd snapshot %s: %w", s.path, err)
	}
	s.newest = max(s.newest, e.ModRevision)
	if s.bytes += len(value) + revisionSize; s.bytes < batchBytes {
		return nil
	}
	if err := errors.Join(s.tx.Commit(), s.begin()); err != nil {
		return fmt.Errorf("writing etcd snapshot %s: %w", s.path, err)
	}
	return nil
}

// lease returns the ID of the lease under which a key expires; 0 for one that does not.
func (s *SnapshotSink) lease(end time.Time) int64 {
	if end.IsZero() {
		return 0
	}
	step := int64(max(end.Sub(s.now), time.Second)+leaseStep-1) / int64(leaseStep)
	id, ok := s.leases[step]
	if !ok {
		id = int64(len(s.leases) + 1)
		s.leases[step] = id
	}
	return id
}

// Commit implements foreign.Sink. History before revision counts as compacted, so that clients with older
// watches list again instead of missing deletions.
func (s *SnapshotSink) Commit(ctx context.Context, revision int64) error {
	err := ctx.Err()
	switch {
	case s.db == nil:
		err = errors.New("it is committed or aborted already")
	case revision < s.newest || revision <= 0:
		err = fmt.Errorf("its revision %d is below %d of a key", revision, s.newest)
	}
	if err == nil {
		err = s.finish(revision)
	}
	if err != nil {
		err = fmt.Errorf("writing etcd snapshot %s: %w", s.path, err)
	}
	return errors.Join(err, s.Abort())
}

func (s *SnapshotSink) finish(revision int64) error {
	if err := s.describe(revision); err != nil {
		return err
	}
	tx := s.tx
	s.tx = nil
	if err := tx.Commit(); err != nil {
		return err
	}
	ordered, err := openPart(s.ordered())
	if err != nil {
		return err
	}
	// Gathered by key, records lie scattered, with free pages between them.
	err = bbolt.Compact(ordered, s.db, batchBytes)
	if err == nil {
		err = archive.WriteFile(s.path, func(w io.Writer) error { return hashed(w, ordered) })
	}
	return errors.Join(err, ordered.Close())
}

// hashed writes a database and the hash of it.
func hashed(w io.Writer, db *bbolt.DB) error {
	sum := sha256.New()
	err := db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(io.MultiWriter(w, sum))
		return err
	})
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	return err
}

// describe writes the buckets other than keys. A member sets the position of the cluster's log when it
// restores the file; the version of the form is that of etcd 3.5, which has these fields and no number.
func (s *SnapshotSink) describe(revision int64) error {
	leases, err := s.tx.CreateBucketIfNotExists(leaseBucket)
	if err != nil {
		return err
	}
	for step, id := range s.leases {
		key := binary.BigEndian.AppendUint64(nil, uint64(id))
		if err := leases.Put(key, appendLease(nil, id, step*int64(leaseStep/time.Second))); err != nil {
			return err
		}
	}
	for _, name := range emptyBuckets {
		if _, err := s.tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	meta, err := s.tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	compacted, one := place{main: revision}.bytes(), binary.BigEndian.AppendUint64(nil, 1)
	for _, field := range []struct{ name, value []byte }{
		{consistentIndexKey, one}, {termKey, one}, {confStateKey, []byte(`{"voters":[1],"auto_leave":false}`)},
		{scheduledCompactKey, compacted}, {finishedCompactKey, compacted},
	} {
		if err := meta.Put(field.name, field.value); err != nil {
			return err
		}
	}
	return nil
}

// Abort implements foreign.Sink.
func (s *SnapshotSink) Abort() error {
	if s.db == nil {
		return nil
	}
	var err error
	if s.tx != nil {
		err = s.tx.Rollback()
		s.tx = nil
	}
	err = errors.Join(err, s.db.Close(), s.removeParts())
	s.db = nil
	return err
}
