// Command rowlock is a Kubernetes API server whose state is in a SQL database, and the commands to operate it.
//
// This package only parses flags and connects packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/access"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/convert"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/copier"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/envtest"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/etcd"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/exporter"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/importer"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/plugin"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/store"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := called(program.NameOf(os.Args[0]))
	usage.ExplainErrors(root)
	if err := root.ExecuteContext(ctx); err != nil {
		if code := cli.ExitCode(0); errors.As(err, &code) {
			stop()
			os.Exit(int(code))
		}
		// One line, whatever text the error wraps.
		fmt.Fprintln(os.Stderr, "Error: "+cli.OneLine(err))
		os.Exit(1)
	}
}

// called returns the command for the file name of the binary.
func called(name string) *cobra.Command {
	switch name {
	case program.APIServer:
		return serve.APIServerCommand()
	case program.Etcd:
		return etcd.Command()
	case program.ConvertPlugin:
		root := convert.Command()
		root.SilenceUsage, root.SilenceErrors = true, true
		return root
	case program.HistoryPlugin:
		return history.PluginCommand()
	case program.HistoryCompletion:
		return history.CompletionCommand()
	}
	return command()
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "rowlock",
		Short:         "A Kubernetes API server that stores its state in a SQL database",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	version := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			return cli.PrintVersion(cmd.OutOrStdout())
		}
		return cmd.Help()
	}
	root.AddCommand(serve.Command(), access.InitCommand(), store.Command(), importer.Command(), exporter.Command(), access.ReadyCommand(), copier.Command(), access.CredentialCommand(), access.KubeconfigCommand(), etcd.Command(), envtest.Command(), convert.Command(), plugin.Command(), cli.VersionCommand())
	root.AddCommand(history.Commands()...)
	root.AddCommand(serve.GatesTopic())
	for _, extra := range extras {
		root.AddCommand(extra())
	}
	return root
}

// extras are commands that only some builds have.
var extras []func() *cobra.Command
