// Package exporter holds the commands that write objects to files and to the stores of other API servers.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// maxProblems limits the undecodable rows that the result names.
const maxProblems = 20

// Command is export: YAML and SQL for people and programs, and the stores of other API servers.
func Command() *cobra.Command {
	o := &database.Options{}
	cmd := FormsCommand(o)
	o.AddTo(cmd)
	cmd.AddCommand(exportEtcdCommand(o), exportKineCommand(o))
	return cmd
}

// storeExport are the flags of an export to the store of another API server.
type storeExport struct {
	*database.Options
	prefix      string
	revision    int64
	dryRun      bool
	skipDamaged bool
}

func (l *storeExport) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.prefix, "prefix", transfer.DefaultPrefix, "where the other API server keeps its keys (its --etcd-prefix)")
	f.Int64Var(&l.revision, "revision", 0, "everything as it was at this revision (default: now)")
	f.BoolVar(&l.dryRun, "dry-run", false, "read and translate everything, and write nothing")
	f.BoolVar(&l.skipDamaged, "skip-damaged", false, "skip objects that cannot be read, instead of failing")
}

func exportEtcdCommand(o *database.Options) *cobra.Command {
	l := &storeExport{Options: o}
	var overwrite cli.Overwrite
	cmd := &cobra.Command{
		Use:   "etcd-snapshot FILE",
		Short: "Export all objects to a snapshot file that etcd restores",
		Long: `Export all objects at one revision to a snapshot file of etcd 3.5, with its hash.
etcdutl snapshot restore creates a member from it, and a stock kube-apiserver serves its
content: UIDs, revisions and managed fields are preserved, and later revisions are
higher. Clients that watched here list again there. The values are not encrypted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !l.dryRun {
				if err := overwrite.AllowsReplacing(args[0]); err != nil {
					return err
				}
			}
			return l.run(cmd.Context(), "etcd snapshot "+args[0], func(context.Context) (foreign.Sink, error) {
				return etcd.CreateSnapshot(args[0], time.Now())
			})
		},
	}
	l.addTo(cmd)
	overwrite.AddTo(cmd.Flags())
	return cmd
}

func exportKineCommand(o *database.Options) *cobra.Command {
	l := &storeExport{Options: o}
	cmd := &cobra.Command{
		Use:   "kine URL",
		Short: "Export all objects to a database of kine, for k3s or a kube-apiserver with kine",
		Long: `Export all objects at one revision to the table of kine in an empty database:
sqlite:FILE (which must not exist), postgres://USER@HOST/DATABASE, or
mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE, as in kine's own flags. UIDs, revisions
and managed fields are preserved, and later revisions are higher. Clients that watched
here list again there. The values are not encrypted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := kine.Describe(args[0])
			if err != nil {
				return err
			}
			return l.run(cmd.Context(), target, func(ctx context.Context) (foreign.Sink, error) { return kine.Create(ctx, args[0]) })
		},
	}
	l.addTo(cmd)
	return cmd
}

// storeAnswer is the result of an export to the store of another API server.
type storeAnswer struct {
	Target      string                   `json:"target"`
	DryRun      bool                     `json:"dryRun"`
	Revision    int64                    `json:"revision"`
	Objects     int64                    `json:"objects"`
	Decrypted   int64                    `json:"decrypted"` // values that are encrypted here
	Claims      int64                    `json:"claims"`    // addresses and ports that are held, which the other server finds out by itself
	Resources   []database.ResourceCount `json:"resources"`
	Undecodable int64                    `json:"undecodable"`
	Problems    []transfer.Problem       `json:"problems"` // the first maxProblems undecodable values
	counts      map[string]*database.ResourceCount
}

