package importer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/server/transfer/intake"
	"github.com/rowlock/rowlock/sqlstore"
)

// spoolPath returns the path of the intermediate files, without their extensions.
func (o *importOptions) spoolPath() string {
	if o.spool != "" {
		return o.spool
	}
	return filepath.Join(o.DataDir, "import")
}

func (o *importOptions) checkSpoolFolder() error {
	return checkNotWorldWritable("--spool", filepath.Dir(o.spoolPath()))
}

// mayBeFinished reports whether an earlier run may have filled the database and ended before it removed its
// intermediate files. A live cluster would have to be read again to know that.
func (o *importOptions) mayBeFinished() bool {
	return !o.dryRun && o.live.kubeconfig == "" && intake.MayBeFinished(o.spoolPath())
}

// resume does the last steps of a run that had filled the database. The database is in use if it holds anything
// else than that run read for the same job.
func (o *importOptions) resume(ctx context.Context, job *intake.Job, files keyFiles) error {
	if err := o.checkSpoolFolder(); err != nil {
		return err
	}
	job.Spool = o.spoolPath()
	spooled := job.Finished()
	if spooled == nil {
		return errInUse
	}
	loaded := false
	err := o.With(ctx, database.AsIs, "nothing was changed; run it again", func(d sqlstore.Driver) (err error) {
		loaded, err = spooled.Loaded(ctx, d)
		return err
	})
	if err != nil {
		return err
	}
	if !loaded {
		return errInUse
	}
	if err := files.put(o.DataDir); err != nil {
		return err
	}
	if err := spooled.Remove(); err != nil {
		return err
	}
	a := o.newAnswer(job, spooled, files)
	a.Done = true
	return o.report(a, files)
}

// newAnswer returns the part of the result that reading determines.
func (o *importOptions) newAnswer(job *intake.Job, s *intake.Spooled, files keyFiles) *importAnswer {
	return &importAnswer{
		Source: job.Source.Describe(), Store: database.PublicURL(o.URL()), DryRun: o.dryRun, SourceRevision: s.SourceRevision, Revision: s.Head, Reused: s.Reused,
		Report: s.Report, ResourcesLeft: []remote.Skipped{}, TakenAlong: files.names(),
	}
}

// report prints the result and the next step.
func (o *importOptions) report(a *importAnswer, files keyFiles) error {
	if err := o.Answer(o.Out, a, a.table); err != nil {
		return err
	}
	if !o.dryRun {
		fmt.Fprintf(o.ErrOut, "now start it: rowlock serve --data-dir %s --store %s%s\n", o.DataDir, a.Store, files.hint(o.DataDir))
	}
	return nil
}

// checkNotWorldWritable refuses a world-writable folder, sticky or not: the import would trust files that another
// user has created there under the expected names.
func checkNotWorldWritable(flag, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil // writing to the folder will report it
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s: all users may write to the folder %s (mode %04o), and could replace files that the import trusts: name one that only you may write to", flag, dir, mode.Perm())
	}
	return nil
}
