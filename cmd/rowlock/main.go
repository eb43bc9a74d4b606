// Command rowlock is the API server of a cluster whose state lives in a SQL
// database, together with its operator's commands.
//
// This package turns flags into configurations and wires packages together; it
// holds no logic of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/shown"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
)

// version is set by the linker for releases.
var version = "v0.1.0"

// servedRelease is the Kubernetes release whose protocol is served.
const servedRelease = "1.32"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := called(calledAs(os.Args[0]))
	usage.Guide(root)
	if err := root.ExecuteContext(ctx); err != nil {
		if code := exitCode(0); errors.As(err, &code) {
			stop()
			os.Exit(int(code))
		}
		// One line, whatever is wrapped in it.
		fmt.Fprintln(os.Stderr, "Error: "+oneLine(err))
		os.Exit(1)
	}
}

// oneLine is an error as it is printed. Parts of it may be what a server, or a file, says.
func oneLine(err error) string {
	var text strings.Builder
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		switch so := text.String(); {
		case so == "":
		case strings.HasSuffix(so, ":"): // a list follows
			text.WriteString(" ")
		default:
			text.WriteString("; ")
		}
		text.WriteString(line)
	}
	return shown.Safe(text.String())
}

// called is what the binary does by the name of its file.
func called(name string) *cobra.Command {
	switch name {
	case apiserverName:
		return apiserverCommand()
	case etcdName:
		return etcdCommand()
	case pluginName:
		root := convertCommand()
		root.SilenceUsage, root.SilenceErrors = true, true
		return root
	case historyPlugin:
		return pluginCommand()
	case historyCompletion:
		return completionCommand()
	}
	return command()
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "rowlock",
		Short:         "The API server of a Kubernetes cluster, with a SQL database as its memory",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(serveCommand(), initCommand(), storeCommand(), importCommand(), outCommand(), readyCommand(), copyCommand(), credentialCommand(), kubeconfigCommand(), etcdCommand(), envtestCommand(), convertCommand(), pluginParent(), versionCommand())
	root.AddCommand(pastCommands()...)
	root.AddCommand(gatesTopic())
	for _, extra := range extras {
		root.AddCommand(extra())
	}
	return root
}

// extras are commands that only some builds have.
var extras []func() *cobra.Command

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary and of the protocol it serves",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rowlock %s (Kubernetes %s, %s %s/%s)\n", version, servedRelease, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
