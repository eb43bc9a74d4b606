package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/plan"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// restoreOptions are the flags of restore.
type restoreOptions struct {
	planOptions
	to, labels                    string
	everywhere, prune, controlled bool
}

func restoreCommand() *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore [TYPE[,TYPE...] | TYPE/NAME...] --to TIME",
		Short: "Restore a namespace, or some objects, to a past state",
		Long: `Restore a namespace, or some of its objects, to the state at a time: create deleted
objects, change different ones, and with --prune delete objects that did not exist then.

The command tries the plan on the server as a dry run, shows it, and asks for
confirmation. Each write requires the state that the plan was made for: if an object
has changed since, the command reports a conflict and leaves it unchanged.

It omits objects that controllers create for their owners, events, leases and
endpoints, and never restores a status.

The exit code is 1 if a step failed.

Times are ` + moments.Forms + `.`,
		Example: `  rowlock restore -n shop --to 14:05
  rowlock restore deploy,cm -n shop --to 2h -l tier=front --dry-run
  rowlock restore deploy/web --to 1234 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.in, o.out = cmd.InOrStdin(), cmd.OutOrStdout()
			return o.run(cmd.Context(), args)
		},
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "the moment (required)")
	f.StringVarP(&o.labels, "selector", "l", "", "objects with these labels, then or now")
	f.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "in all namespaces")
	f.BoolVar(&o.prune, "prune", false, "delete objects that did not exist then")
	f.BoolVar(&o.controlled, "controlled", false, "include objects that controllers create")
	return cmd
}

func (o *restoreOptions) run(ctx context.Context, args []string) error {
	if o.to == "" {
		return errors.New("--to is missing: want " + moments.Forms)
	}
	m, err := o.moment("--to", o.to)
	if err != nil {
		return err
	}
	c, all, names, err := o.look(ctx, args)
	if err != nil {
		return err
	}
	r, err := o.restore(c, all, names)
	if err != nil {
		return err
	}
	if r.At, err = revisions.At(ctx, c, m); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	fmt.Fprintf(o.out, "To %s.\n\n", describe(m.Describe(o.now), m, r.At))
	p := plan.New()
	if err := r.Plan(ctx, p); err != nil {
		return err
	}
	return o.execute(ctx, c, p)
}

func (o *restoreOptions) restore(c *cluster.Client, all *cluster.Resources, names cluster.Names) (*plan.Restore, error) {
	r := &plan.Restore{
		Finder: plan.Finder{Client: c, Resources: all}, Namespace: c.Namespace, Named: names.IsSet(),
		Prune: o.prune, Controlled: o.controlled,
	}
	var err error
	if r.Targets, err = names.Targets(all, c.Namespace); err != nil {
		return nil, err
	}
	if r.Types, err = names.Types(all); err != nil {
		return nil, err
	}
	if len(r.Targets) > 0 && (o.labels != "" || o.everywhere) {
		return nil, errors.New("--selector and --all-namespaces go with types, not with names")
	}
	if o.labels != "" {
		if r.Labels, err = labels.Parse(o.labels); err != nil {
			return nil, fmt.Errorf("--selector: %w", err)
		}
	}
	if o.everywhere {
		r.Namespace = ""
	}
	if !names.IsSet() {
		r.Types = plan.Everything(all)
	}
	return r, nil
}
