// Package store holds the commands that maintain the database: status, migration, compaction, checks, repair and
// backups.
package store

import (
	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/exporter"
)

func Command() *cobra.Command {
	o := &database.Options{}
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Maintain the database: status, compaction, checks, repair, backups",
		Long: `Maintain the database. Every command can run while servers run, and can be
interrupted (Ctrl-C) without leaving a partial result.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o.AddTo(cmd)
	cmd.AddCommand(
		statusCommand(o), migrateCommand(o), compactCommand(o), verifyCommand(o), repairCommand(o), rewriteCommand(o),
		backupCommand(o), restoreCommand(o), skipCommand(o), exporter.FormsCommand(o),
	)
	return cmd
}