// run writes the objects of the database to the sink that open makes.
func (l *storeExport) run(ctx context.Context, target string, open func(context.Context) (foreign.Sink, error)) error {
	if l.revision < 0 {
		return fmt.Errorf("--revision %d: want a revision above 0", l.revision)
	}
	a := &storeAnswer{Target: target, DryRun: l.dryRun, Problems: []transfer.Problem{}, counts: map[string]*database.ResourceCount{}}
	err := database.WithKeys(ctx, l.Encryption, l.Log(), func(keys sqlstore.Sealer, _ bool) error {
		return l.With(ctx, database.AsIs, "nothing was exported", func(d sqlstore.Driver) error {
			sink, err := foreign.Sink(foreign.Discard{}), error(nil)
			if !l.dryRun {
				sink, err = open(ctx)
			}
			if err != nil {
				return err
			}
			return errors.Join(l.write(ctx, d, keys, sink, a), sink.Abort())
		})
	})
	if err != nil {
		return database.ExplainCompacted(err)
	}
	for _, name := range slices.Sorted(maps.Keys(a.counts)) {
		a.Resources = append(a.Resources, *a.counts[name])
	}
	if err := l.Answer(l.Out, a, a.table); err != nil {
		return err
	}
	if a.Undecodable > 0 && !l.skipDamaged {
		return fmt.Errorf("%d objects cannot be read, and nothing was written: repair them (rowlock store repair), or leave them out (--skip-damaged)", a.Undecodable)
	}
	if !l.dryRun {
		fmt.Fprintf(l.ErrOut, "%s holds the Secrets as they are: nothing in it is encrypted\n", target)
	}
	return nil
}

// write reads everything, and commits unless a row is damaged.
func (l *storeExport) write(ctx context.Context, d sqlstore.Driver, keys sqlstore.Sealer, sink foreign.Sink, a *storeAnswer) error {
	window, release, err := upkeep.Hold(ctx, d)
	if err != nil {
		return err
	}
	defer release()
	if a.Revision = l.revision; a.Revision == 0 {
		a.Revision = window.Head
	}
	w := transfer.NewWriter(l.prefix)
	p, err := l.Rows(ctx, d, "exporting", false)
	if err != nil {
		return err
	}
	defer p.End()
	err = upkeep.Snapshot(ctx, d, a.Revision, func(rows []sqlstore.Row) error {
		for i := range rows {
			if err := a.put(ctx, w, keys, sink, &rows[i]); err != nil {
				return err
			}
		}
		p.Show(a.Objects)
		return nil
	})
	if err != nil || a.Undecodable > 0 && !l.skipDamaged {
		return err
	}
	return sink.Commit(ctx, max(a.Revision, 1))
}

// put translates one row and counts it.
func (a *storeAnswer) put(ctx context.Context, w *transfer.Writer, keys sqlstore.Sealer, sink foreign.Sink, row *sqlstore.Row) error {
	_, _, _, sealed := sqlstore.SealedBy(row.Value)
	if sealed {
		if err := database.Decrypt(ctx, keys, row); err != nil {
			return err
		}
	}
	e, ok, err := w.Entry(*row)
	if err == nil && ok {
		err = sink.Put(ctx, e)
	}
	var keyed *foreign.KeyError
	switch {
	case errors.As(err, &keyed):
		if a.Undecodable++; len(a.Problems) < maxProblems {
			a.Problems = append(a.Problems, transfer.Problem{Key: foreign.Shown(keyed.Key), Reason: keyed.Why})
		}
		return nil
	case err != nil:
		return err
	case !ok:
		a.Claims++
		return nil
	}
	if sealed {
		a.Decrypted++
	}
	c := a.counts[row.Key.Resource]
	if c == nil {
		c = &database.ResourceCount{Resource: row.Key.Resource}
		a.counts[row.Key.Resource] = c
	}
	c.Objects, c.Bytes, a.Objects = c.Objects+1, c.Bytes+int64(len(e.Value)), a.Objects+1
	return nil
}

