package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// Key is a public key with its attributes.
type Key struct {
	ID     string // unpadded base64url of the SHA-256 of its DER form, or the ID from an external signer
	Public crypto.PublicKey
	Alg    jose.SignatureAlgorithm
}

// Keys finds the keys that verify tokens.
type Keys interface {
	// Find returns the keys with this id, and all of them for an empty one.
	Find(ctx context.Context, id string) []Key
	// Has reports whether a key with this id is among the known ones. It does not look for others.
	Has(id string) bool
}

// Fixed are keys that stay.
type Fixed []Key

// Find implements Keys.
func (f Fixed) Find(_ context.Context, id string) []Key {
	if id == "" {
		return f
	}
	for i := range f {
		if f[i].ID == id {
			return f[i : i+1]
		}
	}
	return nil
}

// Has implements Keys.
func (f Fixed) Has(id string) bool {
	return slices.ContainsFunc(f, func(k Key) bool { return k.ID == id })
}

// NewKey describes a public key: RSA, or ECDSA on P-256, P-384 or P-521.
func NewKey(public crypto.PublicKey) (Key, error) {
	alg, err := algorithm(public)
	if err != nil {
		return Key{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(der)
	return Key{ID: base64.RawURLEncoding.EncodeToString(sum[:]), Public: public, Alg: alg}, nil
}

func algorithm(public crypto.PublicKey) (jose.SignatureAlgorithm, error) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
	}
	return "", errors.New("want an RSA key, or an ECDSA key on P-256, P-384 or P-521")
}

// LoadPrivate reads the signing key from a PEM file.
func LoadPrivate(path string) (crypto.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if key := ParsePrivateKey(block.Bytes); key != nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s: data does not contain a valid RSA or ECDSA private key", path)
}

// LoadPublic reads all keys of a PEM file: public keys, certificates, or private keys,
// of which the public half is taken.
func LoadPublic(path string) ([]Key, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var keys []Key
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		public := public(block)
		if public == nil {
			continue
		}
		key, err := NewKey(public)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: data does not contain any valid RSA or ECDSA public keys", path)
	}
	return keys, nil
}

// ParsePrivateKey reads a private key in any of its forms; nil: it is none that signs.
func ParsePrivateKey(der []byte) crypto.Signer {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		signer, _ := key.(crypto.Signer)
		return signer
	}
	return nil
}

func public(block *pem.Block) crypto.PublicKey {
	if key := ParsePrivateKey(block.Bytes); key != nil {
		return key.Public()
	}
	if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return key
	}
	if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
		return cert.PublicKey
	}
	return nil
}
