package datadir

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Serving finds a serving certificate and its key outside of a data folder, or makes both,
// with the folder that they are in. The certificate is signed by an authority of its own,
// whose key is forgotten and whose certificate goes behind it into the file, so that a
// client can be given the file to trust.
func Serving(certPath, keyPath string, o Options) error {
	if found, err := bothThere(certPath, keyPath); found {
		return err
	}
	for _, path := range []string{certPath, keyPath} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	// Another server that starts with the same folder makes a pair too, and of two pairs one
	// file each might be left.
	release, err := alone(filepath.Dir(keyPath))
	if err != nil {
		return err
	}
	defer release()
	if found, err := bothThere(certPath, keyPath); found || err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := authorityTemplate(pkix.Name{CommonName: "rowlock-serving-ca"}, o.Now.Add(-backdate), o.Now)
	if t.SerialNumber, err = newSerial(); err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return err
	}
	names, ips := o.names()
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: "rowlock"}, DNSNames: names, IPAddresses: ips, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	_, err = createLeaf(leaf, &pair{t, key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), certPath, keyPath, o.Now)
	return err
}

// bothThere reports whether a certificate and its key are there. One alone is an error.
func bothThere(certPath, keyPath string) (bool, error) {
	_, certErr := os.Stat(certPath)
	_, keyErr := os.Stat(keyPath)
	switch noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist); {
	case noCert && noKey:
		return false, nil
	case noCert:
		return false, fmt.Errorf("%s is there, and %s is not", keyPath, certPath)
	case noKey:
		return false, fmt.Errorf("%s is there, and %s is not", certPath, keyPath)
	}
	return true, errors.Join(certErr, keyErr)
}