func (a *storeAnswer) table(w io.Writer) {
	verb := "EXPORTED TO"
	if a.DryRun || a.Undecodable > 0 {
		verb = "READ FOR"
	}
	fmt.Fprintf(w, "%s\t%s\n", verb, a.Target)
	fmt.Fprintf(w, "AT REVISION\t%d\n", a.Revision)
	fmt.Fprintf(w, "OBJECTS\t%d, of them decrypted %d\n", a.Objects, a.Decrypted)
	fmt.Fprintf(w, "LEFT OUT\t%d claims of addresses and ports, which the other server recreates\n", a.Claims)
	if a.Undecodable > 0 {
		fmt.Fprintf(w, "DAMAGED\t%d\n", a.Undecodable)
	}
	for _, p := range a.Problems {
		fmt.Fprintf(w, "\t%q: %s\n", p.Key, display.Safe(p.Reason))
	}
	fmt.Fprintf(w, "\nRESOURCE\tOBJECTS\tBYTES\n")
	for _, r := range a.Resources {
		fmt.Fprintf(w, "%s\t%d\t%s\n", display.Safe(r.Resource), r.Objects, cli.Size(r.Bytes))
	}
}

type exportAnswer struct {
	File     string `json:"file"`
	Format   string `json:"format"`
	Revision int64  `json:"revision"`
	Objects  int64  `json:"objects"`
	Damaged  int64  `json:"damaged"` // of these; the export lacks their contents
}

func FormsCommand(o *database.Options) *cobra.Command {
	var sql, yaml bool
	var opt archive.ExportOptions
	var overwrite cli.Overwrite
	cmd := &cobra.Command{
		Use:   "export (--yaml | --sql) [FILE]",
		Short: "Export objects at a revision, for people and other programs",
		Long: `Export objects at any revision in the history to a file or to standard output.

With --yaml they are documents for kubectl apply, without fields that a server sets
(UID, resource version, managed fields); namespaces and definitions of custom
resources are first. With --sql they are a table for any SQL database.`,
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
				if err := overwrite.AllowsReplacing(args[0]); err != nil {
					return err
				}
			}
			return database.WithKeys(cmd.Context(), o.Encryption, o.Log(), func(keys sqlstore.Sealer, _ bool) error {
				opt.Open = func(row *sqlstore.Row) error { return database.Decrypt(cmd.Context(), keys, row) }
				return o.With(cmd.Context(), database.AsIs, "nothing was changed", func(d sqlstore.Driver) error {
					return export(cmd.Context(), o, d, args, opt)
				})
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&sql, "sql", false, "as SQL")
	f.BoolVar(&yaml, "yaml", false, "as YAML")
	f.Int64Var(&opt.Revision, "revision", 0, "as it was at this revision (default: now)")
	f.StringVar(&opt.Resource, "resource", "", "only this resource: pods, deployments.apps")
	f.StringVarP(&opt.Namespace, "namespace", "n", "", "only this namespace")
	overwrite.AddTo(f)
	f.BoolVar(&opt.AsStored, "as-stored", false, "YAML with all that is stored, and the resource version")
	return cmd
}

func export(ctx context.Context, o *database.Options, d sqlstore.Driver, args []string, opt archive.ExportOptions) error {
	a := exportAnswer{File: "-", Format: string(opt.Format)}
	out, tell := o.Out, o.ErrOut
	p, err := o.Rows(ctx, d, "exporting", false)
	if err != nil {
		return err
	}
	opt.Progress = p.Show
	write := func() (archive.Exported, error) { return archive.Export(ctx, d, out, opt) }
	if len(args) == 1 && args[0] != "-" {
		a.File, tell = args[0], o.Out
		write = func() (archive.Exported, error) { return archive.ExportFile(ctx, d, args[0], opt) }
	}
	done, err := write()
	p.End()
	if err != nil {
		return database.ExplainCompacted(err)
	}
	a.Revision, a.Objects, a.Damaged = done.Revision, done.Objects, done.Damaged
	err = o.Answer(tell, a, func(w io.Writer) {
		fmt.Fprintf(w, "exported %d objects at revision %d\n", a.Objects, a.Revision)
	})
	if err == nil && a.Damaged > 0 {
		err = fmt.Errorf("%d objects cannot be read, and their contents are missing in the export: repair them (rowlock store repair)", a.Damaged)
	}
	return err
}
