// Package datadir keeps the folder that a server owns: its certificate authority,
// serving certificate, service-account signing key, administrator's certificate
// and kubeconfig.
//
// It promises: missing files are made at the first start, existing ones are found
// again; certificates are renewed before they end; the folder is 0700 and every
// file 0600; a file appears whole or not at all.
package datadir

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Dir is an opened data folder. The paths are of PEM files.
type Dir struct {
	Path            string
	CACert, CAKey   string
	ServingCert     string
	ServingKey      string
	ServiceAccount  string // private key for service-account tokens
	AdminCert       string
	AdminKey        string
	AdminKubeconfig string
	Database        string // the path of the SQLite database without --store

	// Shared means that another server serves with this folder, in whose name the kubeconfig is.
	Shared bool

	front   *FrontProxy // nil until first use
	mu      sync.Mutex  // of the folder's content, while it changes
	options Options
	release func() error // of the memory or the folder; nil: there is nothing to release
}

// Options are the names in the certificates and the kubeconfig.
type Options struct {
	Hosts     []string // more names of this machine
	IPs       []net.IP // more addresses: --advertise-address, the first service IP
	ServerURL string   // of the kubeconfig: "https://127.0.0.1:6443"
	// ServerCA replaces the own CA in the kubeconfig when the operator brings a
	// serving certificate; a PEM file, may be empty.
	ServerCA string
	Now      time.Time
	// Quick is for folders of tests: the signing key of service account tokens has a type that is generated
	// quickly.
	Quick bool

	// Serves is for a server, which holds the folder until Close. A second server shares it: the kubeconfig
	// stays as it is, and the serving certificate names both.
	Serves bool

	renews bool // not at the start: kubeconfig and certificate may name other servers
}

// Open makes or finds everything.
func Open(path string, o Options) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	// A folder that cannot be written, and needs nothing, is as good as any.
	if mode, err := os.Stat(abs); err != nil || mode.Mode().Perm() != 0o700 {
		if err := os.Chmod(abs, 0o700); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	in := func(name string) string { return filepath.Join(abs, name) }
	d := &Dir{
		Path: abs, CACert: in("ca.crt"), CAKey: in("ca.key"),
		ServingCert: in("serving.crt"), ServingKey: in("serving.key"),
		ServiceAccount: in("service-account.key"),
		AdminCert:      in("admin.crt"), AdminKey: in("admin.key"),
		AdminKubeconfig: in("admin.kubeconfig"), Database: in("rowlock.db"), options: o,
	}
	release, err := lockExclusive(abs)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	defer release()
	if o.Serves {
		if d.release, err = hold(in("server.lock")); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
		d.Shared = d.release == nil
	}
	if err := d.fill(o); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", abs, err), d.Close())
	}
	return d, nil
}

func (d *Dir) fill(o Options) error {
	if err := d.begin(); err != nil {
		return err
	}
	ca, err := d.authority(o.Now)
	if err != nil {
		return err
	}
	names, ips := o.names()
	if o.renews || d.Shared {
		names, ips = withThose(d.ServingCert, names, ips)
	}
	if err := ensureLeaf(servingTemplate(names, ips), ca, d.chain(ca, o.Now), d.ServingCert, d.ServingKey, o.Now); err != nil {
		return err
	}
	if err := ensureLeaf(adminTemplate(), ca, nil, d.AdminCert, d.AdminKey, o.Now); err != nil {
		return err
	}
	if _, err := os.Stat(d.ServiceAccount); errors.Is(err, fs.ErrNotExist) {
		if err := createSigningKey(d.ServiceAccount, o.Quick); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return d.writeKubeconfig(o)
}

func servingTemplate(names []string, ips []net.IP) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "rowlock"}, DNSNames: names, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func adminTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

const authorityName = "rowlock-ca"

func (d *Dir) authority(now time.Time) (*pair, error) {
	if err := d.finishSuccession(); err != nil {
		return nil, err
	}
	return authority(authorityName, d.CACert, d.CAKey, now)
}

