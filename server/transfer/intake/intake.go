// Package intake imports the content of a foreign store into an empty database.
//
//	intake.go  reading: checks, counts and spools every entry
//	spool.go   the spool file: its contents, and whether it can be reused
//	load.go    loading: the spool is written to the database in one transaction
//	loaded.go  whether a database has a spool already: an earlier run was killed after the commit
//
// Nothing is written to the database before everything was read and checked; after an error or a crash the database
// is empty as before, and a second run starts again or continues with a finished spool. Memory holds one entry, 8
// bytes for each object, and some 200 for each address or port of a service.
//
// Revisions: an object keeps the revision of its newest write, so that clients' copies stay valid; claims, and objects
// that share a revision with another one, get revisions above all of the source. The log begins after all of them, at
// a revision that is higher than any that the source ever returned, so clients that watched there list again.
//
// Cause: an operator, by a command. It starts no goroutine.
package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// Job describes what to read.
type Job struct {
	Source  foreign.Source
	Options transfer.Options
	Keys    sqlstore.Sealer // how values are stored; sqlstore.NoEncryption{} for as they are
	// SkipUndecodable leaves out values that cannot be read, instead of ending there.
	SkipUndecodable bool
	// Spool is the path of the spool without its ends; "" tries everything and keeps nothing.
	Spool string
	// Mark identifies everything else on which the spool depends, apart from the source and the fields
	// above, such as files with keys.
	Mark     string
	Progress func(entries int64) // called now and then; may be nil
}

// UndecodableError: some entries cannot be read, and were not to be left out.
type UndecodableError struct{ Count int64 }

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("%d values cannot be decoded", e.Count)
}

const (
	progressEvery = 500
	maxShared     = 1000 // addresses and ports of two services that are named
)

// intake is a Job at work.
type intake struct {
	*Job
	reader    *transfer.Reader
	spool     *spool // nil: none
	revisions []int64
	holders   map[sqlstore.Key]string // of claims
	shared    int64                   // claims that another service holds already
	warnings  []string                // of the first of these
}

// Read reads everything, or finds the spool of an earlier run that did. Errors:
// UndecodableError, with which the result has the report; those of the source; and those
// of a key management service that does not answer.
func (j *Job) Read(ctx context.Context) (*Spooled, error) {
	if found := j.Finished(); found != nil {
		return found, nil
	}
	if err := sqlstore.CheckHeadroom(j.Source.Revision()); err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	in := &intake{Job: j, reader: transfer.NewReader(j.Options), holders: map[sqlstore.Key]string{}}
	if j.Spool != "" {
		var err error
		if in.spool, err = createSpool(j.Spool, j.Source.Revision()); err != nil {
			return nil, err
		}
	}
	err := in.all(ctx)
	result := in.result()
	if err == nil && result.Report.Undecodable > 0 && !j.SkipUndecodable {
		err = &UndecodableError{Count: result.Report.Undecodable}
	}
	if in.spool == nil {
		return result, err
	}
	if err != nil {
		return result, errors.Join(err, in.spool.discard())
	}
	if err := in.spool.finish(result); err != nil {
		return nil, errors.Join(err, in.spool.discard())
	}
	return result, nil
}

// all decides every entry.
func (in *intake) all(ctx context.Context) error {
	var n int64
	var last string
	for e, err := range in.Source.Entries(ctx) {
		if err != nil {
			return err
		}
		if n > 0 && e.Key <= last {
			return fmt.Errorf("%s: the source gives it twice, or out of order", foreign.Shown(e.Key))
		}
		last = e.Key
		if e.ModRevision > in.Source.Revision() {
			return fmt.Errorf("%s: revision %d is newer than %d, which the source says is its newest", foreign.Shown(e.Key), e.ModRevision, in.Source.Revision())
		}
		out, err := in.reader.Read(ctx, e)
		if err != nil {
			return err
		}
		if out.Disposition == transfer.Taken {
			if err := in.keep(ctx, &out); err != nil {
				return err
			}
		}
		if n++; in.Progress != nil && n%progressEvery == 0 {
			in.Progress(n)
		}
	}
	return ctx.Err()
}

// keep spools an object with its claims.
func (in *intake) keep(ctx context.Context, out *transfer.Outcome) error {
	in.revisions = append(in.revisions, out.Row.Revision)
	for _, c := range out.Claims {
		owner := out.Key.Namespace + "/" + out.Key.Name
		if holder, taken := in.holders[c.Key]; taken {
			if in.shared++; in.shared <= maxShared {
				in.warnings = append(in.warnings, fmt.Sprintf("%s is held by the services %s and %s: the first keeps it", c.Key.Name, holder, owner))
			}
			continue
		}
		in.holders[c.Key] = owner
		c.Revision, c.Created = out.Row.Revision, out.Row.Created // until it is loaded
		if err := in.write(ctx, c); err != nil {
			return err
		}
	}
	return in.write(ctx, out.Row)
}

func (in *intake) write(ctx context.Context, row sqlstore.Row) error {
	if in.spool == nil {
		return nil
	}
	var err error
	if row.Value, err = in.Keys.Seal(ctx, row.Key, row.Value); err != nil {
		return err
	}
	return in.spool.w.Add(row)
}

// result assembles the results.
func (in *intake) result() *Spooled {
	slices.Sort(in.revisions)
	s := &Spooled{Path: in.Spool, Mark: in.mark(), SourceRevision: in.Source.Revision(), Report: in.reader.Report()}
	s.Report.Warnings = append(s.Report.Warnings, in.warnings...)
	if more := in.shared - int64(len(in.warnings)); more > 0 {
		s.Report.Warnings = append(s.Report.Warnings, fmt.Sprintf("%d more addresses and ports are held by two services", more))
	}
	s.Report.Claims = int64(len(in.holders))
	fresh := s.Report.Claims
	for i := 1; i < len(in.revisions); i++ {
		if r := in.revisions[i]; r == in.revisions[i-1] {
			fresh++
			if n := len(s.Repeated); n == 0 || s.Repeated[n-1] != r {
				s.Repeated = append(s.Repeated, r)
			}
		}
	}
	s.Head = s.SourceRevision + fresh + 1
	return s
}
