package core

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pkcs1 is an RSA private key as PKCS #1 has it.
type pkcs1 struct {
	Version       int
	N             *big.Int
	E             int
	D, P, Q       *big.Int
	Dp, Dq, QInv  *big.Int     `asn1:"optional"`
	FurtherPrimes []pkcs1Prime `asn1:"optional,omitempty"`
}

type pkcs1Prime struct{ Prime, Exp, Coeff *big.Int }

// TestLargePrivateKeys: a key is compared with its certificate only if that cannot take long, whatever of it is large.
func TestLargePrivateKeys(t *testing.T) {
	const large = "the private key is too large to be compared with the certificate"
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(der []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	// with returns the key with a change.
	with := func(change func(*pkcs1)) []byte {
		k := &pkcs1{
			N: key.N, E: key.E, D: key.D, P: key.Primes[0], Q: key.Primes[1],
			Dp: key.Precomputed.Dp, Dq: key.Precomputed.Dq, QInv: key.Precomputed.Qinv,
		}
		if change != nil {
			change(k)
		}
		return encode(asn1.Marshal(*k))
	}
	// inPKCS8 wraps a key of PKCS #1.
	inPKCS8 := func(der []byte) []byte {
		return encode(asn1.Marshal(struct {
			Version   int
			Algorithm struct {
				OID  asn1.ObjectIdentifier
				Null asn1.RawValue
			}
			Key []byte
		}{Key: der, Algorithm: struct {
			OID  asn1.ObjectIdentifier
			Null asn1.RawValue
		}{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, asn1.NullRawValue}}))
	}
	odd := func(bits uint) *big.Int { // of one more
		n := new(big.Int).Lsh(big.NewInt(1), bits)
		return n.Add(n, big.NewInt(1))
	}
	curve, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		key  []byte
		want string // "": it is compared, and is the certificate's
	}{
		"PKCS #1":             {with(nil), ""},
		"PKCS #8":             {inPKCS8(with(nil)), ""},
		"another":             {encode(x509.MarshalPKCS8PrivateKey(edwards)), "tls: private key type does not match public key type"},
		"of a curve":          {encode(x509.MarshalECPrivateKey(curve)), "tls: private key type does not match public key type"},
		"no key":              {[]byte("none"), "tls: failed to parse private key"},
		"8192 bits":           {with(func(k *pkcs1) { k.N = odd(8191) }), "tls: failed to parse private key"},
		"8201 bits":           {with(func(k *pkcs1) { k.N = odd(8200) }), large},
		"large prime":         {with(func(k *pkcs1) { k.P, k.Dp, k.Dq, k.QInv = odd(8200), nil, nil, nil }), large},
		"in PKCS #8":          {inPKCS8(with(func(k *pkcs1) { k.Q = odd(8200) })), large},
		"large further prime": {with(func(k *pkcs1) { k.Version, k.FurtherPrimes = 1, []pkcs1Prime{{odd(8200), odd(5), odd(5)}} }), large},
		"many further primes": {with(func(k *pkcs1) {
			k.Version, k.FurtherPrimes = 1, bytesOfPrimes(maxPrivateKey)
		}), large},
	} {
		text := append([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: tc.key})...)
		s := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{
			corev1.TLSCertKey: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), corev1.TLSPrivateKeyKey: text,
		}}
		got := ""
		if warnings := secretWarnings(s, nil); len(warnings) > 0 {
			got = warnings[0]
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	deep := bytes.Repeat([]byte{0x30, 0x80}, 4)
	if largeInteger(deep, 0) || largeInteger(nil, 0) {
		t.Error("a large integer is found where there is none")
	}
}

// bytesOfPrimes returns further primes that take more than n bytes.
func bytesOfPrimes(n int) []pkcs1Prime {
	three := big.NewInt(3)
	list := make([]pkcs1Prime, n/8)
	for i := range list {
		list[i] = pkcs1Prime{three, three, three}
	}
	return list
}
