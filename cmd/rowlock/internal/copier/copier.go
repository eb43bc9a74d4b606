// Package copier is the command that copies objects into another cluster through its API.
package copier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/progress"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
	"github.com/rowlock/rowlock/server/convert"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// copyOptions are the flags of copy.
type copyOptions struct {
	database.Options
	remote.Flags
	to, toContext     string
	from, fromContext string
	selector          string
	skipForbidden     bool
	opt               copying.Options
}

func Command() *cobra.Command {
	o := &copyOptions{}
	cmd := &cobra.Command{
		Use:   "copy --to-kubeconfig FILE [--store URL | --from-kubeconfig FILE]",
		Short: "Copy objects into another cluster through its API",
		Long: `Copy objects from a database, or from a live cluster, into another cluster through its
API.

The copies have new UIDs, and owner references use these. The command writes
namespaces and definitions first, webhooks and policies last. It leaves an object that
exists and is equal unchanged, so a second run continues the first. Fields that other
managers own with other values are conflicts: it reports them, and overwrites them with
--overwrite. The same holds for the status, which --with-status writes.

With --dry-run the target checks everything, admission included, and stores nothing.
The command fails if it could not copy an object.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.ErrOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to-kubeconfig", "", "kubeconfig of the cluster to write to (required)")
	f.StringVar(&o.toContext, "to-context", "", "context of --to-kubeconfig (default: the current one)")
	f.StringVar(&o.Store, "store", "", "database to read (default sqlite:<data-dir>/rowlock.db)")
	f.StringVar(&o.DataDir, "data-dir", "./rowlock-data", "folder of the server whose database is read")
	f.StringVar(&o.Encryption, database.EncryptionFlag, "", "encryption configuration of the servers, to decrypt values in the database")
	f.StringVar(&o.from, "from-kubeconfig", "", "kubeconfig of a live cluster to read, instead of a database")
	f.StringVar(&o.fromContext, "from-context", "", "context of --from-kubeconfig (default: the current one)")
	f.BoolVar(&o.skipForbidden, "skip-forbidden", false, "skip, and report, resources that the user of --from-kubeconfig may not list")
	f.StringSliceVarP(&o.opt.Namespaces, "namespace", "n", nil, "only these namespaces, and no cluster-scoped objects; may be repeated")
	f.StringVarP(&o.selector, "selector", "l", "", "only objects with these labels")
	f.StringSliceVar(&o.opt.Resources, "resources", nil, "only these resources: pods, deployments.apps, *.example.com; may be repeated")
	f.StringSliceVar(&o.opt.Exclude, "exclude", nil, "all but these resources; may be repeated")
	f.BoolVar(&o.opt.Overwrite, "overwrite", false, "overwrite fields that other managers own with other values")
	f.BoolVar(&o.opt.WithStatus, "with-status", false, "write the status, too, where it is a subresource")
	f.BoolVar(&o.opt.Events, "events", false, "copy events, too")
	f.BoolVar(&o.opt.DryRun, "dry-run", false, "let the target check everything as a dry run, and print the plan")
	f.IntVar(&o.opt.Workers, "workers", 8, "objects that are written at a time")
	f.StringVar(&o.Output, "output", "table", "output format: table or json")
	o.Flags.AddTo(f)
	return cmd
}

func (o *copyOptions) check(cmd *cobra.Command) error {
	var err error
	switch {
	case o.to == "":
		return errors.New("--to-kubeconfig is needed: the cluster to write to")
	case o.from != "" && (cmd.Flags().Changed("store") || cmd.Flags().Changed("data-dir")):
		return errors.New("--from-kubeconfig: a cluster and a database (--store, --data-dir) cannot both be the source")
	case o.opt.Workers < 1 || o.opt.Workers > 100:
		return fmt.Errorf("--workers %d: want 1 to 100", o.opt.Workers)
	case o.Output != "table" && o.Output != "json":
		return fmt.Errorf("--output %q: want table or json", o.Output)
	}
	ofDatabase, ofCluster := []string{database.EncryptionFlag}, []string{"from-context", "skip-forbidden"}
	for _, flag := range ofDatabase {
		if o.from != "" && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is about a database, and --from-kubeconfig is the source", flag)
		}
	}
	for _, flag := range ofCluster {
		if o.from == "" && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is about a live cluster, and --from-kubeconfig is not given", flag)
		}
	}
	for flag, names := range map[string][]string{"namespace": o.opt.Namespaces, "resources": o.opt.Resources, "exclude": o.opt.Exclude} {
		if slices.Contains(names, "") {
			return fmt.Errorf("--%s %q: a name is empty", flag, strings.Join(names, ","))
		}
	}
	if o.selector != "" {
		if o.opt.Selector, err = labels.Parse(o.selector); err != nil {
			return fmt.Errorf("--selector: %w", err)
		}
	}
	return nil
}

// copyAnswer is the result for --output json.
type copyAnswer struct {
	Source string `json:"source"`
	Target string `json:"target"`
	*copying.Report
	Skipped []remote.Skipped `json:"leftOut"` // resources of the source that were not read
	Error   string           `json:"error,omitempty"`
}

func (o *copyOptions) run(ctx context.Context) error {
	to, err := o.Client("--to-kubeconfig", o.to, o.toContext)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.Discover(ctx); err != nil { // before hours are spent on reading
		return database.Explain(ctx, fmt.Errorf("--to-kubeconfig: %w", err), "nothing was copied")
	}
	from, err := o.read(ctx)
	if err != nil {
		return database.Explain(ctx, err, "nothing was copied")
	}
	from.reportUnknown(&o.opt)
	c := convert.New(builtin.Config{Feature: func(string) bool { return true }}.All())
	o.opt.Convert = func(ctx context.Context, object map[string]any, group, version string) (map[string]any, error) {
		return c.Convert(ctx, object, schema.GroupVersion{Group: group, Version: version})
	}
	p := progress.New(o.ErrOut, "copying", "objects")
	p.Total(from.objects)
	o.opt.Progress = p.Show
	report, err := copying.Run(ctx, to, copying.FromSpool(from.Spool), o.opt)
	p.End()
	err = errors.Join(err, from.Close())
	if ctx.Err() != nil {
		err = errors.New("interrupted: copied objects stay, and the same command continues")
	}
	a := copyAnswer{Source: from.name, Target: to.Host(), Report: report, Skipped: from.leftOut}
	if err != nil {
		a.Error = err.Error()
	}
	if e := o.Answer(o.Out, a, a.table); e != nil {
		return errors.Join(err, e)
	}
	if bad := report.Total.Failed + report.Total.Conflicts; err == nil && bad > 0 {
		err = fmt.Errorf("%d of the objects were not copied: %d conflicts, %d failed", bad, report.Total.Conflicts, report.Total.Failed)
	}
	return err
}

func (a copyAnswer) table(w io.Writer) {
	safe, verb := display.Safe, "COPIED"
	if a.DryRun {
		verb = "WOULD COPY"
	}
	fmt.Fprintf(w, "%s\tfrom %s to %s\n\n", verb, safe(a.Source), safe(a.Target))
	fmt.Fprintf(w, "RESOURCE\tCREATED\tCHANGED\tUNCHANGED\tSKIPPED\tCONFLICTS\tFAILED\n")
	for _, t := range append(a.Resources, a.Total) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", safe(t.Resource), t.Created, t.Changed, t.Unchanged, t.Skipped, t.Conflicts, t.Failed)
	}
	if len(a.Details)+len(a.Skipped) == 0 {
		return
	}
	fmt.Fprintf(w, "\nOUTCOME\tRESOURCE\tNAMESPACE\tNAME\tREASON\n")
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return safe(s)
	}
	for _, l := range a.Skipped {
		fmt.Fprintf(w, "left out\t%s\t-\t-\t%s\n", safe(l.Resource), safe(l.Reason))
	}
	kept := map[[2]string]int{} // skipped objects of a resource, by reason: a line for many
	for _, d := range a.Details {
		if d.Outcome == copying.Skipped {
			kept[[2]string{d.Resource, d.Reason}]++
		}
	}
	for _, d := range a.Details {
		alike := [2]string{d.Resource, d.Reason}
		if n := kept[alike]; d.Outcome == copying.Skipped && n != 1 {
			if kept[alike] = 0; n > 1 {
				fmt.Fprintf(w, "%s\t%s\t-\t(%d objects)\t%s\n", d.Outcome, safe(d.Resource), n, dash(d.Reason))
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.Outcome, safe(d.Resource), dash(d.Namespace), safe(d.Name), dash(d.Reason))
	}
	if a.Unnamed > 0 {
		fmt.Fprintf(w, "...\t%d more\t\t\t\n", a.Unnamed)
	}
}
