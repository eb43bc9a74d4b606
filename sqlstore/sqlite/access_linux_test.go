package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// asNobody runs f as a user without rights, on a thread that ends with it; if the tests do not run as root,
// as their own user.
func asNobody(f func()) {
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		const nobody = 65534
		syscall.RawSyscall(syscall.SYS_SETGROUPS, 0, 0, 0)
		syscall.RawSyscall(syscall.SYS_SETRESGID, nobody, nobody, nobody)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			panic(errno)
		}
		f()
	}()
	<-done
}

// TestDenied: the error about a database that may not be used names the file, its owner, its mode, and the missing right.
func TestDenied(t *testing.T) {
	for name, c := range map[string]struct {
		modes map[string]os.FileMode // by the path's suffix; "dir" is the folder
		want  []string
	}{
		"a file that may not be read":       {map[string]os.FileMode{"": 0o000, ".lock": 0o666, "dir": 0o777}, []string{"test.db is owned by user ", "with mode ----------", "may not read and write it"}},
		"a file that may not be written":    {map[string]os.FileMode{"": 0o444, ".lock": 0o666, "dir": 0o777}, []string{"test.db is owned by user ", "with mode -r--r--r--", "may not write it"}},
		"a lock that is somebody else's":    {map[string]os.FileMode{"": 0o666, ".lock": 0o000, "dir": 0o777}, []string{"test.db.lock is owned by user ", "may not read and write it"}},
		"a folder that may not be written":  {map[string]os.FileMode{"": 0o666, ".lock": 0o666, "dir": 0o555}, []string{"the folder ", "with mode dr-xr-xr-x", "may not make files in it"}},
		"a new file where none may be made": {map[string]os.FileMode{"dir": 0o555}, []string{"the folder ", "with mode dr-xr-xr-x", "may not make files in it"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "test.db")
			if _, there := c.modes[""]; there {
				if err := (file{path: path}).Open(t).Close(); err != nil {
					t.Fatal(err)
				}
			}
			for suffix, mode := range c.modes {
				target := path + suffix
				if suffix == "dir" {
					target = dir
				}
				if err := os.Chmod(target, mode); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { os.Chmod(dir, 0o755) })
			var err error
			asNobody(func() {
				var d *sqlite.Driver
				if d, err = sqlite.Open(t.Context(), path, sqlite.Config{}); err == nil {
					d.Close()
				}
			})
			if err == nil {
				t.Fatal("it opens")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}
