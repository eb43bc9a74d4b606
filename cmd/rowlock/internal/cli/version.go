package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server/release"
)

func VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary and of the protocol it serves",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return PrintVersion(cmd.OutOrStdout()) },
	}
}

// PrintVersion writes the line of the command version.
func PrintVersion(out io.Writer) error {
	_, err := fmt.Fprintf(out, "rowlock %s (Kubernetes %s, %s %s/%s)\n", program.Version, release.Default, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
