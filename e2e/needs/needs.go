//go:build unix

// Package needs skips tests whose programs are not installed, with one line that names the program and how to
// run the test. The full check (e2e/test.sh), which installs the programs, sets ROWLOCK_CHECK: there the test fails
// instead.
package needs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/foreign/kine/mariadbtest"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// Check names the environment variable that makes missing programs an error.
const Check = "ROWLOCK_CHECK"

// Program returns the path of a program that the test runs, from PATH or /usr/sbin.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		stop(t, fmt.Errorf("%s is not installed", name))
	}
	return path
}

// Python returns Debian's Python, which has the modules: Debian's packages python3-MODULE.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	const program = "/usr/bin/python3"
	if err := exec.Command(program, "-c", "import "+strings.Join(modules, ", ")).Run(); err != nil {
		stop(t, fmt.Errorf("%s and Debian's packages python3-%s are not installed: %w", program, strings.Join(modules, " python3-"), err))
	}
	return program
}

// PostgreSQL stops a test that starts a server of PostgreSQL where there is none.
func PostgreSQL(t testing.TB) {
	t.Helper()
	if _, err := pgtest.Binaries(); err != nil {
		stop(t, err)
	}
}

// PgBouncer stops a test that starts PgBouncer where there is none.
func PgBouncer(t testing.TB) {
	t.Helper()
	if _, err := pgtest.PoolerBinary(); err != nil {
		stop(t, err)
	}
}

// MariaDB stops a test that starts a server of MariaDB where there is none.
func MariaDB(t testing.TB) {
	t.Helper()
	if err := mariadbtest.Installed(); err != nil {
		stop(t, err)
	}
}

func stop(t testing.TB, missing error) {
	t.Helper()
	if Required() {
		t.Fatal(missing)
	}
	t.Skip(Skipped(missing))
}

// Required reports whether a missing program is a failure.
func Required() bool { return os.Getenv(Check) != "" }

// Skipped returns the reason for skipped tests.
func Skipped(missing error) string {
	return fmt.Sprintf("%v: skipped; sh e2e/test.sh installs it and runs all tests", missing)
}
