package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/server/transfer/intake"
	"github.com/rowlock/rowlock/sqlstore"
)

// spoolPath is where what lies between reading and writing is kept, without its ends.
func (o *importOptions) spoolPath() string {
	if o.spool != "" {
		return o.spool
	}
	return filepath.Join(o.dataDir, "import")
}

func (o *importOptions) spoolIsOurs() error {
	return notEverybodys("--spool", filepath.Dir(o.spoolPath()))
}

// mayBeDone says whether a database that is in use may have been filled by a run that ended
// before it took its spool away. A live cluster would have to be read anew to know that.
func (o *importOptions) mayBeDone() bool {
	return !o.dryRun && o.live.kubeconfig == "" && intake.MayBeFinished(o.spoolPath())
}

// done is the end of a run whose work an earlier one did, all but the last step. The
// database is in use where it holds anything else than what that run read for the same job.
func (o *importOptions) done(ctx context.Context, job *intake.Job, files along) error {
	if err := o.spoolIsOurs(); err != nil {
		return err
	}
	job.Spool = o.spoolPath()
	spooled := job.Finished()
	if spooled == nil {
		return errInUse
	}
	loaded := false
	err := o.with(ctx, asItIs, "nothing was changed; run it again", func(d sqlstore.Driver) (err error) {
		loaded, err = spooled.Loaded(ctx, d)
		return err
	})
	if err != nil {
		return err
	}
	if !loaded {
		return errInUse
	}
	if err := files.put(o.dataDir); err != nil {
		return err
	}
	if err := spooled.Remove(); err != nil {
		return err
	}
	a := o.about(job, spooled, files)
	a.Done = true
	return o.finish(a, files)
}

// about is the answer of a run, as far as it is known by what was read.
func (o *importOptions) about(job *intake.Job, s *intake.Spooled, files along) *importAnswer {
	return &importAnswer{
		Source: job.Source.Describe(), Store: publicURL(o.url()), DryRun: o.dryRun, SourceRevision: s.SourceRevision, Revision: s.Head, Reused: s.Reused,
		Report: s.Report, ResourcesLeft: []remote.LeftOut{}, TakenAlong: files.names(),
	}
}

// finish answers, and says what comes next.
func (o *importOptions) finish(a *importAnswer, files along) error {
	if err := o.answer(o.out, a, a.table); err != nil {
		return err
	}
	if !o.dryRun {
		fmt.Fprintf(o.errOut, "now start it: rowlock serve --data-dir %s --store %s%s\n", o.dataDir, a.Store, files.hint(o.dataDir))
	}
	return nil
}
