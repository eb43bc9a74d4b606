package values_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/values"
)

func value(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d ", i), 1+i%50) }

// written returns a file of n values, ten in each block, and a last block of one large value.
func written(t testing.TB, n int, large []byte) (f *blockfile.File, at []values.Location) {
	t.Helper()
	w, err := blockfile.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	var block []byte
	add := func(v []byte, last bool) {
		p := values.Location{Block: uint32(w.Blocks())}
		block, p.Offset = values.Append(block, v)
		at = append(at, p)
		if last {
			err = errors.Join(err, w.Add(block))
			block = block[:0]
		}
	}
	for i := range n {
		add(value(i), i%10 == 9)
	}
	add(large, true)
	if err = errors.Join(err, w.Finish(nil)); err == nil {
		f, err = w.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, at
}

// TestRead: many concurrent readers read the written values, and the memory for blocks is bounded.
func TestRead(t *testing.T) {
	const n, most = 3000, 256 << 10
	large := bytes.Repeat([]byte("large"), 100_000)
	blocks, at := written(t, n, large)
	pages := values.NewPages(most)
	var files [2]values.File // they share pages
	for i := range files {
		files[i].Open(blocks, pages)
	}
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := range 2 * n {
				i = (i*(2*r+1) + r) % (n + 1)
				want := large
				if i < n {
					want = value(i)
				}
				got, page, err := files[r%2].Read(at[i])
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("value %d is %.100q: %v", i, got, err)
					return
				}
				page.Release()
				if b := pages.Bytes(); b > most {
					t.Errorf("%d bytes are kept", b)
					return
				}
			}
		})
	}
	readers.Wait()
	if b := pages.Bytes(); b < most/4 {
		t.Errorf("%d bytes are kept", b)
	}
}

// TestNoValue: a place in no block, or in none of its values, is an error, and counted.
func TestNoValue(t *testing.T) {
	blocks, at := written(t, 10, []byte("x"))
	pages := values.NewPages(1 << 20)
	var f values.File
	f.Open(blocks, pages)
	for _, bad := range []values.Location{{Block: 9}, {Block: 1, Offset: 2}, {Block: 1, Offset: 1}, {Offset: 1 << 31}} {
		if v, _, err := f.Read(bad); !errors.Is(err, blockfile.ErrDamaged) {
			t.Errorf("%v is %q, %v", bad, v, err)
		}
	}
	blocks.Close()
	if _, page, err := f.Read(at[0]); err != nil { // its block is kept
		t.Error(err)
	} else {
		page.Release()
	}
	if pages.Failed() != 4 {
		t.Errorf("%d reads failed", pages.Failed())
	}
}
