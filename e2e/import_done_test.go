package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestImportDone: a run that ended after the database was filled, and before the file between
// was taken away, is brought to its end by the same command; a database that holds anything
// else is in use.
func TestImportDone(t *testing.T) {
	t.Parallel()
	old, dir := t.TempDir(), t.TempDir()
	k3s(t, old)
	source, data, kept := filepath.Join(old, "server", "db", "state.db"), filepath.Join(dir, "data"), filepath.Join(dir, "kept")
	args := func(url string, more ...string) []string {
		return append([]string{source, "--store", url, "--data-dir", data, "--take-along", old}, more...)
	}
	// The data that was read stays if the database cannot be opened.
	if _, errOut, err := importInto(t, args("sqlite:"+filepath.Join(dir, "none", "x.db"))...); err == nil {
		t.Fatal(errOut)
	}
	if err := os.CopyFS(kept, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	// crashed puts back what the run that filled the database would have left.
	crashed := func() {
		t.Helper()
		for _, name := range []string{"import.rows", "import.json"} {
			text, err := os.ReadFile(filepath.Join(kept, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(data, name), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() int {
		files, err := filepath.Glob(filepath.Join(data, "import.*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	for name, url := range map[string]string{"sqlite": "sqlite:" + filepath.Join(dir, "rowlock.db"), "postgres": createDB(t, sharedPostgres(t), "done")} {
		t.Run(name, func(t *testing.T) {
			first, errOut, err := importInto(t, args(url)...)
			if err != nil || first.Done || left() != 0 {
				t.Fatalf("%v, %+v, %s", err, first, errOut)
			}
			crashed()
			if _, errOut, err := importInto(t, args(url, "--events")...); err == nil || !strings.Contains(errOut, "only an empty one can be filled") || left() != 2 {
				t.Errorf("another command: %v, %s", err, errOut)
			}
			a, errOut, err := importInto(t, args(url)...)
			if err != nil || !a.Done || !a.Reused || a.Objects != first.Objects || a.Revision != first.Revision || left() != 0 || !strings.Contains(errOut, "now start it") {
				t.Errorf("after a crash: %v, %+v, %s", err, a, errOut)
			}
			wantClean(t, url)
			if _, errOut, err := importInto(t, args(url)...); err == nil || !strings.Contains(errOut, "only an empty one can be filled") {
				t.Errorf("without what was read: %v, %s", err, errOut)
			}
			crashed()
			s := harness.StartT(t, harness.Options{Store: url})
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if _, errOut, err := importInto(t, args(url)...); err == nil || !strings.Contains(errOut, "only an empty one can be filled") || left() != 2 {
				t.Errorf("after a server was there: %v, %s", err, errOut)
			}
			for _, name := range []string{"import.rows", "import.json"} {
				if err := os.Remove(filepath.Join(data, name)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
