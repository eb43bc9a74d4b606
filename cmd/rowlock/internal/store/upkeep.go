package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

type migrateAnswer struct {
	Store string `json:"store"`
	From  uint   `json:"from"` // 0: the database was empty
	To    uint   `json:"to"`
}

func migrateCommand(o *database.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Create or upgrade the schema",
		Long: `Create or upgrade the schema. A server does the same when it starts; use this
command to do it earlier, or with another role.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			a := migrateAnswer{Store: database.PublicURL(o.URL())}
			current, err := schemaIsCurrent(ctx, o.URL(), &a)
			if err != nil {
				return err
			}
			return o.With(ctx, database.Migrate, "run it again", func(d sqlstore.Driver) error {
				s, err := d.Stats(ctx)
				if err != nil {
					return err
				}
				if a.To = s.SchemaVersion; current {
					a.From = a.To
				}
				return o.Answer(o.Out, a, func(w io.Writer) {
					if a.From == a.To {
						fmt.Fprintf(w, "the schema is at version %d already\n", a.To)
					} else {
						fmt.Fprintf(w, "the schema went from version %d to %d\n", a.From, a.To)
					}
				})
			})
		},
	}
}

// schemaIsCurrent reports whether the schema is up to date, and notes its version otherwise. The migration reports
// other errors.
func schemaIsCurrent(ctx context.Context, url string, a *migrateAnswer) (bool, error) {
	d, err := database.Open(ctx, url, database.AsIs)
	if err == nil {
		return true, d.Close()
	}
	if schema, ok := errors.AsType[*sqlstore.SchemaError](err); ok {
		a.From = schema.Found
	}
	return false, nil
}

type compactAnswer struct {
	CompactedRevision int64 `json:"compactedRevision"`
	DeletedRows       int64 `json:"deletedRows"`
}

func compactCommand(o *database.Options) *cobra.Command {
	var to int64
	var keep time.Duration
	cmd := &cobra.Command{
		Use:   "compact (--to REVISION | --keep DURATION)",
		Short: "Delete history",
		Long: `Delete history up to a revision, or older than a duration. Objects are not affected.
The command deletes rows in small transactions with pauses, so that servers can write.
Servers compact history that is older than their --history-retention automatically.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			byRevision, byAge := cmd.Flags().Changed("to"), cmd.Flags().Changed("keep")
			switch {
			case byRevision == byAge:
				return errors.New("want either --to or --keep")
			case byRevision && to <= 0:
				return fmt.Errorf("--to %d: want a revision above 0", to)
			case byAge && keep < 0:
				return fmt.Errorf("--keep %s: want a duration of 0 or more", keep)
			}
			return o.With(ctx, database.AsIs, "run it again to delete the rest", func(d sqlstore.Driver) (err error) {
				if byAge {
					now := d.Now()
					if to, _, err = d.Aged(ctx, time.Time{}, now.Add(-keep), now); err != nil {
						return err
					}
				}
				p, err := o.Rows(ctx, d, "compacting, at most", true)
				if err != nil {
					return err
				}
				var a compactAnswer
				a.CompactedRevision, a.DeletedRows, err = upkeep.Compact(ctx, d, to, p.Show)
				p.End()
				if err != nil {
					return err
				}
				return o.Answer(o.Out, a, func(w io.Writer) {
					fmt.Fprintf(w, "compacted up to revision %d, %d rows deleted\n", a.CompactedRevision, a.DeletedRows)
				})
			})
		},
	}
	cmd.Flags().Int64Var(&to, "to", 0, "compact up to this revision; reads of it still work")
	cmd.Flags().DurationVar(&keep, "keep", 0, "compact history older than this")
	return cmd
}

// verifyAnswer is the result of a verification.
type verifyAnswer struct {
	*upkeep.Report
	RebuildCache *rebuiltCache `json:"rebuildCache,omitempty"` // with --rebuild-cache
}

// rebuiltCache is the result of --rebuild-cache.
type rebuiltCache struct {
	NewEpoch bool   `json:"newEpoch"`
	Removed  string `json:"removed,omitempty"` // path of the cache file that was removed; empty: there was none
}

