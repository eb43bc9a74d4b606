package importer

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server/datadir"
)

// maxKeyFile is the largest file of keys or certificates in bytes.
const maxKeyFile = 1 << 20

// keyFileNames maps the files of k3s (server/tls) and kubeadm (/etc/kubernetes/pki) to their names in a data
// directory. The first name that exists counts.
var keyFileNames = []struct {
	to   string
	from []string
}{
	{"ca.crt", []string{"server-ca.crt", "ca.crt"}},
	{"ca.key", []string{"server-ca.key", "ca.key"}},
	{clientCAName, []string{clientCAName}},
	{accountKeyName, []string{"service.current.key", "service.key", "sa.key", accountKeyName}},
	{"front-proxy-ca.crt", []string{"request-header-ca.crt", "front-proxy-ca.crt"}},
	{"front-proxy-ca.key", []string{"request-header-ca.key", "front-proxy-ca.key"}},
}

const (
	clientCAName   = "client-ca.crt" // for --client-ca-file: data directories have no name for it
	accountKeyName = "service-account.key"
)

// keyFiles are files of the old cluster by their names in the data directory.
type keyFiles map[string]keyFile

type keyFile struct {
	from string
	text []byte
}

// readKeyFiles reads and checks the files from folders and files, and the key of service accounts. Errors name the
// file.
func readKeyFiles(places []string, accountKey string) (keyFiles, error) {
	a := keyFiles{}
	for _, place := range places {
		if err := a.place(place); err != nil {
			return nil, fmt.Errorf("--take-along: %w", err)
		}
	}
	if accountKey != "" {
		if err := a.read(accountKeyName, accountKey); err != nil {
			return nil, fmt.Errorf("--service-account-key-file: %w", err)
		}
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	return a, nil
}

// place reads the files of a folder (for k3s also of the folder above tls), or one file.
func (a keyFiles) place(place string) error {
	info, err := os.Stat(place)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		for _, n := range keyFileNames {
			if slices.Contains(n.from, filepath.Base(place)) {
				return a.read(n.to, place)
			}
		}
		return fmt.Errorf("%s: no file by this name is known (a key of service accounts is given by --service-account-key-file)", place)
	}
	for _, dir := range []string{filepath.Join(place, "server", "tls"), filepath.Join(place, "tls"), place} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return a.folder(dir)
		}
	}
	return nil
}

func (a keyFiles) folder(dir string) error {
	found := 0
	for _, n := range keyFileNames {
		for _, name := range n.from {
			err := a.read(n.to, filepath.Join(dir, name))
			if err == nil {
				found++
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if found == 0 {
		return fmt.Errorf("%s has none of the files of k3s or kubeadm that are taken along", dir)
	}
	return nil
}

func (a keyFiles) read(to, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return fmt.Errorf("%s is not a file of at most %d bytes, as keys and certificates are", path, maxKeyFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if other, twice := a[to]; twice && other.from != path {
		return fmt.Errorf("%s and %s would both be %s", other.from, path, to)
	}
	a[to] = keyFile{path, text}
	return nil
}

// check refuses files that a server cannot use: half a pair, a certificate that is not an authority's, a file
// without a key.
func (a keyFiles) check() error {
	for _, name := range []string{"ca", "front-proxy-ca"} {
		cert, hasCert := a[name+".crt"]
		key, hasKey := a[name+".key"]
		switch {
		case !hasCert && !hasKey:
			continue
		case !hasKey:
			return fmt.Errorf("--take-along: %s: the key that belongs to it is not there", cert.from)
		case !hasCert:
			return fmt.Errorf("--take-along: %s: the certificate that belongs to it is not there", key.from)
		}
		if _, err := tls.X509KeyPair(cert.text, key.text); err != nil {
			return fmt.Errorf("--take-along: %s and %s are no pair: %w", cert.from, key.from, err)
		}
		if err := isAuthority(cert); err != nil {
			return err
		}
	}
	if ca, ok := a[clientCAName]; ok {
		if err := isAuthority(ca); err != nil {
			return err
		}
	}
	if key, ok := a[accountKeyName]; ok && !isPrivateKey(key.text) {
		return fmt.Errorf("%s holds no private key (PEM, RSA or ECDSA) that signs tokens", key.from)
	}
	return nil
}

func isAuthority(f keyFile) error {
	block, _ := pem.Decode(f.text)
	if block == nil || block.Type != "CERTIFICATE" {
		return fmt.Errorf("--take-along: %s holds no certificate (PEM)", f.from)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("--take-along: %s: %w", f.from, err)
	}
	if !cert.IsCA {
		return fmt.Errorf("--take-along: %s is the certificate of %q, which is not a certificate authority", f.from, cert.Subject.CommonName)
	}
	return nil
}

func isPrivateKey(text []byte) bool {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return false
		}
		if serviceaccount.ParsePrivateKey(block.Bytes) != nil {
			return true
		}
		text = rest
	}
}

// conflicts refuses to overwrite other keys in a data directory.
func (a keyFiles) conflicts(dir string) error {
	for _, name := range a.names() {
		have, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if string(have) != string(a[name].text) {
			return fmt.Errorf("--take-along: %s: the data directory has another %s already: remove it first, or give another --data-dir", a[name].from, name)
		}
	}
	return nil
}

// put writes the files to a data directory, readable by their owner only.
func (a keyFiles) put(dir string) error {
	if len(a) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	for _, name := range a.names() {
		if err := datadir.Put(filepath.Join(dir, name), a[name].text); err != nil {
			return fmt.Errorf("--data-dir: %w", err)
		}
	}
	return nil
}

func (a keyFiles) names() []string { return slices.Sorted(maps.Keys(a)) }

// hint returns the flag that a server needs for files that the data directory has no name for.
func (a keyFiles) hint(dir string) string {
	if _, ok := a[clientCAName]; ok {
		return " --client-ca-file " + filepath.Join(dir, clientCAName)
	}
	return ""
}
