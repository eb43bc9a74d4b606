// Package history holds the commands that show the history of objects and restore them. They use only the API, with the
// rights of a kubeconfig's user.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/screen"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// Commands returns the commands that show the history of a cluster's objects, or restore them.
func Commands() []*cobra.Command {
	return []*cobra.Command{historyCommand(), diffCommand(), blameCommand(), atCommand(), undeleteCommand(), restoreCommand()}
}

// PluginCommand returns the command that kubectl runs for `kubectl rowlock`.
func PluginCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           program.HistoryPlugin,
		Short:         "Show and restore the past of the objects of a rowlock cluster",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl rowlock"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(Commands()...)
	root.AddCommand(cli.VersionCommand())
	return root
}

// CompletionCommand completes a command line of the plugin for kubectl: it takes the arguments and prints
// suggestions.
func CompletionCommand() *cobra.Command {
	root := PluginCommand()
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	return root
}

// options are the flags that all commands about history share.
type options struct {
	cluster cluster.Flags
	color   string
	now     time.Time
}

func (o *options) addTo(cmd *cobra.Command) {
	o.cluster.AddTo(cmd.Flags())
	cmd.Flags().StringVar(&o.color, "color", screen.Auto, "colours: auto (on a terminal), always or never")
	o.now = time.Now()
}

func (o *options) screen(out io.Writer) (screen.Screen, error) {
	return screen.Of(out, o.color, os.Getenv)
}

// moment parses a flag whose value is a moment; "" is none.
func (o *options) moment(flag, text string) (moments.Moment, error) {
	if text == "" {
		return moments.Moment{}, nil
	}
	m, err := moments.Parse(text, o.now)
	if err != nil {
		return m, fmt.Errorf("%s: %w", flag, err)
	}
	return m, nil
}

// look reads arguments, connects to the cluster and discovers its resources.
func (o *options) look(ctx context.Context, args []string) (c *cluster.Client, all *cluster.Resources, names cluster.Names, err error) {
	if names, err = cluster.ParseNames(args); err != nil {
		return nil, nil, names, err
	}
	if c, err = o.cluster.Connect(); err == nil {
		all, err = c.Discover(ctx)
	}
	return c, all, names, err
}

// targets returns the objects that the arguments name, at least one.
func (o *options) targets(ctx context.Context, args []string) (c *cluster.Client, all *cluster.Resources, targets []cluster.Target, err error) {
	c, all, names, err := o.look(ctx, args)
	if err == nil {
		targets, err = names.Targets(all, c.Namespace)
	}
	if err == nil && len(targets) == 0 {
		err = errors.New("name an object: TYPE/NAME")
	}
	return c, all, targets, err
}

// stateAt returns the state of an object at a moment; nil if it did not exist then. It is an error if the server's
// history does not reach that far.
func stateAt(ctx context.Context, c *cluster.Client, t cluster.Target, m moments.Moment) (*revisions.Revision, error) {
	r, err := revisions.Get(ctx, c, t, m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || r.Deleted() {
		return nil, err
	}
	return r, nil
}