func verifyCommand(o *database.Options) *cobra.Command {
	var rebuild bool
	cmd := &cobra.Command{
		Use:   "verify [--rebuild-cache]",
		Short: "Check the consistency of the table, and that every value decodes",
		Long: `Check the consistency of the table on live data: the log has no gap, each write names
the revision that it replaced, replaying the log results in the live objects, and each
value decodes as the object of its key. While a server runs, the check covers the newer
half of the history, as the older half may be compacted meanwhile. With
--encryption-provider-config it decrypts encrypted values; without it, it does not read
them. The exit code is 1 if there is a problem.

A server that starts with a cache file (serve --cache-file) does not read rows
again that are in it. After you have changed rows by SQL, run this command with
--rebuild-cache, and restart the servers.

  --rebuild-cache  starts a new epoch of the database before the check: no server
                   reads a cache file that was written before it. The next start of
                   each server reads all rows and writes a new file. The cache file
                   next to an SQLite database is removed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			left := "nothing was changed"
			if rebuild {
				left = "check again with --rebuild-cache whether a new epoch has begun"
			}
			return decrypting(cmd.Context(), o, func(decode decoder) error {
				return o.With(cmd.Context(), database.AsIs, left, func(d sqlstore.Driver) (err error) {
					var a verifyAnswer
					if rebuild {
						if a.RebuildCache, err = rebuildCache(cmd.Context(), d, o.URL()); err != nil {
							return err
						}
					}
					if a.Report, err = verify(cmd.Context(), o, d, decode); err != nil {
						return err
					}
					if a.Problems == nil {
						a.Problems = []upkeep.Problem{}
					}
					if err := o.Answer(o.Out, a, func(w io.Writer) { verifyTable(w, &a) }); err != nil {
						return err
					}
					if a.Count > 0 {
						return fmt.Errorf("the store is damaged: problems found: %d", a.Count)
					}
					return nil
				})
			})
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild-cache", false, "have every server read all rows at its next start, and write a new cache file: for after rows were edited by SQL")
	return cmd
}

// rebuildCache begins a new epoch and removes the cache file of an SQLite database.
func rebuildCache(ctx context.Context, d sqlstore.Driver, url string) (*rebuiltCache, error) {
	attestor := d.Attestor()
	if attestor == nil {
		return nil, errors.New("--rebuild-cache: servers on this database write no cache files")
	}
	if err := attestor.NewEpoch(ctx); err != nil {
		return nil, fmt.Errorf("--rebuild-cache: %w", err)
	}
	done := &rebuiltCache{NewEpoch: true}
	if path, isFile := database.SQLitePath(url); isFile {
		switch err := os.Remove(database.CacheFileOf(path)); {
		case err == nil:
			done.Removed = database.CacheFileOf(path)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("--rebuild-cache: a new epoch has begun, but the file is still there, which no server reads any more: %w", err)
		}
	}
	return done, nil
}

// verify checks a database and shows the progress.
func verify(ctx context.Context, o *database.Options, d sqlstore.Driver, decode decoder) (*upkeep.Report, error) {
	p, err := o.Rows(ctx, d, "verifying", true)
	if err != nil {
		return nil, err
	}
	defer p.End()
	var rows int64
	return upkeep.Verify(ctx, d, func(row sqlstore.Row) error {
		rows++
		p.Show(rows)
		return decode.row(row)
	})
}

func verifyTable(w io.Writer, r *verifyAnswer) {
	if c := r.RebuildCache; c != nil {
		fmt.Fprintln(w, "a new epoch has begun: every server reads all rows at its next start, and then writes a new cache file; restart those that run")
		if c.Removed != "" {
			fmt.Fprintf(w, "removed %s\n", c.Removed)
		}
	}
	if len(r.Problems) > 0 {
		fmt.Fprintf(w, "KEY\tREVISION\tPROBLEM\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s\t%d\t%s\n", p.Key, p.Revision, p.Reason)
	}
	if more := r.Count - int64(len(r.Problems)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	fmt.Fprintf(w, "looked at %d objects and %d writes, revisions %d to %d: %d problems\n", r.Objects, r.Changes, r.From, r.To, r.Count)
}
