//go:build unix

package planted_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/e2e/robustness/planted"
)

// TestPatchesApply: each patch is small, says what is wrong, and applies to the product as it is now.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	git := needs.Program(t, "git")
	all, err := planted.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 14 {
		t.Errorf("there are %d patches", len(all))
	}
	said := map[string]bool{}
	for _, p := range all {
		if said[p.About] || !strings.HasSuffix(p.About, ".") || strings.Contains(p.About, "\n") {
			t.Errorf("%s: %q is no sentence of its own", p.Name, p.About)
		}
		said[p.About] = true
		changed := 0
		for line := range bytes.Lines(p.Diff) {
			switch {
			case bytes.HasPrefix(line, []byte("+++ ")) && bytes.Contains(line, []byte("_test.go")), bytes.HasPrefix(line, []byte("+++ b/e2e/")):
				t.Errorf("%s changes %s, which is not the product", p.Name, line)
			case bytes.HasPrefix(line, []byte("+++")), bytes.HasPrefix(line, []byte("---")):
			case line[0] == '+', line[0] == '-':
				changed++
			}
		}
		if changed < 1 || changed > 30 {
			t.Errorf("%s changes %d lines", p.Name, changed)
		}
		cmd := exec.CommandContext(t.Context(), git, "apply", "--check")
		cmd.Dir, cmd.Stdin = filepath.Join("..", "..", ".."), bytes.NewReader(p.Diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s no longer applies; mend it, so that it is the same fault of the code as it is now: %v\n%s", p.Name, err, out)
		}
	}
}
