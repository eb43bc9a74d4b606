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

// Serving finds a serving certificate and its key outside of a data folder, or creates both, with their folder. A new
// authority signs the certificate; its key is discarded, and its certificate is appended to the file, so that clients
// can trust the file.
func Serving(certPath, keyPath string, o Options) error {
	if found, err := pairExists(certPath, keyPath); found {
		return err
	}
	for _, path := range []string{certPath, keyPath} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	// Another server that starts with the same folder makes a pair too, and of two pairs one
	// file each might be left.
	release, err := lockExclusive(filepath.Dir(keyPath))
	if err != nil {
		return err
	}
	defer release()
	if found, err := pairExists(certPath, keyPath); found || err != nil {
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

// pairExists reports whether a certificate and its key are there. One alone is an error.
func pairExists(certPath, keyPath string) (bool, error) {
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
