package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// backupAnswer tells of a backup that was made, read or restored.
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
		fmt.Fprintf(w, "OF CLUSTER\t%s (%s), taken %s\n", a.ClusterID, a.Driver, moment(a.Taken))
		fmt.Fprintf(w, "AT REVISION\t%d\n", a.Revision)
		if a.Floor < a.Revision {
			fmt.Fprintf(w, "HISTORY FROM\t%d\n", a.Floor)
		}
		fmt.Fprintf(w, "ROWS\t%d\n", a.Rows)
		fmt.Fprintf(w, "SHA256\t%s\n", a.SHA256)
	}
}

func backupCommand(o *storeOptions) *cobra.Command {
	var history, following bool
	var flags followOptions
	var overwrite overwriting
	cmd := &cobra.Command{
		Use:   "backup (FILE | --follow DIR)",
		Short: "Write all objects, as they are at one revision, to a file, or each commit to a folder",
		Long: `Write all objects, as they are at one revision, to a file, while servers go on.
The file appears when it is whole, and carries a checksum. A file that exists is
kept, and the command refused, unless --overwrite is given. A backup can be restored
into either database. It holds secrets; what is encrypted in the database is
encrypted in it, and of use only with the keys.

With --follow it goes on: a base, and then every commit, are written to a folder
within a second, until it is told to stop (SIGINT, SIGTERM). It may be killed at any
instant, and goes on where it ended when it is run again. What is older than --keep
is deleted. See also serve --backup-dir.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if following {
				if history {
					return errors.New("--history has no effect with --follow, which keeps each commit: leave it out")
				}
				if overwrite {
					return errors.New("--overwrite has no effect with --follow, which adds to the folder: leave it out")
				}
				return o.follow(cmd.Context(), args[0], &flags)
			}
			for _, name := range []string{"keep", "base-every"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s has an effect with --follow only: leave it out, or add --follow", name)
				}
			}
			if err := overwrite.replace(args[0]); err != nil {
				return err
			}
			return o.with(cmd.Context(), asItIs, "no backup was made", func(d sqlstore.Driver) error {
				p := o.progress("backing up")
				h, t, err := archive.BackupFile(cmd.Context(), d, args[0], archive.Options{History: history, Progress: p.Of})
				p.End()
				if err != nil {
					return tooSlow(err)
				}
				a := newBackupAnswer(args[0], h, t)
				return o.answer(o.out, a, a.table("BACKED UP TO"))
			})
		},
	}
	cmd.Flags().BoolVar(&history, "history", false, "with the writes that are still kept, so that watches go on after a restore")
	cmd.Flags().BoolVar(&following, "follow", false, "write each commit to a folder, until told to stop")
	flags.addTo(cmd.Flags(), "")
	overwrite.addTo(cmd.Flags())
	cmd.AddCommand(listCommand(o))
	return cmd
}

// tooSlow adds what helps when history was compacted while it was read.
func tooSlow(err error) error {
	var compacted *sqlstore.CompactedError
	if errors.As(err, &compacted) {
		return fmt.Errorf("%w: reading took longer than servers keep history; raise their --history-retention", err)
	}
	return err
}

func restoreCommand(o *storeOptions) *cobra.Command {
	var check, latest bool
	var r folderOptions
	cmd := &cobra.Command{
		Use:   "restore (FILE | DIR)",
		Short: "Fill an empty database from a backup, or from a folder of backups as of a time",
		Long: `Fill an empty database from a backup, in one transaction. Revisions, UIDs and the
cluster's identity stay what they were. Start servers afterwards: one that
starts before makes the database its own.

From a folder that backup --follow, or serve --backup-dir, writes to, the state at a
revision or time is restored, by default the newest. Where that cannot be restored, the
newest that can be is, and the exit code is 1.

With --verify-latest the newest state is restored into a file that is deleted again,
and checked as by verify. Where --store is given, it is compared with that
database at the same revision. The exit code is 1 if anything is wrong.`,
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
				return o.verifyLatest(cmd.Context(), args[0], &r, cmd.Flags().Changed("store"))
			case folder:
				return o.restoreFolder(cmd.Context(), args[0], &r)
			}
			if check {
				return o.check(args[0])
			}
			f, err := os.Open(args[0]) // before anything is created
			if err != nil {
				return err
			}
			defer f.Close()
			return o.with(cmd.Context(), bringUp, "the database is as empty as before", func(d sqlstore.Driver) error {
				p := o.file("restoring", f)
				h, t, err := archive.Restore(cmd.Context(), d, p.Bytes(f), nil)
				p.End()
				if errors.Is(err, sqlstore.ErrNotEmpty) {
					return errors.New("--store: the database is in use: a backup is restored into an empty one")
				}
				if err != nil {
					return fmt.Errorf("restoring %s: %w", args[0], err)
				}
				a := newBackupAnswer(args[0], h, t)
				return o.answer(o.out, a, a.table("RESTORED FROM"))
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&check, "check", false, "read the file and compare its checksum; touch no database")
	f.StringVar(&r.to, "to", "", "of a folder: the revision, or the time (2026-11-23T14:05:00Z), whose state is restored (default: the newest)")
	f.Int64Var(&r.skip, "skip-revisions", 0, "of a folder: revisions that are left out before the database goes on, so that clients that saw later ones list anew, and are not told of others by the same numbers")
	f.StringVar(&r.scratch, "scratch", "", "of a folder: where temporary files go (default: the system's folder for them)")
	f.BoolVar(&latest, "verify-latest", false, "of a folder: restore the newest state for a check alone, and compare it with --store where that is given")
	return cmd
}

func (o *storeOptions) check(path string) error {
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
	return o.answer(o.out, a, a.table("WHOLE"))
}

type exportAnswer struct {
	File     string `json:"file"`
	Format   string `json:"format"`
	Revision int64  `json:"revision"`
	Objects  int64  `json:"objects"`
}

func exportCommand(o *storeOptions) *cobra.Command {
	var sql, yaml bool
	var opt archive.ExportOptions
	var overwrite overwriting
	cmd := &cobra.Command{
		Use:   "export (--yaml | --sql) [FILE]",
		Short: "Write objects, as they were at a revision, for people and other programs",
		Long: `Write objects, as they were at any revision that is still kept, to a file or to
standard output.

With --yaml they are documents for kubectl apply, without what a server fills in
(UID, resource version, managed fields); namespaces and definitions of custom
resources come first. With --sql they are a table for any SQL database.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case sql == yaml:
				return errors.New("want either --sql or --yaml")
			case opt.Revision < 0:
				return fmt.Errorf("--revision %d: want a revision above 0", opt.Revision)
			}
			if opt.Format = archive.YAML; sql {
				opt.Format = archive.SQL
			}
			if len(args) == 1 && args[0] != "-" {
				if err := overwrite.replace(args[0]); err != nil {
					return err
				}
			}
			return keysFor(cmd.Context(), o.encryption, o.log(), func(keys sqlstore.Sealer, _ bool) error {
				opt.Open = func(row *sqlstore.Row) error { return decryptFor(cmd.Context(), keys, row) }
				return o.with(cmd.Context(), asItIs, "nothing was changed", func(d sqlstore.Driver) error {
					return o.export(cmd.Context(), d, args, opt)
				})
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&sql, "sql", false, "as SQL")
	f.BoolVar(&yaml, "yaml", false, "as YAML")
	f.Int64Var(&opt.Revision, "revision", 0, "as it was at this revision (default: now)")
	f.StringVar(&opt.Resource, "resource", "", "one resource alone: pods, deployments.apps")
	f.StringVarP(&opt.Namespace, "namespace", "n", "", "one namespace alone")
	overwrite.addTo(f)
	f.BoolVar(&opt.AsStored, "as-stored", false, "YAML with all that is stored, and the resource version")
	return cmd
}

// decryptFor decrypts a row for an export. Without keys the export fails; a value that
// the keys do not open is damaged.
func decryptFor(ctx context.Context, keys sqlstore.Sealer, row *sqlstore.Row) error {
	plain, _, err := keys.Open(ctx, row.Key, row.Value)
	if _, none := keys.(sqlstore.Unsealed); none && err != nil {
		return fmt.Errorf("%w: give --%s", err, encryptionFlag)
	}
	if err == nil {
		row.Value = plain
	}
	return ctx.Err()
}

func (o *storeOptions) export(ctx context.Context, d sqlstore.Driver, args []string, opt archive.ExportOptions) error {
	a := exportAnswer{File: "-", Format: string(opt.Format)}
	out, tell := o.out, o.errOut
	p, err := o.rows(ctx, d, "exporting", false)
	if err != nil {
		return err
	}
	opt.Progress = p.Show
	write := func() (err error) {
		a.Objects, a.Revision, err = archive.Export(ctx, d, out, opt)
		return err
	}
	if len(args) == 1 && args[0] != "-" {
		a.File, tell = args[0], o.out
		write = func() (err error) {
			a.Objects, a.Revision, err = archive.ExportFile(ctx, d, args[0], opt)
			return err
		}
	}
	err = write()
	p.End()
	if err != nil {
		return tooSlow(err)
	}
	return o.answer(tell, a, func(w io.Writer) {
		fmt.Fprintf(w, "exported %d objects at revision %d\n", a.Objects, a.Revision)
	})
}
