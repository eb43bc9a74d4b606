//go:build unix

package follow

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPipesAndLinks: pipes and links in place of files in a folder block no caller, and no file
// outside of it is read or truncated.
func TestPipesAndLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	store(t, outside, []byte("{} no line's end: as if cut short"))
	for what, put := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink(outside, path) },
	} {
		dir := t.TempDir()
		for _, name := range []string{fileName(basePrefix, baseSuffix, 1, 5), fileName(logPrefix, logSuffix, 1, 6)} {
			if err := put(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() { _, err := newestOf(t, dir); ended <- err }()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: still waiting", what)
		}
		w, err := newWriter(dir, 1<<20, time.Hour, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fileName(logPrefix, logSuffix, 1, 6))
		if _, err := w.resume(path); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: written on: %v", what, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		_ = w.zip.Close()
	}
}
