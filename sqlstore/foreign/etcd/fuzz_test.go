package etcd_test

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
)

// small returns a database whose key bucket has branches, and buckets of all kinds.
func small(t testing.TB) *backend {
	b := newBackend(t)
	b.in("key", func(keys *bbolt.Bucket) error {
		for i := range int64(200) {
			kv := kv("/registry/pods/a/"+string(rune('a'+i%26)), "value of some length, so that there are several pages", i+2)
			kv.ModRevision = i + 2
			value, err := kv.Marshal()
			if err = errors.Join(err, keys.Put(revision(i+2, 0), value)); err != nil {
				return err
			}
		}
		return nil
	})
	return b
}

// within fails a test where reading a file takes longer than any sound one would.
func within(t testing.TB, path string) error {
	t.Helper()
	begin := time.Now()
	_, _, err := all(t, path, etcd.SnapshotOptions{Unhashed: true})
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("reading took %s", took)
	}
	return err
}

// TestDamagedPages changes single bytes of every page, under a hash that is right: what
// comes of it are the keys or an error, in bounded time.
func TestDamagedPages(t *testing.T) {
	b := small(t)
	raw := b.done()
	r := rand.New(rand.NewPCG(3, 14))
	refused := 0
	for page := 0; page < len(raw); page += 4096 {
		for range 20 {
			at := page + r.IntN(200)
			if raw[at] == 0 && r.IntN(4) > 0 {
				at = page + r.IntN(20)
			}
			old := raw[at]
			raw[at] ^= 1 << r.IntN(8)
			b.write(sealed(raw))
			if within(t, b.path) != nil {
				refused++
			}
			raw[at] = old
		}
	}
	if refused < 20 {
		t.Errorf("only %d changes were noticed", refused)
	}
}

// TestPagesInCircles follows no page twice, wherever a branch or a bucket points.
func TestPagesInCircles(t *testing.T) {
	b := small(t)
	raw := b.done()
	seen := 0
	for page := 2; page < len(raw)/4096; page++ {
		head := raw[page*4096:]
		if binary.NativeEndian.Uint16(head[8:]) != 1 || binary.NativeEndian.Uint64(head) != uint64(page) { // a branch
			continue
		}
		for _, to := range []uint64{uint64(page), 0, 1, 1 << 40, binary.NativeEndian.Uint64(head[16+16+8:])} {
			old := binary.NativeEndian.Uint64(head[16+8:])
			binary.NativeEndian.PutUint64(head[16+8:], to)
			b.write(sealed(raw))
			if err := within(t, b.path); errors.Is(err, etcd.ErrDamaged) {
				seen++
			}
			binary.NativeEndian.PutUint64(head[16+8:], old)
		}
	}
	if seen < 5 {
		t.Errorf("%d circles were noticed", seen)
	}
	// The root is at another page, with a matching checksum.
	for meta := range 2 {
		m := raw[meta*4096+16:]
		binary.NativeEndian.PutUint64(m[16:], 0)
		sum := fnv.New64a()
		sum.Write(m[:56])
		binary.NativeEndian.PutUint64(m[56:], sum.Sum64())
	}
	b.write(sealed(raw))
	if err := within(t, b.path); !errors.Is(err, etcd.ErrDamaged) {
		t.Error(err)
	}
}

// FuzzSnapshot puts bytes somewhere into a sound database.
func FuzzSnapshot(f *testing.F) {
	b := small(f)
	raw := b.done()
	f.Add(uint32(8), []byte{1})
	f.Add(uint32(4096*3+10), []byte{0xff, 0xff, 1})
	f.Add(uint32(16), []byte{0xED, 0xDA, 0x0C, 0xED})
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		changed := append([]byte(nil), raw...)
		copy(changed[int(at)%len(changed):], patch)
		path := t.TempDir() + "/s.db"
		if err := os.WriteFile(path, sealed(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := within(t, path); err == nil {
			return
		}
	})
}

// FuzzRecord gives a record any content.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{10, 2, '/', 'a', 16, 2, 24, 2, 42, 1, 'v'}, []byte{8, 1, 16, 2})
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, []byte{0xff})
	f.Fuzz(func(t *testing.T, value, lease []byte) {
		b := newBackend(t)
		b.in("key", func(keys *bbolt.Bucket) error { return keys.Put(revision(2, 0), value) })
		b.in("lease", func(l *bbolt.Bucket) error { return l.Put(revision(2, 0), lease) })
		b.save()
		got, _, err := all(t, b.path, etcd.SnapshotOptions{})
		var keyed *foreign.KeyError
		switch {
		case err != nil && !errors.Is(err, etcd.ErrDamaged) && !errors.As(err, &keyed):
			t.Error(err)
		case err == nil && (len(got) != 1 || got[0].ModRevision != 2 || got[0].Key == ""):
			t.Errorf("%v", got)
		}
	})
}
