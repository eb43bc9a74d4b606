//go:build unix

package pgtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// initdb makes the data folder: a copy of the one that initdb made for an earlier server, of this process or another, in a
// tenth of its time. So all servers have the same system identifier, as servers that are restored from one backup do.
func (s *Server) initdb(ctx context.Context) error {
	program := filepath.Join(s.bin, "initdb")
	args := []string{"-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C", fmt.Sprintf("--wal-segsize=%d", cmp.Or(s.opts.Segment, 16))}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return fmt.Errorf("initdb --version: %w", err)
	}
	if _, err := fmt.Sscanf(string(version), "initdb (PostgreSQL) %d", &s.major); err != nil {
		return fmt.Errorf("initdb --version: %q: %w", version, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "rowlock-e2e")
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %q", program, version, args))
	kept := filepath.Join(cache, fmt.Sprintf("initdb-%x", sum[:8]))
	if _, err := os.Stat(kept); err == nil {
		return copyFolder(s.data(), kept)
	}
	attr, err := asUser(s.dir)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, append(args, "-D", s.data())...)
	cmd.SysProcAttr, cmd.Dir = attr, s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	// Processes may do this at the same time: the first one that renames its copy succeeds.
	made, err := os.MkdirTemp(cache, "initdb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := copyFolder(made, s.data()); err != nil {
		return err
	}
	if err := os.Rename(made, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
