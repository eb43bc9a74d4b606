package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/blame"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// blameOptions are the flags of blame.
type blameOptions struct {
	options
	at, output string
	most       int
	form       display.Form
}

func blameCommand() *cobra.Command {
	o := &blameOptions{}
	cmd := &cobra.Command{
		Use:   "blame TYPE/NAME",
		Short: "Show who last set each field of an object, and when",
		Long: `Show an object as YAML and, before each field, who last set its value, when, and in
which revision (#). The command reads the revisions of the object until all fields are
explained or the history ends; for older fields (<=) it uses managedFields.

Times are ` + moments.Forms + `.`,
		Example: `  rowlock blame deploy/web
  rowlock blame deploy/web --at 14:05`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&o.at, "at", "", "the object as it was at this moment (default: the newest)")
	f.IntVar(&o.most, "revisions", 1000, "revisions to go back at most")
	f.StringVarP(&o.output, "output", "o", "", "json: a list of fields")
	f.BoolVar(&o.form.Secrets, "show-secrets", false, "show the data of Secrets; they are hidden otherwise")
	return cmd
}

func (o *blameOptions) run(ctx context.Context, out, notes io.Writer, args []string) error {
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("--output %q: want json", o.output)
	}
	if o.most < 1 {
		return fmt.Errorf("--revisions %d: want 1 or more", o.most)
	}
	at, err := o.moment("--at", o.at)
	if err != nil {
		return err
	}
	c, _, targets, err := o.targets(ctx, args)
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return errors.New("name one object: TYPE/NAME")
	}
	trace, err := o.trace(ctx, c, targets[0], at)
	if err != nil {
		return err
	}
	origins := trace.Origins()
	if o.output == "json" {
		list := []blame.Origin{}
		for _, p := range slices.Sorted(maps.Keys(origins)) {
			list = append(list, origins[p])
		}
		e := json.NewEncoder(out)
		e.SetIndent("", "    ")
		return e.Encode(list)
	}
	return o.draw(out, notes, trace, origins)
}

// trace reads revisions, newest first. Of a deleted object it shows the last state.
func (o *blameOptions) trace(ctx context.Context, c *cluster.Client, t cluster.Target, at moments.Moment) (*blame.Tracer, error) {
	trace := &blame.Tracer{}
	// Small pages: few revisions explain most objects.
	q := revisions.Query{Until: at, Most: o.most, Content: true, PageSize: 25}
	_, err := revisions.List(ctx, c, t, q, func(r *revisions.Revision) (bool, error) {
		if trace.Object == nil && r.Deleted() {
			return true, nil
		}
		return trace.Add(r)
	})
	if err == nil && trace.Object == nil {
		err = fmt.Errorf("%s: no state of it is kept, then or before", t.Where())
	}
	return trace, err
}

func (o *blameOptions) draw(out, notes io.Writer, trace *blame.Tracer, origins map[string]blame.Origin) error {
	s, err := o.screen(out)
	if err != nil {
		return err
	}
	text, err := o.form.YAML(trace.Object)
	if err != nil {
		return err
	}
	drawn, err := blame.Render(s, o.now, text, origins)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, drawn); err != nil {
		return err
	}
	oldest, seen := trace.Oldest()
	older := 0
	for _, origin := range origins {
		if origin.Before {
			older++
		}
	}
	if older > 0 {
		fmt.Fprintf(notes, "%d of %d fields are older than the %d revisions that were looked at, back to %s (revision %s): <= marks them, as managedFields tell.\n",
			older, len(origins), seen, oldest.WrittenAt.In(o.now.Location()).Format("2006-01-02 15:04:05"), display.Safe(oldest.Revision))
	}
	return nil
}
