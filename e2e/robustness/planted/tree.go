//go:build unix

package planted

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a copy of the module.
type tree struct{ dir string }

// copy copies the files that git tracks, or would add, but for documentation and test data.
func (t *tree) copy(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".", ":!docs", ":!findings", ":!e2e/testdata")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing the files of %s: %w", root, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		to := filepath.Join(t.dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// apply applies a difference, or takes it back.
func (t *tree) apply(ctx context.Context, diff []byte, back bool) error {
	args := []string{"apply"}
	if back {
		args = append(args, "--reverse")
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = t.dir, bytes.NewReader(diff)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(t.dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the patch: %w\n%s", err, out)
	}
	return nil
}

// build builds the server.
func (t *tree) build(ctx context.Context, binary string) error {
	return t.run(ctx, "go", "build", "-trimpath", "-pgo=off", "-buildvcs=false", "-o", binary, "./cmd/rowlock")
}

func (t *tree) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out[max(0, len(out)-3000):])
	}
	return nil
}
