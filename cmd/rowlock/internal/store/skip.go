package store

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
)

type skipAnswer struct {
	Newest int64 `json:"newestRevision"` // before it
	GoesOn int64 `json:"goesOnAt"`
}

func skipCommand(o *database.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "skip-revisions [COUNT]",
		Short: "Let a database that was restored to an older state continue above all revisions that clients may have seen",
		Long: `Let a database that was restored to an older state (by pg_dump, point-in-time
recovery, a snapshot of its disk, a copy of its file) continue above all revisions
that were assigned after that state, so that no revision has two meanings: clients
and running servers that have seen later ones list everything again. Objects are
not affected.

Without COUNT the command skips as many revisions as servers may have assigned since
the newest write: a million, and 50,000 for each second. Run it before the first server
starts, or while servers run; running it again is harmless. Servers accept an old
primary again after it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var count int64
			if len(args) > 0 {
				var err error
				if count, err = strconv.ParseInt(args[0], 10, 64); err != nil || count <= 0 || count > maxSkipped {
					return fmt.Errorf("COUNT %q: want a number from 1 to %d", args[0], int64(maxSkipped))
				}
			}
			return o.With(cmd.Context(), database.AsIs, "no revision was left out", func(d sqlstore.Driver) error {
				from, to, err := d.SkipRevisions(cmd.Context(), count)
				if err != nil {
					return err
				}
				a := skipAnswer{Newest: from, GoesOn: to + 1}
				return o.Answer(o.Out, a, func(w io.Writer) {
					fmt.Fprintf(w, "NEWEST REVISION\t%d\nGOES ON AT\t%d\n", a.Newest, a.GoesOn)
				})
			})
		},
	}
}

// maxSkipped leaves room for later revisions: clients may keep revisions as numbers of 53 bits.
const maxSkipped = 1 << 50