// authority finds a certificate authority, or makes it.
func authority(name, certPath, keyPath string, now time.Time) (*pair, error) {
	_, certErr := os.Stat(certPath)
	_, keyErr := os.Stat(keyPath)
	switch {
	case errors.Is(certErr, fs.ErrNotExist):
		// A key without a certificate is left by an interrupted first start.
		return createCA(name, nil, certPath, keyPath, now.Add(-backdate), now)
	case certErr != nil:
		return nil, certErr
	case keyErr != nil:
		return nil, fmt.Errorf("%s is there but its key cannot be read: %w", filepath.Base(certPath), keyErr)
	}
	return loadPair(certPath, keyPath)
}

// ensureLeaf keeps the certificate that is there while it is good: of its key, which a
// renewal that was cut short has replaced alone, signed by the CA, not yet due, and naming
// all hosts. While the CA is not good, it could make none that is.
func ensureLeaf(t *x509.Certificate, ca *pair, chain []byte, certPath, keyPath string, now time.Time) error {
	have, err := loadPair(certPath, keyPath)
	if err == nil && fits(have.cert, have.key) && have.cert.CheckSignatureFrom(ca.cert) == nil &&
		(!holds(ca.cert, now) || !due(have.cert, now) && covers(have.cert, t.DNSNames, t.IPAddresses)) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = createLeaf(t, ca, chain, certPath, keyPath, now)
	return err
}

func (o Options) names() ([]string, []net.IP) {
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if h, err := os.Hostname(); err == nil && h != "" && h != "localhost" {
		names = append(names, h)
	}
	names = append(names, o.Hosts...)
	for _, ip := range o.IPs {
		if ip != nil && !ip.IsUnspecified() {
			ips = append(ips, ip)
		}
	}
	return names, ips
}

// withThose adds the names of an existing certificate: servers that share a folder find the names of the
// others there, and continue to use them.
func withThose(path string, names []string, ips []net.IP) ([]string, []net.IP) {
	list, err := readCertificates(path)
	if err != nil || len(list) == 0 {
		return names, ips
	}
	for _, name := range list[0].DNSNames {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, ip := range list[0].IPAddresses {
		if !slices.ContainsFunc(ips, ip.Equal) {
			ips = append(ips, ip)
		}
	}
	return names, ips
}

func (d *Dir) writeKubeconfig(o Options) error {
	caFile := d.CACert
	if o.ServerCA != "" {
		caFile = o.ServerCA
	}
	var parts [3]string
	for i, path := range []string{caFile, d.AdminCert, d.AdminKey} {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parts[i] = base64.StdEncoding.EncodeToString(data)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: rowlock
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: admin
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: rowlock
  context:
    cluster: rowlock
    user: admin
current-context: rowlock
`, o.ServerURL, parts[0], parts[1], parts[2])
	if have, err := os.ReadFile(d.AdminKubeconfig); err == nil {
		// If servers share a folder, the kubeconfig is that of the first one.
		fresh := (o.renews || d.Shared) && strings.Contains(string(have), parts[0]) && strings.Contains(string(have), parts[1]) && strings.Contains(string(have), parts[2])
		if fresh || string(have) == text {
			return nil
		}
	}
	return writeFile(d.AdminKubeconfig, []byte(text))
}

// writeFile puts a file in place by renaming, so that a reader or a crash meets
// the old or the new one, never a part.
func writeFile(path string, data []byte) error { return writeFiles(file{path, data}) }

// file is a file to be written.
type file struct {
	path string
	data []byte
}

// writeFiles is writeFile for several, of which none is in place before all are written.
func writeFiles(files ...file) error {
	if anonymous(files[0].path) {
		return writeInPlace(files)
	}
	var staged []string
	defer func() {
		for _, name := range staged {
			_ = os.Remove(name) // fails once renamed, as it should
		}
	}()
	for _, f := range files {
		name, err := stage(f)
		if err != nil {
			return err
		}
		staged = append(staged, name)
	}
	for i, f := range files {
		if err := os.Rename(staged[i], f.path); err != nil {
			return err
		}
	}
	return nil
}

// writeInPlace writes files that cannot be replaced by renaming. They have no readers yet.
func writeInPlace(files []file) error {
	for _, f := range files {
		if err := os.WriteFile(f.path, f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// stage writes the new content of a file to a temporary file in its folder.
func stage(to file) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(to.path), ".new-")
	if err != nil {
		return "", err
	}
	err = f.Chmod(0o600)
	if err == nil {
		_, err = f.Write(to.data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
