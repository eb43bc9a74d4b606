package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulncheck: the script fails where a vulnerability is found, and where the tool fails, but not without a network; then it
// reports that nothing was checked. A script replaces govulncheck.
func TestVulncheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		output  string
		code    int // of the tool
		fails   bool
		checked bool
	}{
		"nothing":         {"No vulnerabilities found.", 0, false, true},
		"a vulnerability": {"=== Symbol Results ===\n\nVulnerability #1: GO-2099-0001\n    fetching vulnerabilities for fun\nexit status 3", 1, true, true},
		"no database":     {"govulncheck: fetching vulnerabilities: Get \"https://vuln.go.dev/index/modules.json.gz\": dial tcp: lookup vuln.go.dev: no such host\nexit status 1", 1, false, false},
		"no proxy":        {"go: golang.org/x/vuln@v1: Get \"https://proxy.golang.org/\": dial tcp: connection refused", 1, false, false},
		"another failure": {"govulncheck: loading packages: there are errors", 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tool := fmt.Sprintf("#!/bin/sh\ncat <<'end'\n%s\nend\nexit %d\n", c.output, c.code)
			if err := os.WriteFile(filepath.Join(dir, "go"), []byte(tool), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "vulncheck.sh")
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || strings.Contains(string(out), "NOT CHECKED") == c.checked {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
