package history

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	options
	since, from, to string
	form            display.Form
}

func diffCommand() *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME...",
		Short: "Show the differences of objects between two points in time",
		Long: `Show the differences of objects between two points in time, as a unified diff of their YAML.
Without a time, show the changes of the last write.

The exit code is 0 if nothing changed, 1 if something did, and more for an error.

Times are ` + moments.Forms + `.`,
		Example: `  rowlock diff deploy/web --since 2h
  rowlock diff deploy/web --from 14:05 --to 14:30
  rowlock diff deploy/web --from 1234`,
		RunE: func(cmd *cobra.Command, args []string) error {
			different, err := o.run(cmd.Context(), cmd.OutOrStdout(), args)
			switch {
			case err != nil:
				fmt.Fprintln(cmd.ErrOrStderr(), "Error: "+cli.OneLine(err))
				return cli.ExitCode(2)
			case different:
				return cli.ExitCode(1)
			}
			return nil
		},
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "compare this moment with now")
	f.StringVar(&o.from, "from", "", "the earlier moment")
	f.StringVar(&o.to, "to", "", "the later moment (default: now)")
	f.BoolVar(&o.form.ManagedFields, "show-managed-fields", false, "show managedFields")
	f.BoolVar(&o.form.Secrets, "show-secrets", false, "show the data of Secrets; they are hidden otherwise")
	return cmd
}

func (o *diffOptions) run(ctx context.Context, out io.Writer, args []string) (different bool, err error) {
	if o.since != "" && (o.from != "" || o.to != "") {
		return false, errors.New("--since excludes --from and --to")
	}
	if o.to != "" && o.from == "" {
		return false, errors.New("--to: --from is missing")
	}
	from, err := o.moment("--since", o.since)
	if err == nil && o.from != "" {
		from, err = o.moment("--from", o.from)
	}
	if err != nil {
		return false, err
	}
	to, err := o.moment("--to", o.to)
	if err != nil {
		return false, err
	}
	s, err := o.screen(out)
	if err != nil {
		return false, err
	}
	c, _, targets, err := o.targets(ctx, args)
	if err != nil {
		return false, err
	}
	for _, t := range targets {
		var text string
		if from == (moments.Moment{}) {
			text, err = o.last(ctx, c, t)
		} else {
			text, err = o.between(ctx, c, t, from, to)
		}
		if err != nil {
			return false, err
		}
		different = different || text != ""
		if _, err := io.WriteString(out, s.Patch(text)); err != nil {
			return false, err
		}
	}
	return different, nil
}

// between compares two moments; the zero moment is now.
func (o *diffOptions) between(ctx context.Context, c *cluster.Client, t cluster.Target, from, to moments.Moment) (string, error) {
	if to == (moments.Moment{}) {
		to = moments.Moment{Time: o.now}
	}
	old, err := stateAt(ctx, c, t, from)
	if err != nil {
		return "", err
	}
	now, err := stateAt(ctx, c, t, to)
	if err != nil {
		return "", err
	}
	if old == nil && now == nil {
		return "", fmt.Errorf("%s: it was not there at either moment: %s; %s", t.Where(), from.Describe(o.now), to.Describe(o.now))
	}
	return o.compare(t, old, now, from.Describe(o.now), to.Describe(o.now))
}

// last compares the object before and after its newest write.
func (o *diffOptions) last(ctx context.Context, c *cluster.Client, t cluster.Target) (string, error) {
	var list []*revisions.Revision
	first := true // of the object's past, as far as is known
	_, err := revisions.List(ctx, c, t, revisions.Query{Most: 2, Content: true, PageSize: 2}, func(r *revisions.Revision) (bool, error) {
		first = r.Change == "create"
		if r.Deleted() {
			r = nil
		}
		list = append(list, r)
		return true, nil
	})
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", fmt.Errorf("%s: no state of it is kept, now or in the past", t.Where())
	case len(list) == 1 && !first:
		return "", fmt.Errorf("%s: the state before its last write is no longer kept", t.Where())
	case len(list) == 1:
		list = append(list, nil)
	}
	return o.compare(t, list[1], list[0], "before the last write", "after the last write")
}

func (o *diffOptions) compare(t cluster.Target, old, now *revisions.Revision, oldWhen, nowWhen string) (string, error) {
	oldName, oldText, err := o.side(t, old, oldWhen)
	if err != nil {
		return "", err
	}
	newName, newText, err := o.side(t, now, nowWhen)
	if err != nil {
		return "", err
	}
	return display.SafeLines(display.Diff(oldName, oldText, newName, newText)), nil
}

// side returns the name and the text of one side of a diff. The text is empty if the object did not exist.
func (o *diffOptions) side(t cluster.Target, r *revisions.Revision, when string) (name, text string, err error) {
	if r == nil {
		return fmt.Sprintf("%s\t%s (not there)", t, when), "", nil
	}
	obj, err := r.Decoded()
	if err != nil {
		return "", "", err
	}
	text, err = o.form.YAML(obj)
	at := r.WrittenAt.In(o.now.Location())
	return fmt.Sprintf("%s\t%s (revision %s of %s)", t, when, r.Revision, at.Format("2006-01-02 15:04:05 -0700")), text, err
}
