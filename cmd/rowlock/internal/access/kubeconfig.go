package access

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server/datadir"
)

// kubeconfigOptions are the flags of kubeconfig.
type kubeconfigOptions struct {
	dataDir, server, ca, output string
	namespace                   string
	user                        string
	groups                      []string
	life                        time.Duration
	tokenFile                   string
	account, base, node         string
	overwrite                   cli.Overwrite
}

func KubeconfigCommand() *cobra.Command {
	o := &kubeconfigOptions{}
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Write a kubeconfig: for a user's certificate, a token, or the credential plugin",
		Long: `Write a kubeconfig for the server whose data directory this is.

With --user it holds a client certificate, signed by the authority in the data
directory. With --token-file it holds a token. With --service-account or --node
it names "rowlock credential", which fetches tokens of the account or the
certificate of the node when they are needed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", "./rowlock-data", "folder of the server's keys and certificates")
	f.StringVar(&o.server, "server", "", "URL of the server (default: as in the administrator's kubeconfig)")
	f.StringVar(&o.ca, "certificate-authority", "", "authority of the server's certificate (default: as in the administrator's kubeconfig)")
	f.StringVarP(&o.output, "output", "o", "-", "file to write, - for standard output")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the context, and of --service-account")
	f.StringVar(&o.user, "user", "", "name of the user to sign a certificate for")
	f.StringSliceVar(&o.groups, "group", nil, "group of --user; may be repeated")
	f.DurationVar(&o.life, "duration", 365*24*time.Hour, "validity of the certificate")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token")
	f.StringVar(&o.account, "service-account", "", "service account whose tokens the plugin fetches")
	f.StringVar(&o.node, "node", "", "node whose certificate the plugin fetches")
	f.StringVar(&o.base, "base-kubeconfig", "", "kubeconfig with which the plugin asks (default: the administrator's)")
	o.overwrite.AddTo(f)
	return cmd
}

func (o *kubeconfigOptions) run(out io.Writer) error {
	admin := filepath.Join(o.dataDir, "admin.kubeconfig")
	cluster, err := o.cluster(admin)
	if err != nil {
		return err
	}
	name, user, err := o.credentials(admin)
	if err != nil {
		return err
	}
	const here = "rowlock"
	c := clientcmdapi.NewConfig()
	c.Clusters[here], c.AuthInfos[name] = cluster, user
	c.Contexts[here] = &clientcmdapi.Context{Cluster: here, AuthInfo: name, Namespace: o.namespace}
	c.CurrentContext = here
	data, err := clientcmd.Write(*c)
	if err != nil {
		return err
	}
	if o.output != "-" {
		if err := o.overwrite.Allows(o.output); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		return flagfile.New("--output", o.output).Wrap(os.WriteFile(o.output, data, 0o600))
	}
	_, err = out.Write(data)
	return err
}

// cluster returns the server's entry, taken from the administrator's kubeconfig.
func (o *kubeconfigOptions) cluster(admin string) (*clientcmdapi.Cluster, error) {
	c := clientcmdapi.NewCluster()
	if o.server == "" || o.ca == "" {
		from, err := flagfile.New("--data-dir", admin).Kubeconfig()
		if err != nil {
			return nil, err
		}
		c.Server, c.CertificateAuthorityData = from.Server, from.CertificateAuthorityData
	}
	if o.server != "" {
		c.Server = o.server
	}
	if o.ca != "" {
		var err error
		file := flagfile.New("--certificate-authority", o.ca)
		if c.CertificateAuthorityData, err = file.Read(); err != nil {
			return nil, err
		}
		if _, err := clientcert.ParseAuthorities(c.CertificateAuthorityData); err != nil {
			return nil, file.Wrap(err)
		}
	}
	return c, nil
}

// credentials returns the user's entry and its name.
func (o *kubeconfigOptions) credentials(admin string) (string, *clientcmdapi.AuthInfo, error) {
	chosen := 0
	for _, s := range []string{o.user, o.tokenFile, o.account, o.node} {
		if s != "" {
			chosen++
		}
	}
	if chosen != 1 {
		return "", nil, errors.New("one of --user, --token-file, --service-account and --node is needed")
	}
	user := clientcmdapi.NewAuthInfo()
	switch {
	case o.user != "":
		var err error
		user.ClientCertificateData, user.ClientKeyData, err = o.sign()
		return o.user, user, err
	case o.tokenFile != "":
		var err error
		user.Token, err = flagfile.New("--token-file", o.tokenFile).Token()
		return "token", user, err
	}
	plugin, err := o.plugin(admin)
	user.Exec = plugin
	return "plugin", user, err
}

// plugin names this binary as the exec credential plugin.
func (o *kubeconfigOptions) plugin(admin string) (*clientcmdapi.ExecConfig, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	base := o.base
	if base == "" {
		base = admin
	} else if _, err := flagfile.New("--base-kubeconfig", base).Kubeconfig(); err != nil {
		return nil, err
	}
	if base, err = filepath.Abs(base); err != nil {
		return nil, err
	}
	args := []string{"credential", "--kubeconfig", base}
	if o.account != "" {
		namespace := cmp.Or(o.namespace, "default")
		args = append(args, "--service-account", o.account, "--namespace", namespace)
	} else {
		args = append(args, "--node", o.node)
	}
	return &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: self, Args: args, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}, nil
}

// sign makes a key, and a certificate signed by the authority in the data directory.
func (o *kubeconfigOptions) sign() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: o.user, Organization: o.groups}}, private)
	if err != nil {
		return nil, nil, err
	}
	request, err := x509.ParseCertificateRequest(raw)
	if err != nil {
		return nil, nil, err
	}
	dir := &datadir.Dir{Path: o.dataDir, CACert: filepath.Join(o.dataDir, "ca.crt"), CAKey: filepath.Join(o.dataDir, "ca.key")}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	if cert, err = dir.Sign(request, usages, o.life, time.Now()); err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
