package follow

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestScratch: folders that killed processes left are removed by the next one; those in
// use, of other names or modes, and new ones are not.
func TestScratch(t *testing.T) {
	parent := t.TempDir()
	used, done, err := scratch(parent, restorePrefix)
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"rowlock-restore-left": 0o700, "rowlock-verify-left": 0o700, "rowlock-restore-open": 0o755, "rowlock-restore-new": 0o700, "other-left": 0o700} {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
		store(t, filepath.Join(dir, "sorted-1"), []byte("a value"))
		store(t, filepath.Join(dir, lockName), nil)
	}
	old := time.Now().Add(-2 * leftFor)
	for _, name := range []string{"rowlock-restore-left", "rowlock-verify-left", "rowlock-restore-open", "other-left", filepath.Base(used)} {
		if err := os.Chtimes(filepath.Join(parent, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(used, filepath.Join(parent, "rowlock-restore-link")); err != nil {
		t.Fatal(err)
	}
	_, doneToo, err := VerifyScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"rowlock-restore-left": false, "rowlock-verify-left": false, "rowlock-restore-open/sorted-1": true,
		"rowlock-restore-new/sorted-1": true, "other-left/sorted-1": true, filepath.Base(used) + "/LOCK": true, "rowlock-restore-link": true,
	} {
		if _, err := os.Lstat(filepath.Join(parent, name)); (err == nil) != stays {
			t.Errorf("%s: %v, and it should stay: %v", name, err, stays)
		}
	}
	for _, f := range []func() error{done, doneToo} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(used); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
}
