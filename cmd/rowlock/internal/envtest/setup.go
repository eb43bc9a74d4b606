// Package envtest holds the commands that put this binary where tests of controllers look for a control plane's
// programs.
package envtest

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server/release"
)

// embedded may contain the program of cmd/etcd.
//
//go:embed embedded
var embedded embed.FS

// Command sets up the files for controller-runtime's envtest.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "envtest",
		Short: "Install this binary as kube-apiserver and etcd for tests of controllers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(envtestSetupCommand(), envtestArchiveCommand())
	return cmd
}

func envtestSetupCommand() *cobra.Command {
	form := "env"
	cmd := &cobra.Command{
		Use:   "setup [DIR]",
		Short: "Install kube-apiserver, etcd and kubectl, and print the variable that names their folder",
		Long: `Install kube-apiserver, etcd and, if one is in PATH, kubectl in a folder, and print
the variable by which controller-runtime's envtest finds them:

  eval "$(rowlock envtest setup)" && go test ./...

Without DIR it is a folder of this version in the user's cache.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if form != "env" && form != "path" {
				return fmt.Errorf("--print %q: want env or path", form)
			}
			dir, err := assetsDir(args)
			if err != nil {
				return err
			}
			if err := setUp(dir); err != nil {
				return err
			}
			if form == "env" {
				dir = "export KUBEBUILDER_ASSETS=" + quote(dir)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
	cmd.Flags().StringVarP(&form, "print", "p", form, "what to print: env, a line for a shell, or path, the folder alone")
	return cmd
}

func assetsDir(args []string) (string, error) {
	if len(args) > 0 {
		return filepath.Abs(args[0])
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for caches, so name a DIR: %w", err)
	}
	return filepath.Join(cache, "rowlock", "envtest-"+release.Default.String()+"-"+program.Version), nil
}

// quote makes a text one word of a shell.
func quote(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// etcdProgram returns the binary of cmd/etcd: the embedded one, or a file in the folder of the binary self; nil if
// there is neither.
func etcdProgram(self string) ([]byte, error) {
	text, err := embedded.ReadFile("embedded/etcd")
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	path := filepath.Join(filepath.Dir(self), program.Exe(program.Etcd))
	if sameFile(path, self) {
		return nil, nil
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil || !bytes.Contains(version, []byte("rowlock-")) {
		return nil, nil // it does not run, or is another etcd
	}
	return os.ReadFile(path)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// executable returns the path of this binary.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// setUp fills a folder. It replaces existing files as a whole, so that programs that run from them continue.
func setUp(dir string) error {
	self, err := executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	server := filepath.Join(dir, program.Exe(program.APIServer))
	if err := install(server, func(at string) error { return linkOrCopy(self, at) }); err != nil {
		return err
	}
	small, err := etcdProgram(self)
	if err != nil {
		return err
	}
	if err := install(filepath.Join(dir, program.Exe(program.Etcd)), func(at string) error {
		if small == nil {
			return linkOrCopy(server, at)
		}
		return os.WriteFile(at, small, 0o755)
	}); err != nil {
		return err
	}
	kubectl, to := kubectlPath(), filepath.Join(dir, program.Exe("kubectl"))
	if kubectl == "" || sameFile(kubectl, to) {
		return nil
	}
	return install(to, func(at string) error {
		if os.Symlink(kubectl, at) == nil {
			return nil
		}
		return linkOrCopy(kubectl, at)
	})
}

// kubectlPath returns the kubectl in PATH, or "".
func kubectlPath() string {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}

// install builds a file under a temporary name and renames it.
func install(path string, build func(at string) error) error {
	part := path + ".new"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that was cut short
		return err
	}
	if err := build(part); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	// Renaming a file to another name of the same file does nothing, and leaves both names.
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// linkOrCopy makes a hard link, or a copy if that fails.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
