//go:build release

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// Only the program that makes releases has this command: a server needs no code that writes manual pages.
func init() { extras = append(extras, manCommand) }

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("FOLDER: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // pages of one version are identical, whatever the day
			return doc.GenManTree(root, &doc.GenManHeader{Title: "ROWLOCK", Section: "1", Source: "rowlock " + program.Version, Manual: "rowlock"}, args[0])
		},
	}
}
