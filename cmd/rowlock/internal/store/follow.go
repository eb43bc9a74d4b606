package store

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/backup"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// followFolder is `store backup --follow`.
func followFolder(ctx context.Context, o *database.Options, dir string, flags *backup.Flags) error {
	cfg, err := flags.Config("")
	if err != nil {
		return err
	}
	return o.With(ctx, database.AsIs, "", func(d sqlstore.Driver) error {
		cfg.Dir, cfg.Driver, cfg.Strict = dir, d, true
		cfg.Log = slog.New(slog.NewTextHandler(o.ErrOut, nil))
		if err := follow.New(cfg).Run(ctx); err != nil {
			return fmt.Errorf("backing up to %s: %w", dir, err)
		}
		return nil
	})
}

func listCommand(o *database.Options) *cobra.Command {
	return &cobra.Command{
		Use:     "list DIR",
		Aliases: []string{"status"},
		Short:   "Show the content of a folder of backups: bases, parts of the log, gaps",
		Long: `Show the content of a folder that --follow writes: the ranges of revisions without a
gap, their bases and parts of the log, and problems. The command reads the newest part of
the log completely, and the beginning and the end of the others.
The exit code is 1 if something is damaged or missing.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := follow.List(args[0])
			if err != nil {
				return err
			}
			if err := o.Answer(o.Out, l, func(w io.Writer) { listTable(w, l) }); err != nil {
				return err
			}
			if len(l.Problems) > 0 {
				return fmt.Errorf("%s: problems found: %d", args[0], len(l.Problems))
			}
			return nil
		},
	}
}

func listTable(w io.Writer, l *follow.Listing) {
	fmt.Fprintf(w, "FOLDER\t%s (%s)\n", l.Dir, cli.Size(l.Bytes))
	fmt.Fprintf(w, "OF CLUSTER\t%s\n", display.Safe(l.Cluster))
	for i, r := range l.Runs {
		if i > 0 {
			before := l.Runs[i-1]
			fmt.Fprintf(w, "GAP\tfrom revision %d of %s to revision %d of %s\n", before.Last, cli.Time(before.Until), r.First, cli.Time(r.From))
		}
		if r.From.IsZero() {
			fmt.Fprintf(w, "RUN %d\tcannot be restored: it has no base yet\n", r.Number)
		} else {
			fmt.Fprintf(w, "RUN %d\trevisions %d to %d, %s to %s\n", r.Number, r.First, r.Last, cli.Time(r.From), cli.Time(r.Until))
		}
		for _, b := range r.Bases {
			fmt.Fprintf(w, "  base\t%s  %s  taken %s\n", display.Safe(b.File), cli.Size(b.Bytes), cli.Time(b.Taken))
		}
		for _, s := range r.Segments {
			fmt.Fprintf(w, "  log\t%s  %s  revisions %d to %d, %s to %s\n", display.Safe(s.File), cli.Size(s.Bytes), s.First, s.Last, cli.Time(s.Began), cli.Time(s.Until))
		}
	}
	for _, p := range l.Problems {
		fmt.Fprintf(w, "PROBLEM\t%s\n", display.Safe(p))
	}
}
