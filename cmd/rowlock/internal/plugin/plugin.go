// Package plugin is the command that installs this binary as a plugin of kubectl.
package plugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// Command returns the command that makes this binary a plugin of kubectl.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Install this program as a plugin of kubectl",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	force := false
	install := &cobra.Command{
		Use:   "install [FOLDER]",
		Short: "Link this program into a folder of the PATH, where kubectl finds it",
		Long: `Link this program into a folder, by default that of the program itself. If the folder
is in the PATH, kubectl has two more commands: kubectl rowlock (history, diff, blame,
at, undelete, restore), with completion, and kubectl convert.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			folder := filepath.Dir(self)
			if len(args) > 0 {
				folder = args[0]
			}
			return installPlugin(cmd.OutOrStdout(), self, folder, force)
		},
	}
	install.Flags().BoolVar(&force, "force", false, "replace files of these names")
	cmd.AddCommand(install)
	return cmd
}

// installPlugin links the program under each of its plugin names.
func installPlugin(out io.Writer, self, folder string, force bool) error {
	if self, folder = absolute(self), absolute(folder); self == "" || folder == "" {
		return errors.New("the folder of this process is gone")
	}
	for _, name := range []string{program.HistoryPlugin, program.HistoryCompletion, program.ConvertPlugin} {
		link := filepath.Join(folder, program.Exe(name))
		if target, err := os.Readlink(link); err == nil && target == self {
			fmt.Fprintf(out, "%s is there\n", link)
			continue
		}
		if force {
			if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("FOLDER: %w", err)
			}
		}
		err := os.Symlink(self, link)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("FOLDER: %s is something else: --force replaces it", link)
		}
		if err != nil {
			return fmt.Errorf("FOLDER: %w", err)
		}
		fmt.Fprintf(out, "%s -> %s\n", link, self)
	}
	if !onPath(folder) {
		fmt.Fprintf(out, "%s is not on the PATH: kubectl does not look there yet\n", folder)
	}
	return nil
}

func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return path
}

func onPath(folder string) bool {
	for _, entry := range filepath.SplitList(os.Getenv("PATH")) {
		if absolute(entry) == folder || runtime.GOOS == "windows" && strings.EqualFold(absolute(entry), folder) {
			return true
		}
	}
	return false
}
