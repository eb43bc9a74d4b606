package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/timeline"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/webpage"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// historyOptions are the flags of history.
type historyOptions struct {
	options
	since, until string
	limit        int
	output, html string
	form         display.Form
	query        revisions.Query
	overwrite    cli.Overwrite
}

func historyCommand() *cobra.Command {
	o := &historyOptions{}
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME...",
		Short: "Show the history of objects: times, writers and changes",
		Long: `Show the history of objects as a timeline: the time of each write, its manager and
user, and the changed fields. Deleted objects have a history too.

--html FILE writes it as one page that needs no server and no network, with the
differences between any two revisions. Types without names then select all of their
objects in the namespace, and no arguments all objects of the namespace.

Times are ` + moments.Forms + `.`,
		Example: `  rowlock history deploy/web
  rowlock history deploy/web cm/settings --since 2h
  rowlock history deploy,cm -n shop --html shop.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "show revisions written at or after this moment")
	f.StringVar(&o.until, "until", "", "show revisions written at or before this moment")
	f.IntVar(&o.limit, "limit", 50, "writes of one object at most, the newest ones; 0: all that is kept")
	f.StringVarP(&o.output, "output", "o", "", "json, yaml, or wide: a row for each write, with all that is known")
	f.StringVar(&o.html, "html", "", "file to write a page to")
	o.overwrite.AddTo(f)
	f.BoolVar(&o.form.Secrets, "show-secrets", false, "with --html: show the data of Secrets, which are hidden otherwise")
	f.BoolVar(&o.form.ManagedFields, "show-managed-fields", false, "with --html: show managedFields")
	return cmd
}

func (o *historyOptions) run(ctx context.Context, out io.Writer, args []string) error {
	var err error
	o.query.Most = o.limit
	if o.query.Since, err = o.moment("--since", o.since); err != nil {
		return err
	}
	if o.query.Until, err = o.moment("--until", o.until); err != nil {
		return err
	}
	switch {
	case o.limit < 0:
		return fmt.Errorf("--limit %d: want 0 or more", o.limit)
	case o.html != "" && o.output != "":
		return errors.New("--html and --output: want one of them")
	case o.html != "":
		if err := o.overwrite.AllowsReplacing(o.html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
		return o.page(ctx, out, args)
	}
	c, _, targets, err := o.targets(ctx, args)
	if err != nil {
		return err
	}
	switch o.output {
	case "":
		return o.draw(ctx, out, c, targets)
	case "wide":
		return o.print(ctx, &rowPrinter{w: newTable(out)}, c, targets)
	case "json", "yaml":
		return o.print(ctx, &listPrinter{out: bufio.NewWriter(out), yaml: o.output == "yaml"}, c, targets)
	}
	return fmt.Errorf("--output %q: want json, yaml or wide", o.output)
}

// each calls do for the revisions of one object, newest first, until do returns false. An object without revisions
// is an error.
func (o *historyOptions) each(ctx context.Context, c *cluster.Client, t cluster.Target, do func(*revisions.Revision) (bool, error)) (more bool, err error) {
	known := false
	more, err = revisions.List(ctx, c, t, o.query, func(r *revisions.Revision) (bool, error) {
		known = true
		return do(r)
	})
	if err == nil && !known && o.since == "" && o.until == "" {
		err = fmt.Errorf("%s: no state of it is kept, now or in the past", t.Where())
	}
	return more, err
}

// maxDrawn bounds the bytes of one object's revisions that are held for drawing: the drawing begins with the
// oldest revision, which arrives last.
const maxDrawn = 64 << 20

// collect returns the revisions of one object, newest first, up to maxDrawn bytes.
func (o *historyOptions) collect(ctx context.Context, c *cluster.Client, t cluster.Target) (list []revisions.Revision, more bool, err error) {
	held := 0
	more, err = o.each(ctx, c, t, func(r *revisions.Revision) (bool, error) {
		list = append(list, *r)
		held += r.Weight()
		return held < maxDrawn, nil
	})
	return list, more, err
}

func (o *historyOptions) draw(ctx context.Context, out io.Writer, c *cluster.Client, targets []cluster.Target) error {
	s, err := o.screen(out)
	if err != nil {
		return err
	}
	line := timeline.Options{Screen: s, Now: o.now, Fold: true}
	for i, t := range targets {
		list, more, err := o.collect(ctx, c, t)
		if err != nil {
			return err
		}
		text := line.Render(t.Where(), list, more)
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// page writes the page to a temporary file and renames it once it is complete.
func (o *historyOptions) page(ctx context.Context, out io.Writer, args []string) error {
	c, all, names, err := o.look(ctx, args)
	if err != nil {
		return err
	}
	p := webpage.New(webpage.Config{Now: o.now, Form: &o.form, Server: c.Base.Host, Version: program.Version})
	o.query.Content = true
	if err := p.Collect(ctx, c, all, names, o.query); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(o.html), ".rowlock-*.html")
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	defer os.Remove(f.Name()) // fails if the file was renamed
	err = p.Write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), o.html)
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s: %s\n", o.html, p.Summary())
	return err
}
