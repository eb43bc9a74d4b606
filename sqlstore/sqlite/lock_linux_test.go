package sqlite_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// fullDisk names the environment variable with the folder on which the child of TestFirstStartOnAFullDisk mounts a small disk.
const fullDisk = "ROWLOCK_TEST_FULL_DISK"

// TestFirstStartOnAFullDisk: opening a database for the first time on a disk without any room is an error, and not the end of the
// process; once there is room, the database opens.
func TestFirstStartOnAFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDisk); dir != "" {
		openOnFullDisk(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFirstStartOnAFullDisk$")
	cmd.Env = append(os.Environ(), fullDisk+"="+t.TempDir())
	only := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: only(os.Getuid()), GidMappings: only(os.Getgid())}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("this system makes no user namespaces, in which the test mounts a disk: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func openOnFullDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("this system mounts no disks in user namespaces")
	} else if err != nil {
		t.Fatal(err)
	}
	rest := filepath.Join(dir, "rest")
	if err := os.WriteFile(rest, make([]byte, 9<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	path := filepath.Join(dir, "test.db")
	if d, err := sqlite.Open(t.Context(), path, sqlite.Config{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v, %v", d, err)
	}
	if err := os.Remove(rest); err != nil {
		t.Fatal(err)
	}
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
