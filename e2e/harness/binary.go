// Package harness starts the built binary for black-box tests: it builds it once,
// gives each server a folder and a free port, waits until it is ready, and ends it
// by a signal of the test's choice. It imports no server package.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

var build struct {
	once sync.Once
	path string
	err  error
}

// Binary builds cmd/rowlock as it is released once per process and returns its path. ROWLOCK_BINARY
// names a ready one instead; ROWLOCK_BUILD_FLAGS adds flags (-race).
func Binary() (string, error) {
	build.once.Do(func() {
		if build.path = os.Getenv("ROWLOCK_BINARY"); build.path != "" {
			return
		}
		dir, err := os.MkdirTemp("", "rowlock-e2e-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "rowlock")
		args := append([]string{"build", "-tags=grpcnotrace", "-o", build.path}, strings.Fields(os.Getenv("ROWLOCK_BUILD_FLAGS"))...)
		// Modules of their own below e2e require less than the binary does.
		root, err := exec.Command("go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", "github.com/rowlock/rowlock").Output()
		if err != nil {
			build.err = fmt.Errorf("looking for the module of rowlock: %w", err)
			return
		}
		cmd := exec.Command("go", append(args, "github.com/rowlock/rowlock/cmd/rowlock")...)
		cmd.Dir = strings.TrimSpace(string(root))
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("building rowlock: %w\n%s", err, out)
		}
	})
	return build.path, build.err
}

// Cleanup removes what Binary built; call it at the end of TestMain.
func Cleanup() {
	if build.path != "" && os.Getenv("ROWLOCK_BINARY") == "" {
		_ = os.RemoveAll(filepath.Dir(build.path)) // a leftover in the temporary folder does no harm
	}
}

// FreePort finds a free TCP port of 127.0.0.1, which no other caller gets by
// chance.
func FreePort() (int, error) { return pgtest.FreePort() }
