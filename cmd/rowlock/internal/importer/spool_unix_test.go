//go:build unix

package importer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/server/transfer/intake"
)

// TestImportSpoolIsOurs: the spool is loaded into the database without further checks,
// so it is in no folder into which another user could have put it.
func TestImportSpoolIsOurs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*importOptions{
		{Options: &database.Options{DataDir: t.TempDir()}, spool: filepath.Join(dir, "import")},
		{Options: &database.Options{DataDir: dir}},
	} {
		if err := o.transfer(t.Context(), &intake.Job{}, nil, false); err == nil || !strings.Contains(err.Error(), "--spool: all users may write to the folder "+dir) {
			t.Errorf("a folder that all users may write to: %v", err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, fine := range []string{dir, filepath.Join(dir, "none")} {
		if err := checkNotWorldWritable("--spool", fine); err != nil {
			t.Errorf("a folder of our own: %v", err)
		}
	}
}
