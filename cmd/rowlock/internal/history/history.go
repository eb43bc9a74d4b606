// Package history holds the commands that show the history of objects and restore them. They call the API with the
// rights of a kubeconfig's user and know nothing of databases.
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

// Commands are those that look at the past of a cluster, or bring it back. They ask
// the API with the rights of a kubeconfig's user, and know nothing of databases.
func Commands() []*cobra.Command {
	return []*cobra.Command{historyCommand(), diffCommand(), blameCommand(), atCommand(), undeleteCommand(), restoreCommand()}
}

// PluginCommand is what kubectl calls for `kubectl rowlock`.
func PluginCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           program.HistoryPlugin,
		Short:         "Look at the past of a cluster that rowlock serves, and bring it back",
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

// CompletionCommand answers what kubectl asks when a command line of the plugin is to be
// completed: arguments in, suggestions out.
func CompletionCommand() *cobra.Command {
	root := PluginCommand()
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	return root
}

// options are what the commands about the past share.
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

// moment reads a flag that is a moment; "" is none.
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

// targets are the objects that arguments name, which are one at least.
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

// stateAt is what an object was at a moment; nil where it was not there, but the server
// knows that. A server that does not keep as much is an error.
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
