package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/backup"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// backupAnswer describes a backup that was made, checked or restored.
type backupAnswer struct {
	File      string    `json:"file"`
	Driver    string    `json:"driver"` // that it was taken from
	ClusterID string    `json:"clusterID"`
	Revision  int64     `json:"revision"`
	Floor     int64     `json:"floor"` // from which on its history reaches; revision without history
	Rows      int64     `json:"rows"`
	SHA256    string    `json:"sha256"`
	Taken     time.Time `json:"taken"`
}

func newBackupAnswer(file string, h archive.Header, t archive.Trailer) backupAnswer {
	return backupAnswer{file, h.Driver, h.ClusterID, h.Revision, h.Floor, t.Rows, t.SHA256, h.Taken}
}

func (a backupAnswer) table(verb string) func(io.Writer) {
	return func(w io.Writer) {
		fmt.Fprintf(w, "%s\t%s\n", verb, a.File)
		fmt.Fprintf(w, "OF CLUSTER\t%s (%s), taken %s\n", a.ClusterID, a.Driver, cli.Time(a.Taken))
		fmt.Fprintf(w, "AT REVISION\t%d\n", a.Revision)
		if a.Floor < a.Revision {
			fmt.Fprintf(w, "HISTORY FROM\t%d\n", a.Floor)
		}
		fmt.Fprintf(w, "ROWS\t%d\n", a.Rows)
		fmt.Fprintf(w, "SHA256\t%s\n", a.SHA256)
	}
}

func backupCommand(o *database.Options) *cobra.Command {
	var history, following bool
	var flags backup.Flags
	var overwrite cli.Overwrite
	cmd := &cobra.Command{
		Use:   "backup (FILE | --follow DIR)",
		Short: "Back up all objects at one revision to a file, or each commit to a folder",
		Long: `Back up all objects at one revision to a file, while servers run. The file appears
when it is complete, and has a checksum. The command does not replace an existing file
unless --overwrite is given. A backup can be restored into either kind of database. It
contains secrets; values that are encrypted in the database are encrypted in it, and
need the keys.

With --follow it writes a base, and then every commit within a second, to a folder
until SIGINT or SIGTERM. It may be killed at any time, and continues in the next run.
It deletes backups that are older than --keep. See also serve --backup-dir.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if following {
				if history {
					return errors.New("--history has no effect with --follow, which keeps each commit: leave it out")
				}
				if overwrite {
					return errors.New("--overwrite has no effect with --follow, which adds to the folder: leave it out")
				}
				return followFolder(cmd.Context(), o, args[0], &flags)
			}
			for _, name := range []string{"keep", "base-every"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s has an effect with --follow only: leave it out, or add --follow", name)
				}
			}
			if err := overwrite.AllowsReplacing(args[0]); err != nil {
				return err
			}
			return o.With(cmd.Context(), database.AsIs, "no backup was made", func(d sqlstore.Driver) error {
				p := o.Progress("backing up")
				h, t, err := archive.BackupFile(cmd.Context(), d, args[0], archive.Options{History: history, Progress: p.Of})
				p.End()
				if err != nil {
					return database.ExplainCompacted(err)
				}
				a := newBackupAnswer(args[0], h, t)
				return o.Answer(o.Out, a, a.table("BACKED UP TO"))
			})
		},
	}
	cmd.Flags().BoolVar(&history, "history", false, "include the history, so that watches can resume after a restore")
	cmd.Flags().BoolVar(&following, "follow", false, "write each commit to a folder, until SIGINT or SIGTERM")
	flags.AddTo(cmd.Flags(), "")
	overwrite.AddTo(cmd.Flags())
	cmd.AddCommand(listCommand(o))
	return cmd
}

func restoreCommand(o *database.Options) *cobra.Command {
	var check, latest bool
	var r folderFlags
	cmd := &cobra.Command{
		Use:   "restore (FILE | DIR)",
		Short: "Restore a backup, or a folder of backups at a point in time, into an empty database",
		Long: `Restore a backup into an empty database, in one transaction. Revisions, UIDs and the
cluster's identity are preserved. Start servers afterwards: a server that starts
earlier initializes the database.

From a folder that backup --follow or serve --backup-dir writes, restore the state at a
revision or time, by default the newest. If that is not possible, restore the newest
possible state; the exit code is 1 then.

With --verify-latest, restore the newest state into a temporary file, check it like
verify, and compare it with the database of --store, if given, at the same revision. The
exit code is 1 if there is a problem.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := follow.IsFolder(args[0])
			for _, name := range []string{"to", "skip-revisions", "scratch", "verify-latest"} {
				if cmd.Flags().Changed(name) && !folder {
					return fmt.Errorf("--%s: %s is not a folder of backups, as store backup --follow writes", name, args[0])
				}
			}
			switch {
			case folder && check:
				return errors.New("--check is for backup files: for a folder use --verify-latest, or store backup list")
			case latest:
				return verifyLatest(cmd.Context(), o, args[0], &r, cmd.Flags().Changed("store"))
			case folder:
				return restoreFolder(cmd.Context(), o, args[0], &r)
			}
			if check {
				return checkFile(o, args[0])
			}
			f, err := os.Open(args[0]) // before anything is created
			if err != nil {
				return err
			}
			defer f.Close()
			return o.With(cmd.Context(), database.Migrate, "the database is as empty as before", func(d sqlstore.Driver) error {
				p := o.File("restoring", f)
				h, t, err := archive.Restore(cmd.Context(), d, p.Bytes(f), nil)
				p.End()
				if errors.Is(err, sqlstore.ErrNotEmpty) {
					return errors.New("--store: the database is in use: a backup is restored into an empty one")
				}
				if err != nil {
					return fmt.Errorf("restoring %s: %w", args[0], err)
				}
				a := newBackupAnswer(args[0], h, t)
				return o.Answer(o.Out, a, a.table("RESTORED FROM"))
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&check, "check", false, "read the file and compare its checksum; touch no database")
	f.StringVar(&r.to, "to", "", "of a folder: the revision, or the time (2026-11-23T14:05:00Z), whose state is restored (default: the newest)")
	f.Int64Var(&r.skip, "skip-revisions", 0, "of a folder: revisions to skip before the database continues, so that clients that saw later ones list again, and do not see others by the same numbers")
	f.StringVar(&r.scratch, "scratch", "", "of a folder: where temporary files go (default: the system's folder for them)")
	f.BoolVar(&latest, "verify-latest", false, "of a folder: restore the newest state for a check alone, and compare it with --store where that is given")
	return cmd
}

func checkFile(o *database.Options, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, t, err := archive.Check(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	a := newBackupAnswer(path, h, t)
	return o.Answer(o.Out, a, a.table("WHOLE"))
}
