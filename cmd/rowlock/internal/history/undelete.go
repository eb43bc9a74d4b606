package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/plan"
)

// planOptions are the flags that undelete and restore share. Both make a plan, try it on the server, show it, and
// carry it out after confirmation.
type planOptions struct {
	options
	dryRun, yes bool
	in          io.Reader
	out         io.Writer
}

func (o *planOptions) addTo(cmd *cobra.Command) {
	o.options.addTo(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "show the plan, tried on the server without effect, and end")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
}

// execute tries a plan on the server, shows it, asks for confirmation and carries it out. The exit code is 1 if a
// step fails.
func (o *planOptions) execute(ctx context.Context, c *cluster.Client, p *plan.Plan) error {
	s, err := o.screen(o.out)
	if err != nil {
		return err
	}
	fits, err := p.DryRun(ctx, c)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(o.out, p.Text(s)); err != nil {
		return err
	}
	if o.dryRun || len(p.Steps) == 0 {
		if !fits {
			return cli.ExitCode(1)
		}
		return nil
	}
	if err := o.confirm(); err != nil {
		return err
	}
	fmt.Fprintln(o.out)
	done, err := p.Apply(ctx, c, func(step *plan.Step) { _, _ = io.WriteString(o.out, step.Line(s)) })
	_, _ = io.WriteString(o.out, p.Report()) // the work is done even if the report cannot be written
	if err != nil {
		return err
	}
	if !done {
		return cli.ExitCode(1)
	}
	return nil
}

// confirm asks for confirmation if standard input is a terminal.
func (o *planOptions) confirm() error {
	if o.yes {
		return nil
	}
	if f, ok := o.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return errors.New("nothing was changed: standard input is not a terminal, so the plan cannot be confirmed there: add --yes to carry it out, or --dry-run to see it only")
	}
	fmt.Fprint(o.out, "Do it? [y/N] ")
	line, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed: the answer was not yes")
	}
	return nil
}

// undeleteOptions are the flags of undelete.
type undeleteOptions struct {
	planOptions
	dependents, status bool
}

func undeleteCommand() *cobra.Command {
	o := &undeleteOptions{}
	cmd := &cobra.Command{
		Use:   "undelete TYPE/NAME...",
		Short: "Restore deleted objects, optionally with their dependents",
		Long: `Create deleted objects again in their state before the deletion, with the rights of
the user. They get new UIDs, and owner references among them are updated.

The command tries the plan on the server as a dry run, shows it, and asks for
confirmation. It does not restore the status, which controllers compute, unless
--with-status is given.

The exit code is 1 if a step failed.`,
		Example: `  rowlock undelete deploy/web --with-dependents
  rowlock undelete cm/settings -n shop --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.in, o.out = cmd.InOrStdin(), cmd.OutOrStdout()
			return o.run(cmd.Context(), args)
		},
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.dependents, "with-dependents", false, "also their dependents, directly and indirectly")
	f.BoolVar(&o.status, "with-status", false, "and their status, where it is a subresource")
	return cmd
}

func (o *undeleteOptions) run(ctx context.Context, args []string) error {
	c, all, targets, err := o.targets(ctx, args)
	if err != nil {
		return err
	}
	u := &plan.Undelete{Finder: plan.Finder{Client: c, Resources: all}, Dependents: o.dependents, Status: o.status}
	p := plan.New()
	for _, t := range targets {
		if err := u.Plan(ctx, p, t); err != nil {
			return err
		}
	}
	return o.execute(ctx, c, p)
}
