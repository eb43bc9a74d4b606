//go:build unix

package needs_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// outcome keeps how a test is stopped.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper()          {}
func (o *outcome) Skip(args ...any) { o.skipped = text(args); runtime.Goexit() }
func (o *outcome) Fatal(args ...any) {
	o.failed = text(args)
	runtime.Goexit()
}

func text(args []any) string {
	switch v := args[0].(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return ""
}

// TestMissing: a missing program skips a test by itself, and fails it in the full check; one that is there
// does neither.
func TestMissing(t *testing.T) {
	t.Setenv(pgtest.BinariesVariable, t.TempDir())
	for name, c := range map[string]struct {
		need    func(t testing.TB)
		message string
	}{
		"a program":          {func(t testing.TB) { needs.Program(t, "no-such-program") }, "no-such-program is not installed"},
		"a module of Python": {func(t testing.TB) { needs.Python(t, "no_such_module") }, "python3-no_such_module"},
		"PostgreSQL":         {needs.PostgreSQL, "initdb"},
		"one that is there":  {func(t testing.TB) { needs.Program(t, "go") }, ""},
	} {
		for _, check := range []string{"", "1"} {
			t.Run(name+check, func(t *testing.T) {
				t.Setenv(needs.Check, check)
				o := &outcome{TB: t}
				done := make(chan struct{})
				go func() {
					defer close(done)
					c.need(o)
				}()
				<-done
				skips, fails := c.message != "" && check == "", c.message != "" && check != ""
				if (o.skipped != "") != skips || (o.failed != "") != fails {
					t.Errorf("skipped: %q, failed: %q", o.skipped, o.failed)
				}
				if got := o.skipped + o.failed; !strings.Contains(got, c.message) || skips && !strings.Contains(got, "sh e2e/test.sh") {
					t.Errorf("the output is %q", got)
				}
			})
		}
	}
}
