package webhook

import (
	"errors"
	"net"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Credentials are the credentials in a kubeconfig whose users are named after webhooks: "host:port", "host", "*.domain",
// or "*" for all.
type Credentials struct{ file *clientcmdapi.Config }

// LoadCredentials reads a kubeconfig.
func LoadCredentials(path string) (*Credentials, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	file, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).RawConfig()
	if err != nil {
		return nil, err
	}
	return &Credentials{file: &file}, nil
}

// of returns how to call a host, which may be without a port.
func (c *Credentials) of(host string) (*rest.Config, error) {
	if c == nil {
		return &rest.Config{}, nil
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	if info := c.user(host); info != nil {
		return configOf(info)
	}
	return &rest.Config{}, nil
}

// user finds the most specific user for an address.
func (c *Credentials) user(address string) *clientcmdapi.AuthInfo {
	names := patterns(address)
	if host, port, err := net.SplitHostPort(address); err == nil && port == "443" {
		names = append(names, patterns(host)...)
	}
	for _, name := range append(names, "*") {
		if info := c.file.AuthInfos[name]; info != nil {
			return info
		}
	}
	if current := c.file.Contexts[c.file.CurrentContext]; current != nil {
		return c.file.AuthInfos[current.AuthInfo]
	}
	return nil
}

// patterns returns the user names for an address: itself, then with "*" in place of more and more of its
// beginning.
func patterns(address string) []string {
	names := []string{address}
	for rest := address; ; {
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			return names
		}
		names = append(names, "*."+after)
		rest = after
	}
}

func configOf(info *clientcmdapi.AuthInfo) (*rest.Config, error) {
	cfg := &rest.Config{BearerToken: info.Token, BearerTokenFile: info.TokenFile, Username: info.Username, Password: info.Password}
	if info.Token == "" && info.TokenFile != "" {
		token, err := os.ReadFile(info.TokenFile)
		if err != nil {
			return nil, err
		}
		cfg.BearerToken = string(token)
	}
	cfg.CertFile, cfg.CertData = info.ClientCertificate, info.ClientCertificateData
	cfg.KeyFile, cfg.KeyData = info.ClientKey, info.ClientKeyData
	if info.Impersonate != "" {
		cfg.Impersonate = rest.ImpersonationConfig{
			UserName: info.Impersonate, UID: info.ImpersonateUID, Groups: info.ImpersonateGroups, Extra: info.ImpersonateUserExtra,
		}
	}
	if info.Exec != nil {
		cfg.ExecProvider = info.Exec.DeepCopy()
	}
	if info.AuthProvider != nil {
		return nil, errors.New("auth provider not supported")
	}
	return cfg, nil
}
