package datadir

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/rowlock/rowlock/authx/serviceaccount"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// Clocks of clients may be behind ours.
	backdate = 5 * time.Minute
)

type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// createCA creates a certificate authority that is valid from a time, and writes both files; it appends chain to the
// first.
func createCA(name string, chain []byte, certPath, keyPath string, since, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := authorityTemplate(pkix.Name{CommonName: name}, since, now)
	if t.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	return write(t, &pair{t, key}, key, chain, certPath, keyPath)
}

func authorityTemplate(name pkix.Name, since, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject: name, NotBefore: since, NotAfter: now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true, IsCA: true,
	}
}

// createLeaf creates a certificate for key usage by signing t with the CA; for a year, if t has no end. It appends chain
// to the file.
func createLeaf(t *x509.Certificate, ca *pair, chain []byte, certPath, keyPath string, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if t.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	t.NotBefore = now.Add(-backdate)
	if t.NotAfter.IsZero() {
		t.NotAfter = now.Add(leafLife)
	}
	if t.NotAfter.After(ca.cert.NotAfter) {
		t.NotAfter = ca.cert.NotAfter
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	t.BasicConstraintsValid = true
	return write(t, ca, key, chain, certPath, keyPath)
}

func write(t *x509.Certificate, signer *pair, key *ecdsa.PrivateKey, chain []byte, certPath, keyPath string) (*pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, signer.cert, key.Public(), signer.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyText, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	// The key goes first: a certificate without its key would be taken for whole. Neither is
	// in place before both are written, or a full disk would leave a key without certificate.
	err = writeFiles(file{keyPath, keyText}, file{certPath, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), chain...)})
	if err != nil {
		return nil, err
	}
	return &pair{cert, key}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// createSigningKey makes the key that signs service account tokens: an RSA key, which all verifiers of such
// tokens support, unless quick is set.
func createSigningKey(path string, quick bool) error {
	if quick {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		text, err := encodeKey(key)
		if err != nil {
			return err
		}
		return writeFile(path, text)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func loadPair(certPath, keyPath string) (*pair, error) {
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM certificate", certPath)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certPath, err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyPath, err)
	}
	return &pair{cert, key}, nil
}

func parseKey(data []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no PEM private key")
	}
	if key := serviceaccount.ParsePrivateKey(block.Bytes); key != nil {
		return key, nil
	}
	return nil, errors.New("not an EC, RSA or PKCS#8 private key that signs")
}

// covers reports whether a serving certificate still names all hosts.
func covers(c *x509.Certificate, names []string, ips []net.IP) bool {
	for _, n := range names {
		if c.VerifyHostname(n) != nil {
			return false
		}
	}
	for _, ip := range ips {
		if c.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}
