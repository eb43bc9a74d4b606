package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/server/datadir"
)

// source is a file and the flag that names it.
type source struct{ flag, path string }

// failed is an error about the file, which names it and the flag. An error that names
// the file already is told the flag alone.
func (s source) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), s.path):
		return fmt.Errorf("%s: %w", s.flag, err)
	}
	return fmt.Errorf("%s %s: %w", s.flag, s.path, err)
}

// read reads the whole file.
func (s source) read() ([]byte, error) {
	text, err := os.ReadFile(s.path)
	return text, s.failed(err)
}

// token reads a file that holds a token and nothing else.
func (s source) token() (string, error) {
	text, err := s.read()
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", s.failed(errors.New("the file holds no token"))
	}
	return token, nil
}

// kubeconfig reads one that is to name a server.
func (s source) kubeconfig() (*clientcmdapi.Cluster, error) {
	known, err := clientcmd.LoadFromFile(s.path)
	if err != nil {
		return nil, s.failed(err)
	}
	context := known.Contexts[known.CurrentContext]
	if context == nil || known.Clusters[context.Cluster] == nil {
		return nil, s.failed(errors.New("its current context names no server"))
	}
	return known.Clusters[context.Cluster], nil
}

// loose are the permissions that a file with a secret in it should give nobody but its owner.
const loose = 0o066

// reportLoose says which of the files with secrets others than their owner may read or
// write. They are used all the same: whoever runs the server may have reasons.
func reportLoose(log *slog.Logger, files ...source) {
	for _, f := range files {
		if f.path == "" {
			continue
		}
		info, err := os.Stat(f.path)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&loose == 0 {
			continue // what is not there is for those to tell who need it
		}
		log.Warn("a file with secrets in it can be read or written by others than its owner; it should have the mode 0600",
			"flag", f.flag, "file", f.path, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
	}
}

// notEverybodys refuses a folder that everybody may write to, sticky or not: what somebody
// put there beforehand, by a name that is expected, would be taken for our own.
func notEverybodys(flag, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil // who writes to it says so
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s: everybody may write to the folder %s (mode %04o), and could put there what would then be taken for ours: name one that is yours alone", flag, dir, mode.Perm())
	}
	return nil
}

// ownSecrets are the files of a data directory that nobody else looks after.
func ownSecrets(dir *datadir.Dir) []source {
	var files []source
	for _, path := range []string{dir.CAKey, dir.AdminKey, dir.AdminKubeconfig} {
		files = append(files, source{"--data-dir", path})
	}
	return files
}

// databaseFiles are those of an embedded database, which holds Secrets as they are unless they are encrypted.
func databaseFiles(flag, url string) []source {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return nil
	}
	path = strings.TrimPrefix(path, "//")
	return []source{{flag, path}, {flag, path + "-wal"}}
}

// pair reads a certificate with its chain, and its private key.
func pair(cert, key source) (*tls.Certificate, error) {
	certText, err := cert.read()
	if err != nil {
		return nil, err
	}
	if _, err := clientcert.ParseAuthorities(certText); err != nil {
		return nil, cert.failed(err)
	}
	keyText, err := key.read()
	if err != nil {
		return nil, err
	}
	p, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return nil, fmt.Errorf("%s %s, for %s %s: %w", key.flag, key.path, cert.flag, cert.path, err)
	}
	return &p, nil
}
