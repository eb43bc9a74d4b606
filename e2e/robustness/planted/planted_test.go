//go:build unix

package planted_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/e2e/robustness/planted"
)

// TestPatchesApply: each patch is small, describes its fault, and applies to the product as it is now.
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

var patched = regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`)

// TestPatchesCompile: the packages that a patch changes pass go vet with it. The check tries the patch with the name that is
// first, the long tests all (ROWLOCK_PLANTED).
func TestPatchesCompile(t *testing.T) {
	t.Parallel()
	git := needs.Program(t, "git")
	all, err := planted.All()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ROWLOCK_PLANTED") != "all" {
		all = all[:1]
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		t.Run(p.Name, func(t *testing.T) {
			dir := t.TempDir()
			overlay := map[string]string{}
			var packages []string
			for _, m := range patched.FindAllSubmatch(p.Diff, -1) {
				name := string(m[1])
				overlay[filepath.Join(root, name)] = filepath.Join(dir, name)
				packages = append(packages, "./"+path.Dir(name))
				text, err := os.ReadFile(filepath.Join(root, name))
				if err == nil {
					err = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			apply := exec.CommandContext(t.Context(), git, "apply")
			apply.Dir, apply.Stdin = dir, bytes.NewReader(p.Diff)
			if out, err := apply.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := json.Marshal(map[string]any{"Replace": overlay})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			vet := exec.CommandContext(t.Context(), "go", append([]string{"vet", "-overlay", file}, slices.Compact(packages)...)...)
			vet.Dir = root
			if out, err := vet.CombinedOutput(); err != nil {
				t.Errorf("it does not compile: %v\n%s", err, out)
			}
		})
	}
}
