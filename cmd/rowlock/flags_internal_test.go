package main

import (
	"os"
	"strings"
	"testing"
)

// TestFlagsPage: docs/flags.md lists the flags without effect with their reasons, and no
// others.
func TestFlagsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## Without effect\n")
	table, _, end := strings.Cut(table, "\n## ")
	if !found || !end {
		t.Fatal("docs/flags.md has no table of flags without effect")
	}
	want := map[string]bool{}
	for _, i := range ignored {
		line := "| `--" + i.name + "` | " + i.why + " |"
		want[line] = true
		if !strings.Contains(table, line+"\n") {
			t.Errorf("docs/flags.md lacks %s", line)
		}
	}
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `--") && !want[line] {
			t.Errorf("docs/flags.md says what is not so: %s", line)
		}
	}
}

func TestEmulatedVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.32": "", "v1.32.6": "", "kube=1.32": "", "kube=1.31": "emulates no other", "1.33": "emulates no other", "etcd=3.5": "component not registered: etcd",
	} {
		err := emulated([]string{text})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
