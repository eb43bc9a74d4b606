package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/window"
)

// atOptions are the flags of at.
type atOptions struct {
	options
	program string
}

func atCommand() *cobra.Command {
	o := &atOptions{}
	cmd := &cobra.Command{
		Use:   "at TIME [-- KUBECTL ARGUMENTS]",
		Short: "Run a kubectl command on a past state of the cluster",
		Long: `Run a kubectl command on the state of the cluster at a time. Lists and single objects
are those of then. Without a command, start a shell in which every kubectl command
reads that state.

A local server, at 127.0.0.1 and behind a token, forwards the reads with your
credentials. The exit code is that of kubectl. Logs, exec, port forwarding, watches and
writes are refused.

Times are ` + moments.Forms + `.`,
		Example: `  rowlock at 14:05 -- get pods -n shop
  rowlock at 2h ago -- get deploy/web -o yaml
  rowlock at 1234 --program k9s -- --readonly`,
		RunE: func(cmd *cobra.Command, args []string) error {
			when, command := args, []string(nil)
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				when, command = args[:n], args[n:]
			}
			return o.run(cmd, when, command)
		},
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&o.program, "program", "kubectl", "program to run")
	return cmd
}

func (o *atOptions) run(cmd *cobra.Command, when, command []string) error {
	if len(when) == 0 {
		return errors.New("TIME is missing: want " + moments.Forms)
	}
	if !signal.Ignored(syscall.SIGHUP) { // a terminal that is closed leaves no token behind
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
		defer stop()
		cmd.SetContext(ctx)
	}
	m, err := o.moment("TIME", strings.Join(when, " "))
	if err != nil && len(when) > 1 && cmd.ArgsLenAtDash() < 0 {
		return fmt.Errorf("%w; arguments of %s come after --: want %q", err, o.program, cmd.UseLine())
	}
	if err != nil {
		return err
	}
	shell := len(command) == 0
	if shell && !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("a command is missing behind --, and a shell needs a terminal")
	}
	c, err := o.cluster.Connect()
	if err != nil {
		return err
	}
	revision, err := revisions.At(cmd.Context(), c, m)
	if err != nil {
		return err
	}
	moment := m.Describe(o.now)
	fmt.Fprintf(cmd.ErrOrStderr(), "# %s, read only\n", describe(moment, m, revision))
	w, err := window.Open(window.Config{Client: c, Revision: revision, Moment: moment})
	if err != nil {
		return err
	}
	program := o.program
	switch {
	case shell:
		program = "/bin/sh"
		if own := os.Getenv("SHELL"); own != "" {
			program = own
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "# KUBECONFIG=%s sees the past until this shell ends: exit, or Ctrl-D.\n", w.Kubeconfig)
	case command[0] == program:
		command = command[1:]
	}
	err = o.child(cmd, w.Environment(os.Environ(), moment), program, command)
	if closed := w.Close(); err == nil {
		err = closed
	}
	return err
}

// describe names the revision that is shown, and the moment that it was found by.
func describe(moment string, m moments.Moment, revision int64) string {
	if m.Revision > 0 {
		return moment
	}
	return fmt.Sprintf("%s: revision %d", moment, revision)
}

// child runs a program and returns its exit code as an error.
func (o *atOptions) child(cmd *cobra.Command, env []string, program string, args []string) error {
	// The terminal sends its signals to the child, too: it is not killed, and decides itself.
	run := exec.CommandContext(context.WithoutCancel(cmd.Context()), program, args...)
	run.Env, run.Stdin, run.Stdout, run.Stderr = env, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := run.Start(); err != nil {
		return fmt.Errorf("--program: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	err := wait(cmd.Context(), run.Process, ended)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.ExitCode(128 + int(status.Signal()))
	}
	return cli.ExitCode(exit.ExitCode())
}

// childTimeout is the time between SIGTERM and SIGKILL for a child.
const childTimeout = 10 * time.Second

func wait(ctx context.Context, process *os.Process, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case err := <-ended:
		return err
	case <-time.After(childTimeout):
		_ = process.Kill() // likewise
		return <-ended
	}
}
