//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileHas: a text is found wherever it is in a file, also across two pieces of it.
func TestFileHas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, at := range []int{0, 1, piece - 3, piece, 2*piece - 1, 2*piece + 7} {
		text := strings.Repeat("x", at) + "secret" + strings.Repeat("y", 10)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := fileHas(path, []string{"another text", "secret"}); err != nil || !found {
			t.Errorf("at %d: %v, %v", at, found, err)
		}
		if found, err := fileHas(path, []string{"another text", "secrets"}); err != nil || found {
			t.Errorf("what is not there, at %d: %v, %v", at, found, err)
		}
	}
}

// TestFindText: a text is found in each file of a database but for the index of its log, which the program must not open.
func TestFindText(t *testing.T) {
	t.Parallel()
	c := &Cluster{opts: Options{Dir: t.TempDir()}}
	db := filepath.Join(c.opts.Dir, "db")
	if err := os.Mkdir(db, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rowlock.db-shm", "rowlock.db-wal", "rowlock.db"} {
		path, want := filepath.Join(db, name), filepath.Join(db, name)
		if name == "rowlock.db-shm" {
			want = ""
		}
		if err := os.WriteFile(path, []byte("a secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.FindText("secret"); err != nil || got != want {
			t.Errorf("%s: the text is found in %q, %v; want %q", name, got, err, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
