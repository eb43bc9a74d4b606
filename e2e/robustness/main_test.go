//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
	"github.com/rowlock/rowlock/e2e/robustness/report"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == serveDisk { // the process of a disk is this program
		main()
		return
	}
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// maxRuns bounds the runs of TestRobustness on each store.
const maxRuns = 5

// TestRobustness runs the program for a short time on each store, with little traffic: half a minute each, at the same time.
func TestRobustness(t *testing.T) {
	t.Parallel()
	minutes := "0.4"
	if text := os.Getenv("ROWLOCK_ROBUSTNESS_MINUTES"); text != "" { // of the long tests
		minutes = text
	}
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			if store == "postgres" {
				needs.PostgreSQL(t)
			}
			var out, errOut bytes.Buffer
			dir := t.TempDir()
			args := []string{"-minutes", minutes, "-store", store, "-servers", map[string]string{"sqlite": "1", "postgres": "2"}[store], "-pace", "150ms", "-out", dir}
			if store == "postgres" { // the same build by another name; the long tests have one that is newer
				binary, err := harness.Binary()
				other := filepath.Join(t.TempDir(), "rowlock-other")
				if err == nil {
					err = os.Symlink(binary, other)
				}
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, "-other-binary", other)
			}
			// A run after whose beginning the database loses commits has nothing for some rules: then there is another one.
			made := report.Run{Judged: map[string]int{}}
			unjudged := func() (names []string) {
				for _, p := range judge.Properties {
					// No watch may have lasted for long enough, and no storage migration; two releases have none.
					short := minutes == "0.4" && (p.Name == "watch-prompt" || p.Name == "migrations")
					if made.Judged[p.Name] == 0 && !short && (p.Name != "leads" || store == "postgres") { // one server leads alone
						names = append(names, p.Name)
					}
				}
				return names
			}
			for runs := 0; runs == 0 || runs < maxRuns && len(unjudged()) > 0; runs++ {
				out.Reset()
				code := Main(t.Context(), args, &out, &errOut)
				t.Log(out.String())
				if code != 0 {
					t.Fatalf("it ended with %d: %s", code, errOut.String())
				}
				if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
					t.Error(err)
				}
				judged := made.Judged
				made = report.Run{}
				text, err := os.ReadFile(filepath.Join(dir, "report.json"))
				if err == nil {
					err = json.Unmarshal(text, &made)
				}
				if err != nil {
					t.Fatal(err)
				}
				for name, n := range made.Judged {
					judged[name] += n
				}
				made.Judged = judged
				t.Logf("after run %d, nothing was held against %v", runs+1, unjudged())
			}
			if names := unjudged(); len(names) > 0 {
				t.Errorf("in %d runs, nothing was held against %v; not judged in the last: %v", maxRuns, names, made.Open)
			}
			if len(made.Faults) == 0 {
				t.Error("nothing was broken")
			}
			if store == "postgres" && (made.Others == 0 || made.Others == made.Starts) {
				t.Errorf("of %d starts of servers, %d were of the other build", made.Starts, made.Others)
			}
			if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" && len(made.NotMade) > 0 {
				t.Errorf("faults were not made: %v", made.NotMade)
			}
		})
	}
}

// TestReleases: the program knows the oldest and the newest release that servers can be.
func TestReleases(t *testing.T) {
	t.Parallel()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "serve", "--in-memory", "--emulated-version=1.99").CombinedOutput()
	if want := fmt.Sprintf("is not between [%s, %s.0]", cluster.Oldest, cluster.Newest); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a server of release 1.99: %v %s, want %q", err, out, want)
	}
}

// TestFlags: an invalid value of a flag stops the program with code 2, and its error names the valid ones.
func TestFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-store mysql -faults none":        `-store "mysql": want sqlite or postgres`,
		"-faults earthquake":               `there is no fault "earthquake"; -faults help lists them`,
		"-store sqlite -faults pg-kill":    "pg-kill is for -store postgres",
		"-minutes 1 now":                   `unexpected "now"`,
		"-minutes 0":                       "-minutes 0",
		"-release 1.31":                    `-release: release "1.31": want one from 1.32 to 1.36`,
		"-judge /dev/null":                 "/dev/null has no history",
		"-judge /nonexistent/history.json": "no such file",
	} {
		var out, errOut bytes.Buffer
		if code := Main(t.Context(), strings.Fields(args), &out, &errOut); code != 2 || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: %d %s", args, code, errOut.String())
		}
	}
	var out, errOut bytes.Buffer
	if code := Main(t.Context(), []string{"-faults", "help"}, &out, &errOut); code != 0 || !strings.Contains(out.String(), "power-loss") {
		t.Errorf("-faults help: %s%s", out.String(), errOut.String())
	}
	s := settings{minutes: 2, store: "postgres", servers: 3, faults: "kill", seed: 5}
	s.round, s.pace, s.pause, s.release = defaultRound, defaultPace, defaultPause, drawn
	if got := fmt.Sprint(s.command()); got != "go run ./e2e/robustness -minutes 2 -store postgres -servers 3 -faults kill -seed 5" {
		t.Error(got)
	}
	s.round, s.pace, s.pause, s.release, s.other = time.Minute, 100*time.Millisecond, 2*time.Second, "1.35", "old"
	if got := s.command(); !strings.HasSuffix(got, " -seed 5 -round 1m0s -pace 100ms -pause 2s -release 1.35 -other-binary old") {
		t.Errorf("it would not make the same run: %s", got)
	}
}
