package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/authx/credential"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
)

// credentialOptions are the flags of credential.
type credentialOptions struct {
	kubeconfig, context string
	account, namespace  string
	node                string
	bootstrapToken      string
	audiences           []string
	life, timeout       time.Duration
	cache               string
	noCache             bool
}

func CredentialCommand() *cobra.Command {
	o := &credentialOptions{}
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Print a fresh credential for kubectl and other clients (exec credential plugin)",
		Long: `Print a credential for kubectl and other clients, as an exec credential
plugin (client.authentication.k8s.io/v1) that kubeconfigs name.

With --service-account it is a token of that account, requested with the
credential in --kubeconfig. With --node it is the client certificate of
that node, requested with --bootstrap-token-file (or with the credential in
--kubeconfig). Credentials are cached for most of their lifetime.

Without --kubeconfig the client names the server; its kubeconfig must
have provideClusterInfo: true.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the server, with the credential for the request")
	f.StringVar(&o.context, "context", "", "context of --kubeconfig (default: its current one)")
	f.StringVar(&o.account, "service-account", "", "service account to get a token of")
	f.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of --service-account")
	f.StringSliceVar(&o.audiences, "audience", nil, "audience of the token (default: the API)")
	f.DurationVar(&o.life, "duration", 0, "requested lifetime of the token (default: chosen by the server)")
	f.StringVar(&o.node, "node", "", "node to get the client certificate of")
	f.StringVar(&o.bootstrapToken, "bootstrap-token-file", "", "file with the bootstrap token for the request")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for the credential")
	f.StringVar(&o.cache, "cache-dir", "", "folder of cached credentials (default: rowlock in the user's cache folder)")
	f.BoolVar(&o.noCache, "no-cache", false, "do not cache credentials")
	return cmd
}

func (o *credentialOptions) run(ctx context.Context, out io.Writer) error {
	info, err := credential.ParseInfo(os.Getenv(credential.ExecInfo))
	if err != nil {
		return err
	}
	var from credential.Source
	switch {
	case (o.account == "") == (o.node == ""):
		return errors.New("one of --service-account and --node is needed")
	case o.account != "":
		from = credential.Account{Namespace: o.namespace, Name: o.account, Audiences: o.audiences, Life: o.life}
	default:
		from = credential.Node{Name: o.node}
	}
	cfg := &rest.Config{}
	switch cluster := info.Spec.Cluster; {
	case o.kubeconfig != "":
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig}
		cfg, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
		if err != nil {
			return flagfile.New("--kubeconfig", o.kubeconfig).Wrap(err)
		}
	case cluster != nil:
		cfg.Host, cfg.TLSClientConfig = cluster.Server, rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, Insecure: cluster.InsecureSkipTLSVerify, CAData: cluster.CertificateAuthorityData,
		}
	default:
		return errors.New("--kubeconfig is needed, or provideClusterInfo: true in the kubeconfig that names this plugin")
	}
	if o.bootstrapToken != "" {
		if _, err := flagfile.New("--bootstrap-token-file", o.bootstrapToken).Token(); err != nil {
			return err
		}
		cfg.BearerTokenFile = o.bootstrapToken
	}
	server, err := credential.Connect(cfg)
	if err != nil {
		return err
	}
	cache, err := o.cacheDir()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	c, err := credential.Get(ctx, from, server, cache)
	if err != nil {
		return err
	}
	return credential.Write(out, info.APIVersion, c)
}

func (o *credentialOptions) cacheDir() (string, error) {
	if o.noCache {
		return "", nil
	}
	if o.cache != "" {
		return o.cache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("--cache-dir is needed: %w", err)
	}
	return filepath.Join(dir, "rowlock", "credentials"), nil
}
