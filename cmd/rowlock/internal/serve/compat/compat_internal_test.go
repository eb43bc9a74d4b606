package compat

import (
	"bytes"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsPage: docs/flags.md lists the flags without effect and the removed ones with their reasons, and
// no others.
func TestFlagsPage(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, i := range ignored {
		want["Without effect"] = append(want["Without effect"], "| `--"+i.name+"` | "+i.why+" |")
	}
	for _, r := range removed {
		want["Removed"] = append(want["Removed"], "| `--"+r.name+"` | "+r.since+" | "+r.why+" |")
	}
	for section, lines := range want {
		_, table, found := strings.Cut(string(page), "## "+section+"\n")
		table, _, end := strings.Cut(table, "\n## ")
		if !found || !end {
			t.Fatalf("docs/flags.md has no section %q", section)
		}
		for _, line := range lines {
			if !strings.Contains(table, line+"\n") {
				t.Errorf("docs/flags.md lacks %s", line)
			}
		}
		for line := range strings.Lines(table) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `--") && !slices.Contains(lines, line) {
				t.Errorf("docs/flags.md is wrong: %s", line)
			}
		}
	}
}

// TestOnlyFalse: a flag that cannot be turned on may be given with its default, and else stops the start with the reason.
func TestOnlyFalse(t *testing.T) {
	for name, why := range onlyFalse {
		for _, tc := range []struct{ given, want string }{
			{"--" + name + "=false", ""},
			{"--" + name + "=0", ""},
			{"--" + name, "--" + name + " cannot be turned on: " + why},
			{"--" + name + "=true", "--" + name + " cannot be turned on: " + why},
		} {
			f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			AddOnlyFalse(f)
			if err := f.Parse([]string{tc.given}); err != nil {
				t.Fatal(err)
			}
			if err := CheckValues(f); (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
				t.Errorf("%s: %v, want %q", tc.given, err, tc.want)
			}
		}
	}
}

// TestRemovedFlags: a removed flag does not stop a start; the log names it, and only if it is given.
func TestRemovedFlags(t *testing.T) {
	for _, r := range removed {
		for given, lines := range map[string]int{"--" + r.name + "=standard": 1, "--v=1": 0} {
			f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			f.Int("v", 0, "")
			AddRemoved(f)
			if err := f.Parse([]string{given}); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			WarnRemoved(f, slog.New(slog.NewTextHandler(&log, nil)))
			if n := strings.Count(log.String(), "\n"); n != lines || n > 0 && !strings.Contains(log.String(), "flag=--"+r.name+" ") {
				t.Errorf("%s: %d lines: %s", given, n, &log)
			}
		}
	}
}
