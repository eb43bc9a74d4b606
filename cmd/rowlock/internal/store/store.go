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
		Short: "Look after the database: status, compaction, checks, repair, backups",
		Long: `Look after the database. Every command works beside running servers, and may
be interrupted (Ctrl-C): what it did not finish leaves no trace.`,
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
