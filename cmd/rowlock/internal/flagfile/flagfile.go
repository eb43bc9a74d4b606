// Package flagfile reads the files that flags name. Its errors name the flag and the file.
package flagfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/freshfile"
)

// File is a file and the flag that names it.
type File struct{ Flag, Path string }

func New(flag, path string) File { return File{flag, path} }

// Wrap returns an error about the file that names it and the flag. It adds only the flag to an error that names
// the file already.
func (s File) Wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), s.Path):
		return fmt.Errorf("%s: %w", s.Flag, err)
	}
	return fmt.Errorf("%s %s: %w", s.Flag, s.Path, err)
}

// Read reads the whole file.
func (s File) Read() ([]byte, error) {
	text, err := os.ReadFile(s.Path)
	return text, s.Wrap(err)
}

// Token reads a file that holds a token and nothing else.
func (s File) Token() (string, error) {
	text, err := s.Read()
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", s.Wrap(errors.New("the file holds no token"))
	}
	return token, nil
}

// Kubeconfig reads the cluster of the current context.
func (s File) Kubeconfig() (*clientcmdapi.Cluster, error) {
	known, err := clientcmd.LoadFromFile(s.Path)
	if err != nil {
		return nil, s.Wrap(err)
	}
	context := known.Contexts[known.CurrentContext]
	if context == nil || known.Clusters[context.Cluster] == nil {
		return nil, s.Wrap(errors.New("its current context names no server"))
	}
	return known.Clusters[context.Cluster], nil
}

// loosePermissions are the permission bits that a secret file should not have.
const loosePermissions = 0o066

// WarnLoose warns about secret files that users other than the owner may read or write. The server still uses
// them: the operator may have reasons.
func WarnLoose(log *slog.Logger, files ...File) {
	for _, f := range files {
		if f.Path == "" {
			continue
		}
		info, err := os.Stat(f.Path)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&loosePermissions == 0 {
			continue // the code that reads a missing file reports it
		}
		log.Warn("a file with secrets in it can be read or written by others than its owner; it should have the mode 0600",
			"flag", f.Flag, "file", f.Path, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
	}
}

// KeyPair reads a certificate with its chain, and its private key.
func KeyPair(cert, key File) (*tls.Certificate, error) {
	certText, err := cert.Read()
	if err != nil {
		return nil, err
	}
	if _, err := clientcert.ParseAuthorities(certText); err != nil {
		return nil, cert.Wrap(err)
	}
	keyText, err := key.Read()
	if err != nil {
		return nil, err
	}
	p, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return nil, fmt.Errorf("%s %s, for %s %s: %w", key.Flag, key.Path, cert.Flag, cert.Path, err)
	}
	return &p, nil
}

// Authorities reads certificates from files, again when they change. Sources without
// a path do not count.
func Authorities(log *slog.Logger, sources ...File) (func() *x509.CertPool, error) {
	var paths, flags []string
	for _, s := range sources {
		if s.Path != "" {
			paths, flags = append(paths, s.Path), append(flags, s.Flag)
		}
	}
	read := func() (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		for _, s := range sources {
			if s.Path == "" {
				continue
			}
			certs, err := clientcert.LoadAuthorities(s.Path)
			if err != nil {
				return nil, s.Wrap(err)
			}
			for _, c := range certs {
				pool.AddCert(c)
			}
		}
		return pool, nil
	}
	v, err := freshfile.New(read, func(err error) {
		log.Warn("changed authorities cannot be read, the last ones stay", "flags", flags, "files", paths, "error", err)
	}, paths...)
	if err != nil {
		return nil, err
	}
	return v.Get, nil
}
