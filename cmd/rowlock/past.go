package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/screen"
)

// historyPlugin is how kubectl finds the commands about the past: as a program of this
// name. historyCompletion is the one that it asks to complete their command lines.
const (
	historyPlugin     = "kubectl-rowlock"
	historyCompletion = "kubectl_complete-rowlock"
)

// pastCommands are those that look at the past of a cluster, or bring it back. They ask
// the API with the rights of a kubeconfig's user, and know nothing of databases.
func pastCommands() []*cobra.Command {
	return []*cobra.Command{historyCommand(), diffCommand(), blameCommand(), atCommand(), undeleteCommand(), restorePastCommand()}
}

// pluginCommand is what kubectl calls for `kubectl rowlock`.
func pluginCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           historyPlugin,
		Short:         "Look at the past of a cluster that rowlock serves, and bring it back",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl rowlock"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(pastCommands()...)
	root.AddCommand(versionCommand())
	return root
}

// completionCommand answers what kubectl asks when a command line of the plugin is to be
// completed: arguments in, suggestions out.
func completionCommand() *cobra.Command {
	root := pluginCommand()
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	return root
}

// pastOptions are what the commands about the past share.
type pastOptions struct {
	cluster cluster.Flags
	color   string
	now     time.Time
}

func (o *pastOptions) addTo(cmd *cobra.Command) {
	o.cluster.AddTo(cmd.Flags())
	cmd.Flags().StringVar(&o.color, "color", screen.Auto, "colours: auto (on a terminal), always or never")
	o.now = time.Now()
}

func (o *pastOptions) screen(out io.Writer) (screen.Screen, error) {
	return screen.Of(out, o.color, os.Getenv)
}

// moment reads a flag that is a moment; "" is none.
func (o *pastOptions) moment(flag, text string) (moments.Moment, error) {
	if text == "" {
		return moments.Moment{}, nil
	}
	m, err := moments.Parse(text, o.now)
	if err != nil {
		return m, fmt.Errorf("%s: %w", flag, err)
	}
	return m, nil
}

// connect reaches the cluster and learns what it has.
func (o *pastOptions) connect(ctx context.Context) (*cluster.Client, *cluster.Resources, error) {
	c, err := o.cluster.Connect()
	if err != nil {
		return nil, nil, err
	}
	all, err := c.Discover(ctx)
	return c, all, err
}

// targets are the objects that arguments name.
func (o *pastOptions) targets(ctx context.Context, args []string) (*cluster.Client, []cluster.Target, error) {
	names, err := cluster.ParseNames(args)
	if err != nil {
		return nil, nil, err
	}
	c, all, err := o.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	targets, err := names.Targets(all, c.Namespace)
	if err == nil && len(targets) == 0 {
		err = errors.New("name an object: TYPE/NAME")
	}
	return c, targets, err
}

// before is what an object was at a moment; nil where it was not there, but the server
// knows that. A server that does not keep as much is an error.
func before(ctx context.Context, c *cluster.Client, t cluster.Target, m moments.Moment) (*revisions.Revision, error) {
	r, err := revisions.Get(ctx, c, t, m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || r.Deleted() {
		return nil, err
	}
	return r, nil
}
