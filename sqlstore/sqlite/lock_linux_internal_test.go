package sqlite

import (
	"path/filepath"
	"testing"
)

// TestLockHasItsBlock: the file has been written behind the word in memory, so that storing to the word needs no room on the disk.
func TestLockHasItsBlock(t *testing.T) {
	l, err := openLock(t.Context(), filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	info, err := l.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() <= 8 {
		t.Errorf("the file has %d bytes, and the word takes 8", info.Size())
	}
}
