//go:build unix

package cluster

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// Files of the keys that all servers have.
const (
	AuthorityKey = "ca.key"
	TokenKey     = "service-account.key"
)

// Key returns a key of the servers.
func (c *Cluster) Key(file string) (crypto.Signer, error) {
	der, err := c.readPEM(file)
	if err != nil {
		return nil, err
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return key, nil
}

// Authority returns the certificate of the authority of the servers.
func (c *Cluster) Authority() (*x509.Certificate, error) {
	der, err := c.readPEM("ca.crt")
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// readPEM returns the first block of a file in the data directory of the first server.
func (c *Cluster) readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(c.nodes[0].options.DataDir, file))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no block of PEM", file)
	}
	return block.Bytes, nil
}
