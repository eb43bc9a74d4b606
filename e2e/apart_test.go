package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/needs"
)

// TestApart: packages outside the server are tested if they, or packages that they import, have changed.
func TestApart(t *testing.T) {
	t.Parallel()
	git := needs.Program(t, "git")
	script, err := os.ReadFile("apart.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(env, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "ROWLOCK_CHECK") && !strings.HasPrefix(v, "GIT_") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", env)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	commit := func() {
		t.Helper()
		run("", git, "add", "-A")
		run("", git, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x")
	}
	write("go.mod", "module example.org/m\n\ngo 1.24\n")
	write("e2e/apart.sh", string(script))
	write("e2e/apart.txt", "# folders\naside\n")
	write("core/core.go", "package core\n")
	write("far/far.go", "package far\n")
	write("core/uses.go", "package core\n\nimport _ \"example.org/m/far\"\n")
	write("aside/a/a.go", "package a\n\nimport _ \"example.org/m/core\"\n")
	write("aside/b/b.go", "package b\n")
	write("aside/b/b_test.go", "package b_test\n")
	run("", git, "init", "-q", "-b", "main")
	commit()
	write("README", "x")
	commit()
	want := func(what, env, packages string) {
		t.Helper()
		if got := strings.Join(strings.Fields(run(env, "sh", "e2e/apart.sh")), " "); got != packages {
			t.Errorf("%s: without tests are %q, want %q", what, got, packages)
		}
	}
	both := "./aside/a ./aside/b"
	want("nothing has changed", "", both)
	want("all are wanted", "ROWLOCK_CHECK_ALL=1", "")
	write("far/far.go", "package far\n\nvar X int\n")
	want("what is imported by an import has changed", "", both)
	write("core/core.go", "package core\n\nvar X int\n")
	want("an import has changed", "", "./aside/b")
	run("", git, "checkout", "-q", "-b", "branch")
	commit()
	write("aside/b/testdata/x", "x")
	commit()
	want("a branch, with test data", "", "")
	want("since a named commit", "ROWLOCK_CHECK_BASE=HEAD~1", "./aside/a")
	write("go.sum", "")
	want("go.sum is new", "ROWLOCK_CHECK_BASE=HEAD~1", "")
}
