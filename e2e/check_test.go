package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestCheckEnds: the check announces its steps, and when it is interrupted, all processes that it
// has started end, in whatever process group and even if they ignore signals.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pids, temporary := filepath.Join(dir, "pids"), filepath.Join(dir, "tmp")
			if err := os.Mkdir(temporary, 0o700); err != nil {
				t.Fatal(err)
			}
			// go vet replaces tests: it starts a program that ignores signals, in the group of its
			// parent and in one of its own, as databases are.
			script := fmt.Sprintf(`#!/bin/sh
[ "$1" = vet ] || exit 0
deaf='trap "" TERM INT HUP; echo $$ >>%[1]s; while :; do sleep 1; done'
sh -c "$deaf" &
set -m
sh -c "$deaf" &
wait
`, pids)
			for name, content := range map[string]string{"go": script, "gofmt": "#!/bin/sh\n", "apt-get": "#!/bin/sh\n", "sudo": "#!/bin/sh\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", "test.sh")
			for _, v := range os.Environ() {
				if !strings.HasPrefix(v, "ROWLOCK_CHECK_") {
					cmd.Env = append(cmd.Env, v)
				}
			}
			cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+temporary)
			var out storetest.Log
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			started := func() []int {
				content, err := os.ReadFile(pids)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				var list []int
				for _, word := range strings.Fields(string(content)) {
					pid, err := strconv.Atoi(word)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, pid)
				}
				return list
			}
			for begun := time.Now(); len(started()) < 2; time.Sleep(20 * time.Millisecond) {
				if time.Since(begun) > 2*time.Minute {
					t.Fatalf("nothing is started:\n%s", &out)
				}
			}
			// What the processes write reaches the test through a pipe, so it may come after their pids.
			for _, want := range []string{"12 to 15 minutes", "Ctrl-C", "With apt-get it installs", "== go vet"} {
				for begun := time.Now(); !strings.Contains(out.String(), want); time.Sleep(20 * time.Millisecond) {
					if time.Since(begun) > 2*time.Minute {
						t.Fatalf("%q is not announced:\n%s", want, &out)
					}
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if code := cmd.ProcessState.ExitCode(); code != 128+int(signal) {
					t.Errorf("it ends with %v, code %d, want %d\n%s", err, code, 128+int(signal), &out)
				}
			case <-time.After(2 * time.Minute):
				_ = cmd.Process.Kill()
				t.Errorf("it does not end:\n%s", &out)
			}
			for _, pid := range started() {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err == nil && !bytes.Contains(stat, []byte(") Z ")) { // Z: a zombie, which has ended
					t.Errorf("process %d is left: %s", pid, stat)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestCheckCountsLeniency: check shows the leniencies of tests on a slow machine at its end, and more than ten fail
// the run. So does a failure in a lane, after which the lane continues.
func TestCheckCountsLeniency(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		notes, vet, code int
	}{
		"none":           {0, 0, 0},
		"ten":            {10, 0, 0},
		"eleven":         {11, 0, 1},
		"a failure":      {0, 1, 1},
		"some, and that": {3, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := fmt.Sprintf(`#!/bin/sh
[ "$1" = vet ] || exit 0
[ "$ROWLOCK_CHECK" = 1 ] || exit 9
for n in $(seq %d); do echo "TestSlow: $n" >>"$ROWLOCK_LENIENCY"; done
exit %d
`, c.notes, c.vet)
			for name, content := range map[string]string{"go": script, "gofmt": "#!/bin/sh\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", "test.sh", "lint")
			for _, v := range os.Environ() {
				if !strings.HasPrefix(v, "ROWLOCK_CHECK") {
					cmd.Env = append(cmd.Env, v)
				}
			}
			cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
			out, _ := cmd.CombinedOutput()
			text := string(out)
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("it ends with %d, want %d\n%s", code, c.code, text)
			}
			if n := strings.Count(text, "TestSlow: "); n != c.notes || strings.Contains(text, fmt.Sprintf("%d times", c.notes)) != (c.notes > 0) {
				t.Errorf("it shows %d notes, want %d\n%s", n, c.notes, text)
			}
			if strings.Contains(text, "failed in lane lint:\n  go vet ./...") != (c.vet > 0) || !strings.Contains(text, "== deadcode") || !strings.Contains(text, "lint: ") {
				t.Errorf("the output is\n%s", text)
			}
		})
	}
	if out, err := exec.Command("sh", "test.sh", "lints").CombinedOutput(); err == nil || !strings.Contains(string(out), "lint, unit, blackbox") {
		t.Errorf("an unknown lane: %v %s", err, out)
	}
}
