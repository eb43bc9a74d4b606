// Package leniency counts concessions of tests to slow machines: repeated requests, replays under easier
// conditions, and ignored results.
//
// Each concession appears in the test's log and, if an environment variable names a file, as one line of
// that file. At its end e2e/test.sh prints the file, and fails if it has more than ten lines.
package leniency

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// File names the environment variable with the file that notes are appended to.
const File = "ROWLOCK_LENIENCY"

// Note records that the test expects less than on an idle machine, and what it tolerated.
func Note(t testing.TB, format string, args ...any) {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	t.Logf("lenient: %s", what)
	path := os.Getenv(File)
	if path == "" {
		return
	}
	if err := add(path, t.Name()+": "+what); err != nil {
		t.Errorf("noting that the machine was slow (%s=%s): %v", File, path, err)
	}
}

// add appends one line. Several processes write to the file: a line is one write.
func add(path, line string) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	_, err = f.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n")
	return err
}
