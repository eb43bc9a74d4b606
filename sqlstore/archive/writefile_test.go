package archive_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// TestFailedWriterOfAFile: a process that fails to make a file does not remove the one that another begins at that moment.
func TestFailedWriterOfAFile(t *testing.T) {
	path, failure := filepath.Join(t.TempDir(), "backup.gz"), errors.New("a full disk")
	var failing sync.WaitGroup
	stop := make(chan struct{})
	failing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := archive.WriteFile(path, func(io.Writer) error { return failure }); err == nil {
				t.Error("it did not fail")
				return
			}
		}
	})
	for made := 0; made < 200; {
		began := false
		err := archive.WriteFile(path, func(io.Writer) error {
			began = true
			return nil
		})
		if err == nil {
			made++
		} else if began {
			t.Errorf("a file is not made: %v", err)
			break
		} else if !strings.Contains(err.Error(), "another process") && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	close(stop)
	failing.Wait()
}
