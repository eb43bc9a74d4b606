// Package access holds the commands that make a data directory and give clients access to a server: init, kubeconfig,
// credential and ready.
package access

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/server/datadir"
)

// initOptions are the flags of init.
type initOptions struct {
	dataDir, from, server string
	names                 []string
	authority             bool
}

func InitCommand() *cobra.Command {
	o := &initOptions{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create a data directory without starting a server",
		Long: `Create the keys, the certificates and the administrator's kubeconfig of a data
directory, as the first start of a server does. Existing files are kept.

With --from, copy the authority and the keys that all servers of a cluster share
from another folder, such as a mounted Secret.

With --renew-authority, create a successor of an authority that has reached two thirds
of its ten years. Clients that trust the old authority trust the successor while the old
one is valid. A server with the embedded database does that automatically; servers that
share an authority need the new ca.crt and ca.key.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", "./rowlock-data", "folder to make")
	f.StringVar(&o.from, "from", "", "folder with the authority and the keys to take")
	f.StringVar(&o.server, "server", "https://127.0.0.1:6443", "URL of the server in the administrator's kubeconfig")
	f.StringSliceVar(&o.names, "tls-san", nil, "more names and addresses for the serving certificate")
	f.BoolVar(&o.authority, "renew-authority", false, "create a successor of the authority if two thirds of its lifetime are over")
	return cmd
}

func (o *initOptions) run(out io.Writer) error {
	if o.from != "" {
		if err := takeKeys(o.from, o.dataDir); err != nil {
			return err
		}
	}
	names, ips := cli.SplitHosts(o.names)
	dir, err := datadir.Open(o.dataDir, datadir.Options{Hosts: names, IPs: ips, ServerURL: o.server, Now: time.Now()})
	if err != nil {
		return err
	}
	// Otherwise each server would add its own authority to those that aggregated servers trust.
	if _, err := dir.FrontProxy(time.Now()); err != nil {
		return err
	}
	if o.authority {
		changed, err := dir.Replace(time.Now())
		if err != nil {
			return err
		}
		if !slices.Contains(changed, "ca.crt") {
			_, err := fmt.Fprintf(out, "the authority is good until %s, and is not due\n", dir.Ends()["ca.crt"].Format(time.RFC3339))
			return err
		}
		if _, err := fmt.Fprintln(out, "the authority has a successor: give ca.crt, ca.key and ca-cross.crt to all servers of the cluster"); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "export KUBECONFIG=%s\n", dir.AdminKubeconfig)
	return err
}

// takeKeys copies the files that servers of one cluster share into a data directory.
func takeKeys(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	for _, name := range datadir.Shared() {
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) && !datadir.MustShare(name) {
			continue
		}
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		if err := datadir.Put(filepath.Join(to, name), data); err != nil {
			return fmt.Errorf("--data-dir: %w", err)
		}
	}
	return nil
}
