package etcd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

// backend is a file as etcd leaves it, made by the library that etcd uses.
type backend struct {
	t    testing.TB
	path string
	db   *bbolt.DB
}

func newBackend(t testing.TB) *backend {
	b := &backend{t: t, path: filepath.Join(t.TempDir(), "snapshot.db")}
	db, err := bbolt.Open(b.path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	b.db = db
	for _, name := range []string{"key", "meta", "lease", "members"} {
		b.in(name, func(*bbolt.Bucket) error { return nil })
	}
	return b
}

func (b *backend) in(bucket string, fn func(*bbolt.Bucket) error) {
	b.t.Helper()
	err := b.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		return fn(bucket)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func revision(main, sub int64) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_'), uint64(sub))
}

// put writes a record at a revision.
func (b *backend) put(main, sub int64, kv *mvccpb.KeyValue) {
	kv.ModRevision = main
	value, err := kv.Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	b.in("key", func(keys *bbolt.Bucket) error { return keys.Put(revision(main, sub), value) })
}

func (b *backend) delete(main int64, key string) {
	value, err := (&mvccpb.KeyValue{Key: []byte(key)}).Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	b.in("key", func(keys *bbolt.Bucket) error { return keys.Put(append(revision(main, 0), 't'), value) })
}

// done closes the database and returns its bytes; write puts bytes in its place.
func (b *backend) done() []byte {
	b.t.Helper()
	if err := b.db.Close(); err != nil {
		b.t.Fatal(err)
	}
	raw, err := os.ReadFile(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

func (b *backend) write(raw []byte) {
	b.t.Helper()
	if err := os.WriteFile(b.path, raw, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// save closes the database and appends the hash, as etcdctl snapshot save does.
func (b *backend) save() []byte {
	raw := sealed(b.done())
	b.write(raw)
	return raw
}

func sealed(raw []byte) []byte {
	sum := sha256.Sum256(raw)
	return append(bytes.Clone(raw), sum[:]...)
}

func kv(key, value string, created int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: created, Version: 1}
}

// all reads a snapshot whole, twice, as the contract allows.
func all(t testing.TB, path string, o etcd.SnapshotOptions) ([]foreign.Entry, int64, error) {
	t.Helper()
	s, err := etcd.OpenSnapshot(t.Context(), path, o)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	var passes [2][]foreign.Entry
	for i := range passes {
		for e, err := range s.Entries(t.Context()) {
			if err != nil {
				return nil, 0, err
			}
			e.Value = bytes.Clone(e.Value)
			passes[i] = append(passes[i], e)
		}
	}
	if !reflect.DeepEqual(passes[0], passes[1]) {
		t.Errorf("%d entries, and read again %d or others", len(passes[0]), len(passes[1]))
	}
	return passes[0], s.Revision(), nil
}

func TestSnapshotHasNewestOfEachKey(t *testing.T) {
	b := newBackend(t)
	b.put(2, 0, kv("/registry/b", "old", 2))
	b.put(3, 0, kv("/registry/a", "x", 3))
	b.put(4, 0, kv("/registry/b", "new", 2))
	b.put(5, 0, kv("/registry/gone", "x", 5))
	b.delete(6, "/registry/gone")
	b.put(7, 0, kv("/registry/again", "1", 7))
	b.delete(8, "/registry/again")
	again := kv("/registry/again", "2", 9)
	again.Lease = 77
	b.put(9, 0, again)
	b.put(9, 1, kv("/registry/with", "again", 9))
	b.delete(10, "/registry/nothing")
	b.in("lease", func(l *bbolt.Bucket) error {
		// ID 77, TTL 3660, 60 of them left
		return l.Put(binary.BigEndian.AppendUint64(nil, 77), []byte{8, 77, 16, 0xcc, 0x1c, 24, 60})
	})
	b.save()
	got, at, err := all(t, b.path, etcd.SnapshotOptions{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	want := []foreign.Entry{
		{Key: "/registry/a", Value: []byte("x"), CreateRevision: 3, ModRevision: 3},
		{Key: "/registry/again", Value: []byte("2"), CreateRevision: 9, ModRevision: 9, ExpiresAt: noon.Add(time.Minute)},
		{Key: "/registry/b", Value: []byte("new"), CreateRevision: 2, ModRevision: 4},
		{Key: "/registry/with", Value: []byte("again"), CreateRevision: 9, ModRevision: 9},
	}
	if diff := cmp.Diff(want, got); diff != "" || at != 10 {
		t.Errorf("at revision %d:\n%s", at, diff)
	}
}

func TestSnapshotOfCompactedDeletesKeepsItsRevision(t *testing.T) {
	b := newBackend(t)
	b.put(2, 0, kv("/registry/a", "x", 2))
	b.in("meta", func(m *bbolt.Bucket) error {
		return errors.Join(m.Put([]byte("scheduledCompactRev"), revision(40, 0)), m.Put([]byte("finishedCompactRev"), revision(39, 0)))
	})
	b.save()
	got, at, err := all(t, b.path, etcd.SnapshotOptions{})
	if err != nil || at != 40 || len(got) != 1 {
		t.Errorf("%v at %d: %v", got, at, err)
	}
}

func TestSnapshotIsCheckedByItsHash(t *testing.T) {
	b := newBackend(t)
	for i := range int64(100) {
		b.put(i+2, 0, kv(fmt.Sprintf("/registry/k%03d", i), strings.Repeat("v", 100), i+2))
	}
	raw := b.done()
	saved := sealed(raw)
	for _, c := range []struct {
		name     string
		bytes    []byte
		unhashed bool
		want     error
	}{
		{"whole", saved, false, nil},
		{"whole, and none is asked for", saved, true, nil},
		{"copied", raw, false, etcd.ErrNoHash},
		{"copied, as it may be", raw, true, nil},
		{"a flipped bit", append(append(bytes.Clone(saved[:9000]), saved[9000]^1), saved[9001:]...), false, etcd.ErrDamaged},
		{"a flipped bit, though no hash is asked for", append(append(bytes.Clone(saved[:9000]), saved[9000]^1), saved[9001:]...), true, etcd.ErrDamaged},
		{"cut off by a byte", saved[:len(saved)-1], false, etcd.ErrDamaged},
		{"cut off by pages", saved[:8192+32], false, etcd.ErrDamaged},
		{"a copy that is cut off", raw[:8192], true, etcd.ErrDamaged},
		{"empty", nil, true, etcd.ErrDamaged},
		{"zeros", make([]byte, 8192), true, etcd.ErrDamaged},
		{"text", []byte(strings.Repeat("apiVersion: v1\n", 512)), true, etcd.ErrDamaged},
	} {
		b.write(c.bytes)
		got, _, err := all(t, b.path, etcd.SnapshotOptions{Unhashed: c.unhashed})
		if !errors.Is(err, c.want) || err == nil && len(got) != 100 {
			t.Errorf("%s: %d keys, %v, want %v", c.name, len(got), err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), b.path) {
			t.Errorf("%s: %v does not name the file", c.name, err)
		}
	}
}

func TestSnapshotInUseOrMissing(t *testing.T) {
	b := newBackend(t)
	if _, _, err := all(t, b.path+"x", etcd.SnapshotOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := all(t, filepath.Dir(b.path), etcd.SnapshotOptions{}); err == nil {
		t.Error("a folder was read")
	}
	if _, _, err := all(t, b.path, etcd.SnapshotOptions{Unhashed: true}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("of a running etcd: %v", err)
	}
}

// TestSnapshotLeavesOutLongValues: a value that is too long is left out by name, and others
// are read; one that was replaced is nothing that matters.
func TestSnapshotLeavesOutLongValues(t *testing.T) {
	b := newBackend(t)
	b.put(2, 0, kv("/long", strings.Repeat("v", foreign.MaxValue+1), 2))
	b.put(3, 0, kv("/most", strings.Repeat("v", foreign.MaxValue), 3))
	b.put(4, 0, kv("/was", strings.Repeat("v", foreign.MaxValue+9000), 4))
	b.put(5, 0, kv("/was", "short", 4))
	b.save()
	got, at, err := all(t, b.path, etcd.SnapshotOptions{})
	if err != nil || at != 5 || len(got) != 3 {
		t.Fatalf("%d keys at %d: %v", len(got), at, err)
	}
	var keyed *foreign.KeyError
	if e := got[0]; !errors.As(e.Unread, &keyed) || keyed.Key != "/long" || !strings.Contains(keyed.Why, fmt.Sprint(foreign.MaxValue+1)) || e.Value != nil || e.ModRevision != 2 {
		t.Errorf("%s: %d bytes, %v", e.Key, len(e.Value), e.Unread)
	}
	for i, size := range []int{foreign.MaxValue, len("short")} {
		if e := got[i+1]; e.Unread != nil || len(e.Value) != size {
			t.Errorf("%s: %d bytes, %v", e.Key, len(e.Value), e.Unread)
		}
	}
}

func TestSnapshotBoundsRecords(t *testing.T) {
	for name, c := range map[string]struct {
		fill    func(b *backend)
		message string
	}{
		"a record": {func(b *backend) {
			long := kv("/k", strings.Repeat("v", foreign.MaxValue), 2)
			long.XXX_unrecognized = append([]byte{0x82, 1, 0x80, 0x40}, make([]byte, 8192)...) // field 16
			b.put(2, 0, long)
		}, "besides its value"},
		"a cut record": {func(b *backend) {
			b.in("key", func(k *bbolt.Bucket) error {
				return k.Put(revision(3, 0), append([]byte{0x2a, 0xff, 0xff, 0xff, 0x7f}, make([]byte, foreign.MaxValue)...))
			})
		}, "does not decode"},
		"a key":      {func(b *backend) { b.put(2, 0, kv("/"+strings.Repeat("k", foreign.MaxKey), "v", 2)) }, "at most 4096"},
		"no key":     {func(b *backend) { b.put(2, 0, kv("", "v", 2)) }, "is empty"},
		"created":    {func(b *backend) { b.put(2, 0, kv("/k", "v", 3)) }, "created at 3"},
		"revision 0": {func(b *backend) { b.put(0, 0, kv("/k", "v", 0)) }, "revision"},
		"elsewhere": {func(b *backend) {
			b.put(2, 0, kv("/k", "v", 2))
			b.in("key", func(k *bbolt.Bucket) error { return k.Put(revision(3, 0), k.Get(revision(2, 0))) })
		}, "lies at 3"},
		"garbage": {func(b *backend) {
			b.in("key", func(k *bbolt.Bucket) error { return k.Put(revision(3, 0), []byte{0xff, 0xff}) })
		}, "does not decode"},
		"a lease": {func(b *backend) {
			b.in("lease", func(k *bbolt.Bucket) error { return k.Put(revision(3, 0), []byte{0xff, 0xff}) })
		}, "lease"},
		"a name": {func(b *backend) {
			b.in("key", func(k *bbolt.Bucket) error { return k.Put([]byte("name"), []byte{}) })
		}, "revision"},
		"a compaction": {func(b *backend) {
			b.in("meta", func(k *bbolt.Bucket) error { return k.Put([]byte("finishedCompactRev"), []byte("soon")) })
		}, "finishedCompactRev"},
	} {
		b := newBackend(t)
		c.fill(b)
		b.save()
		if _, _, err := all(t, b.path, etcd.SnapshotOptions{}); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v, want %q in it", name, err, c.message)
		}
	}
}
