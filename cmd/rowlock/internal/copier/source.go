package copier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// copySource is the source of a copy, read at one moment.
type copySource struct {
	objects int64 // that were read
	*remote.Spool
	name    string // for people
	leftOut []remote.Skipped
}

// reportUnknown adds the words of --resources that matched nothing to the report: a singular, for example, must
// not look like a resource without objects.
func (s *copySource) reportUnknown(opt *copying.Options) {
	for _, word := range opt.Resources {
		one := copying.Options{Resources: []string{word}}
		named := func(r remote.Resource) bool { return one.Picks(r.String()) }
		read := slices.ContainsFunc(s.Sections(), func(section remote.Section) bool { return named(section.Resource) })
		left := slices.ContainsFunc(s.leftOut, func(l remote.Skipped) bool { return one.Picks(l.Resource) })
		if !read && !left {
			s.leftOut = append(s.leftOut, remote.Skipped{Resource: word, Reason: "the source has no objects by this name (plurals with their group are meant: pods, deployments.apps)"})
		}
	}
}

// maxSpooled limits the bytes copied from a database.
const maxSpooled = 1 << 40

// read reads everything that may be copied into a file before anything is written: a database at one revision, a
// live cluster at one version of each resource.
func (o *copyOptions) read(ctx context.Context) (*copySource, error) {
	if o.from == "" {
		return o.readStore(ctx)
	}
	c, err := o.Client("--from-kubeconfig", o.from, o.fromContext)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	read := int64(0)
	p, show := remote.ShowProgress(o.ErrOut, c.Host())
	all, err := c.Collect(ctx, remote.Options{
		SkipForbidden: o.skipForbidden,
		Want:          func(r remote.Resource) bool { return o.opt.Picks(r.String()) },
		Count:         true,
		Progress: func(at remote.Progress) {
			read = at.Objects
			show(at)
		},
	})
	p.End()
	if err != nil {
		return nil, fmt.Errorf("--from-kubeconfig: %w", err)
	}
	return &copySource{Spool: all.Spool, name: c.Host(), leftOut: all.Skipped, objects: read}, nil
}

func (o *copyOptions) readStore(ctx context.Context) (*copySource, error) {
	spool, err := remote.NewSpool("", maxSpooled, 0)
	if err != nil {
		return nil, err
	}
	s := &copySource{Spool: spool, name: database.PublicURL(o.URL()), leftOut: []remote.Skipped{}}
	err = database.WithKeys(ctx, o.Encryption, o.Log(), func(keys sqlstore.Sealer, _ bool) error {
		return o.With(ctx, database.AsIs, "nothing was copied", func(d sqlstore.Driver) error {
			p, err := o.Rows(ctx, d, "reading the database", false)
			if err != nil {
				return err
			}
			defer p.End()
			r := &rowReader{spool: spool, picks: o.opt.Picks, open: func(row *sqlstore.Row) error { return database.Decrypt(ctx, keys, row) }, progress: p.Show}
			err = r.run(ctx, d)
			s.objects = r.objects
			return database.ExplainCompacted(err)
		})
	})
	if err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return s, nil
}

// rowReader copies rows into a Spool.
type rowReader struct {
	spool    *remote.Spool
	picks    func(resource string) bool
	open     func(*sqlstore.Row) error
	progress func(int64)
	resource string
	section  *remote.SectionWriter
	rows     int64 // that were read
	objects  int64 // among them, that may be copied
}

func (r *rowReader) run(ctx context.Context, d sqlstore.Driver) error {
	window, release, err := upkeep.Hold(ctx, d)
	if err != nil {
		return err
	}
	defer release()
	if err := upkeep.Snapshot(ctx, d, window.Head, r.page); err != nil {
		return err
	}
	return r.end()
}

func (r *rowReader) page(rows []sqlstore.Row) error {
	for i := range rows {
		row := &rows[i]
		r.rows++
		r.progress(r.rows)
		if strings.HasPrefix(row.Key.Resource, "~") || !r.picks(row.Key.Resource) { // "~": a taken address or port, which follows from its object
			continue
		}
		if row.Damaged == nil { // else any of its bytes may be wrong
			if err := r.open(row); err != nil {
				return err
			}
		}
		if row.Damaged != nil || !json.Valid(row.Value) {
			return fmt.Errorf("%s is damaged: `rowlock store verify` and `rowlock store repair` help", row.Key)
		}
		if row.Key.Resource != r.resource {
			if err := r.end(); err != nil {
				return err
			}
			name, group, _ := strings.Cut(row.Key.Resource, ".")
			r.resource, r.section = row.Key.Resource, r.spool.Open(remote.Resource{Group: group, Name: name})
		}
		if err := r.section.Put(remote.Object{JSON: row.Value}); err != nil {
			return err
		}
		r.objects++
	}
	return nil
}

// end closes the open section.
func (r *rowReader) end() error {
	if r.section == nil {
		return nil
	}
	return r.section.Close(remote.Listed{})
}
