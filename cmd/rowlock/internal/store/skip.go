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
		Short: "Let a database that was taken back go on above all revisions that clients may have seen",
		Long: `Let a database that was taken back to an earlier state (by pg_dump, point-in-time
recovery, a snapshot of its disk, a copy of its file) go on above all revisions
that were given after that state, so that no revision means two things: clients
and running servers that have seen later ones list everything anew. Objects are
not touched.

Without COUNT as many are left out as servers may have given since the newest write:
a million, and 50,000 for each second. Run it before the first server starts, or
beside servers that run; running it once more does no harm. An old primary that
servers refuse to use is accepted again after it.`,
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
