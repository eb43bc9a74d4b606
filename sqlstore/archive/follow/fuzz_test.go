package follow

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/sqlstore"
)

// FuzzSegment: whatever a file holds, reading it ends, with bounded memory, with the written
// content or with an error; content read without one has its revisions in order.
func FuzzSegment(f *testing.F) {
	o := newOrigin(f)
	dir := o.filled(Config{}, 10)
	whole, err := os.ReadFile(segmentsOf(f, dir)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"format":"rowlock-log","version":1,"run":1,"first":1}` + "\n"))
	f.Add(append(bytes.Clone(whole), frameHead{kind: kindRows, packed: longest, size: longest, count: maxRows, first: 1}.encode()...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		readAll(t, data)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20+64*uint64(len(data)) {
			t.Errorf("%d bytes took %d of memory", len(data), took)
		}
	})
}

func readAll(t *testing.T, data []byte) {
	in, err := newSegmentReader("file", bytes.NewReader(data))
	if err != nil {
		return
	}
	unpack, err := newUnpacker()
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.close()
	for next := in.header.First; ; {
		one, err := in.read()
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
		err = unpack.rows(&one, func(c *sqlstore.Change) error {
			if c.Revision != next {
				t.Errorf("revision %d where %d belongs", c.Revision, next)
			}
			next++
			return nil
		})
		if err != nil {
			return
		}
	}
}

// FuzzRow: a row comes back from its bytes as it was, and any bytes are a row or an error.
func FuzzRow(f *testing.F) {
	f.Add("pods", "ns", "a", int64(7), int64(3), []byte(`{"kind":"Pod"}`), true, int64(0), []byte{3, 0, 1})
	f.Add("~x", "", "b", int64(1), int64(1), []byte("\xff\n"), false, int64(99), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add("pods", "ns", "a", int64(math.MaxInt64), int64(1<<62+1), []byte(`{}`), false, int64(0), []byte{})
	f.Fuzz(func(t *testing.T, resource, namespace, name string, revision, created int64, value []byte, deleted bool, expires int64, hostile []byte) {
		bad := rowReader{data: hostile, revision: 1}
		for {
			if _, err := bad.next(); err != nil {
				break
			}
		}
		c := sqlstore.Change{Row: sqlstore.Row{
			Key: sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}, Revision: revision, Created: created, Value: value, Deleted: deleted, WrittenAt: time.UnixMicro(5).UTC(),
		}}
		if expires > 0 {
			c.ExpiresAt = time.UnixMicro(expires).UTC()
		}
		if deleted {
			c.Superseded = revision
		}
		r := rowReader{data: appendRow(nil, &c), revision: revision}
		back, err := r.next()
		if err != nil {
			if errors.Is(err, ErrDamaged) && (resource == "" || name == "" || revision <= 0 || created <= 0 || created > revision) {
				return
			}
			t.Fatal(err)
		}
		if len(value) == 0 {
			c.Value, back.Value = nil, nil
		}
		back.PrevRevision = c.PrevRevision
		if diff := cmp.Diff(c, back); diff != "" || len(r.data) > 0 {
			t.Fatal(diff)
		}
	})
}

// TestNames: names of files describe their content, and other files are left alone.
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		fileName(basePrefix, baseSuffix, 3, 1<<62): true, "base-000001-0000000000000000000.gz": true, "base-1-2.gz": false, "base-000001-0000000000000000001.gz.partial": false,
		"base-000000-0000000000000000001.gz": false, "base-+00001-0000000000000000001.gz": false, "base-000001.partial": false, filepath.Join("x", "base-000001-0000000000000000001.gz"): false,
	} {
		if _, _, got := parseName(name, basePrefix, baseSuffix); got != ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
