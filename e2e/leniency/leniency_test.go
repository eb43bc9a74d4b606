package leniency_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/leniency"
)

// TestNote: each note is one line of the file, whatever its text, and without a file nothing is written.
func TestNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	t.Setenv(leniency.File, "")
	leniency.Note(t, "nobody counts this")
	t.Setenv(leniency.File, file)
	leniency.Note(t, "step %d was sent again", 3)
	leniency.Note(t, "two\nlines")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "TestNote: step 3 was sent again\nTestNote: two lines\n"; string(text) != want {
		t.Errorf("the file has %q, want %q", text, want)
	}
}

// failing keeps what a test reports.
type failing struct {
	testing.TB
	errors []string
}

func (f *failing) Helper()                        {}
func (f *failing) Logf(string, ...any)            {}
func (f *failing) Errorf(format string, _ ...any) { f.errors = append(f.errors, format) }

// TestUncounted: a note that cannot be counted fails the test.
func TestUncounted(t *testing.T) {
	t.Setenv(leniency.File, filepath.Join(t.TempDir(), "missing", "notes"))
	f := &failing{TB: t}
	leniency.Note(f, "x")
	if len(f.errors) != 1 || !strings.Contains(f.errors[0], "noting") {
		t.Errorf("the test reports %q", f.errors)
	}
}
