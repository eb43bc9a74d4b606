package blockfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/server/cache/blockfile"
)

func block(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, i*37) }

// written makes a file of n blocks.
func written(t testing.TB, n int) (path, name string, key [32]byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	w, err := blockfile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for i := range n {
		if err := w.Add(block(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(); err == nil {
		t.Fatal("a file that is not finished was committed")
	}
	if err := w.Finish([]byte("about")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the file is there before it is committed (%v)", err)
	}
	f, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range n {
		if b, err := f.Block(i, nil); err != nil || !bytes.Equal(b, block(i)) {
			t.Fatalf("block %d of the new file: %v", i, err)
		}
	}
	return path, w.Name(), w.Key()
}

// read is everything in a file.
func read(path string, key [32]byte) (about []byte, blocks [][]byte, err error) {
	f, err := blockfile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if about, err = f.Unseal(key); err != nil {
		return nil, nil, err
	}
	for i := range f.Blocks() {
		b, err := f.Block(i, nil)
		if err != nil {
			return nil, nil, err
		}
		blocks = append(blocks, b)
	}
	return about, blocks, nil
}

func TestComesBackAsItWas(t *testing.T) {
	for _, n := range []int{0, 1, 50} {
		path, name, key := written(t, n)
		about, blocks, err := read(path, key)
		if err != nil || string(about) != "about" || len(blocks) != n {
			t.Fatalf("%d blocks came back as %d about %q: %v", n, len(blocks), about, err)
		}
		for i, b := range blocks {
			if !bytes.Equal(b, block(i)) {
				t.Fatalf("block %d came back as %d bytes", i, len(b))
			}
		}
		if f, err := blockfile.Open(path); err != nil || f.Name() != name {
			t.Fatalf("the name is not %q (%v)", name, err)
		} else {
			f.Close()
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v (%v)", info.Mode(), err)
		}
		if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
	}
}

// TestDamage changes each byte, and cuts the file off at each length.
func TestDamage(t *testing.T) {
	path, _, key := written(t, 5)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(path, key); !errors.Is(err, blockfile.ErrDamaged) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		damaged(fmt.Sprintf("byte %d is another", i), bad)
		damaged(fmt.Sprintf("cut off at %d", i), good[:i])
	}
	damaged("longer", append(bytes.Clone(good), 0))
	other, _, _ := written(t, 5)
	content, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	damaged("another file", content)
}

func TestWhatIsGivenUpGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for range 2 {
		w, err := blockfile.Create(path) // the second finds the draft of the first
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(make([]byte, 3<<20)); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(make([]byte, blockfile.MostBlock+1)); err == nil {
			t.Fatal("a block that is too large was taken")
		}
		t.Cleanup(w.Discard)
	}
	w, err := blockfile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Discard()
	w.Discard()
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// FuzzRead: whatever the contents of a file, reading it ends with an error or returns them.
func FuzzRead(f *testing.F) {
	path, _, key := written(f, 3)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:80])
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(path, key); err == nil && !bytes.Equal(content, good) {
			t.Fatal("a file that nobody wrote was read")
		}
	})
}

// TestNamesOfAPlace: files that take one another's place have names that begin alike, so that the keeper of
// their keys can tell.
func TestNamesOfAPlace(t *testing.T) {
	path, first, _ := written(t, 1)
	name := func(path string) string {
		t.Helper()
		w, err := blockfile.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		return w.Name()
	}
	half := len(first) / 2
	again := name(path)
	if again == first || len(again) != len(first) || again[:half] != first[:half] {
		t.Errorf("in the place of %s comes %s", first, again)
	}
	if other := name(path + ".other"); other[:half] == first[:half] {
		t.Errorf("%s, and %s in another place", first, other)
	}
	if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other := name(path); other[:half] == first[:half] {
		t.Errorf("%s, and %s in the place of what is no such file", first, other)
	}
}
