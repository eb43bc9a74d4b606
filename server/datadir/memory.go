package datadir

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// names of the files of a folder.
var memoryNames = []string{
	"ca.crt", "ca.key", "serving.crt", "serving.key", "service-account.key", "admin.crt", "admin.key", "admin.kubeconfig",
	"front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-client.crt", "front-proxy-client.key",
}

// InMemory makes the content of a data folder without a folder: the paths refer to memory of this process,
// which disappears with it, however it ends. Other processes of the same user can read them. Certificates
// last as long as their authority, and are never renewed. If the system has no such files, they are in a
// temporary folder that Close removes. Options.Quick is implied.
func InMemory(o Options) (*Dir, error) {
	paths, release, err := anonymousFiles(memoryNames)
	if err != nil {
		if paths, release, err = temporaryFiles(memoryNames); err != nil {
			return nil, fmt.Errorf("keys and certificates in memory: %w", err)
		}
	}
	d := &Dir{
		CACert: paths[0], CAKey: paths[1], ServingCert: paths[2], ServingKey: paths[3], ServiceAccount: paths[4],
		AdminCert: paths[5], AdminKey: paths[6], AdminKubeconfig: paths[7],
		front:   &FrontProxy{CACert: paths[8], CAKey: paths[9], Cert: paths[10], Key: paths[11]},
		options: o, release: sync.OnceValue(release),
	}
	if err := d.make(o); err != nil {
		return nil, errors.Join(fmt.Errorf("keys and certificates in memory: %w", err), d.Close())
	}
	return d, nil
}

// make fills files that are empty.
func (d *Dir) make(o Options) error {
	ca, err := createCA(authorityName, nil, d.CACert, d.CAKey, o.Now.Add(-backdate), o.Now)
	if err != nil {
		return err
	}
	front, err := createCA(frontProxyAuthority, nil, d.front.CACert, d.front.CAKey, o.Now.Add(-backdate), o.Now)
	if err != nil {
		return err
	}
	names, ips := o.names()
	for _, leaf := range []struct {
		of        *x509.Certificate
		by        *pair
		cert, key string
	}{
		{servingTemplate(names, ips), ca, d.ServingCert, d.ServingKey},
		{adminTemplate(), ca, d.AdminCert, d.AdminKey},
		{frontProxyTemplate(), front, d.front.Cert, d.front.Key},
	} {
		leaf.of.NotAfter = leaf.by.cert.NotAfter
		if _, err := createLeaf(leaf.of, leaf.by, nil, leaf.cert, leaf.key, o.Now); err != nil {
			return err
		}
	}
	if err := createSigningKey(d.ServiceAccount, true); err != nil {
		return err
	}
	return d.writeKubeconfig(o)
}

// Close frees the memory.
func (d *Dir) Close() error {
	if d.release == nil {
		return nil
	}
	return d.release()
}

// temporaryFiles is anonymousFiles in a new folder.
func temporaryFiles(names []string) (paths []string, release func() error, err error) {
	folder, err := os.MkdirTemp("", "rowlock-") // 0700
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths, func() error { return os.RemoveAll(folder) }, nil
}
