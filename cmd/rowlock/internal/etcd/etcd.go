// Package etcd is the command that replaces etcd in test environments. cmd/etcd is the same as a separate binary.
package etcd

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/sqlstore/etcdstub"
)

// Command returns the command.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   program.Etcd,
		Short: "Replace etcd in test environments: hold the database of servers that are started as kube-apiserver",
		Long: `Hold the database of API servers that are started as kube-apiserver, with the command
line of etcd. It does not speak etcd's protocol: it answers health checks, and returns
the location of the database. ` + "`rowlock etcd --help`" + ` shows its flags.`,
		DisableFlagParsing: true,
		SilenceUsage:       true,
		SilenceErrors:      true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := etcdstub.Main(cmd.Context(), args, os.Getenv, program.Version, os.Stdout, os.Stderr); code != 0 {
				return cli.ExitCode(code)
			}
			return nil
		},
	}
	return cmd
}
