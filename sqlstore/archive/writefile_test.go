package archive_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/archive"
)

// TestOneWriterOfAFile: while one process makes a file, another one that is to make the same file fails and leaves it alone. What a
// crash left behind is in nobody's way.
func TestOneWriterOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.gz")
	if err := os.WriteFile(path+".partial", []byte("left behind by a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	writing := func(text string, during func()) error {
		return archive.WriteFile(path, func(w io.Writer) error {
			during()
			_, err := io.WriteString(w, text)
			return err
		})
	}
	err := writing("first", func() {
		if err := writing("second", func() {}); err == nil {
			t.Error("two made it at once")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := writing("third", func() {}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "third" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if _, err := os.Stat(path + ".partial"); !os.IsNotExist(err) {
		t.Errorf("the partial file: %v", err)
	}
}
