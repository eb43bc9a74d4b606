// Package clientcert authenticates by x509 client certificates: the subject's
// common name is the user, each organization a group.
//
// A certificate counts only if it is for clients and a present authority signed it; the result for
// the certificates of a connection, good or bad, is cached for a short time.
package clientcert

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rowlock/rowlock/authx"
)

// Authenticator verifies the certificate that came with the TLS connection.
type Authenticator struct {
	verifier *Verifier
	uids     bool
	known    memory[result]
}

// result is the user of a certificate that came with others, chain in all.
type result struct {
	who   *authx.Authenticated
	chain chain
}

// New makes an Authenticator; roots is called on each request, so that the pool can be
// reloaded. A nil pool trusts no certificate. With uids a certificate may hold the UID of its user.
func New(roots func() *x509.CertPool, uids bool) *Authenticator {
	return &Authenticator{verifier: NewVerifier(roots), uids: uids}
}

// Authenticate implements authx.Authenticator. A certificate without common name
// is not ours.
func (a *Authenticator) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	leaf, err := a.verifier.Verify(r)
	if leaf == nil || err != nil {
		return nil, err != nil, err
	}
	if leaf.Subject.CommonName == "" {
		return nil, false, nil
	}
	// Connections with equal certificates share them in memory, but each may come with other intermediate ones, which live only as
	// long as it does.
	if known, ok := a.known.get(leaf); ok && known.chain.is(r.TLS.PeerCertificates) {
		return known.who, true, nil
	}
	uid := ""
	if a.uids {
		if uid, err = uidOf(leaf); err != nil {
			return nil, true, err
		}
	}
	sum := sha256.Sum256(leaf.Raw)
	groups := slices.Clone(leaf.Subject.Organization)
	if leaf.Subject.CommonName != authx.Anonymous {
		groups = append(groups, authx.GroupAuthenticated)
	}
	who := &authx.Authenticated{Identity: &authx.Identity{
		Name: leaf.Subject.CommonName, UID: uid, Groups: groups,
		Extra: map[string][]string{authx.CredentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}, StillValid: a.verifier.StillValid(r), CertificateEnds: leaf.NotAfter}
	a.known.put(leaf, result{who, chainOf(r)})
	return who, true, nil
}

// uidAttribute is the attribute type of the UID in a subject.
var uidAttribute = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}

// uidOf returns the UID in the subject of a certificate; "" if it has none.
func uidOf(leaf *x509.Certificate) (string, error) {
	var uids []string
	for _, name := range leaf.Subject.Names {
		if !name.Type.Equal(uidAttribute) {
			continue
		}
		uid, ok := name.Value.(string)
		if !ok {
			return "", errors.New("unable to parse UID into a string")
		}
		uids = append(uids, uid)
	}
	switch {
	case len(uids) == 0:
		return "", nil
	case len(uids) > 1:
		return "", fmt.Errorf("expected 1 UID, but found multiple: %v", uids)
	case uids[0] == "":
		return "", errors.New("UID cannot be an empty string")
	}
	return uids[0], nil
}

// Verifier checks client certificates against authorities that may change.
type Verifier struct {
	roots func() *x509.CertPool
	now   func() time.Time
	known memory[verification]

	looked atomic.Int64 // at certificates, for tests
}

// verification is the result of verifying a certificate.
type verification struct {
	roots       *x509.CertPool
	from, until time.Time
	err         error // nil: it is good
}

// How long a verdict holds at most, a good and a bad one. Verifying a bad certificate
// may take a hundred signatures: it is done once for a connection, and not for each
// request of an unauthenticated client on it.
const (
	remember    = time.Minute
	rememberBad = 10 * time.Second
)

// NewVerifier makes a Verifier, with roots as in New.
func NewVerifier(roots func() *x509.CertPool) *Verifier {
	return &Verifier{roots: roots, now: time.Now}
}

// Verify returns the client certificate of a request: nil if it came with none, an
// error if it is not to be trusted, or not meant for clients.
func (v *Verifier) Verify(r *http.Request) (*x509.Certificate, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf, roots, now := r.TLS.PeerCertificates[0], v.roots(), v.now()
	// The certificates of a connection are the same objects for all its requests.
	if g, ok := v.known.get(leaf); ok && g.roots == roots && !now.Before(g.from) && !now.After(g.until) {
		return leaf, g.err
	}
	v.looked.Add(1)
	opts := x509.VerifyOptions{
		Roots: roots, CurrentTime: now, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if opts.Roots == nil {
		opts.Roots = x509.NewCertPool() // nil would mean the system's
	}
	for _, c := range r.TLS.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	chains, err := leaf.Verify(opts)
	if err != nil {
		err = refuse(leaf, err)
		v.known.put(leaf, verification{roots: roots, from: now, until: now.Add(rememberBad), err: err})
		return leaf, err
	}
	v.known.put(leaf, verification{roots: roots, from: now, until: validity(chains[0], now.Add(remember))})
	return leaf, nil
}

// refusal is an error about a certificate. It does not refer to the certificate, whose contents the client chooses, as
// errors of package x509 do.
type refusal struct {
	text    string
	expired bool
}

func (r *refusal) Error() string { return r.text }

// longestRefusal bounds the bytes of the text of a refusal, which may quote names.
const longestRefusal = 512

func refuse(leaf *x509.Certificate, err error) error {
	text := fmt.Sprintf("verifying client certificate SN=%d: %v", leaf.SerialNumber, err)
	if len(text) > longestRefusal {
		text = strings.ToValidUTF8(text[:longestRefusal], "") + "..."
	}
	var invalid x509.CertificateInvalidError
	return &refusal{text: text, expired: errors.As(err, &invalid) && invalid.Reason == x509.Expired}
}

// chain is the certificates of a connection. It does not keep them alive.
type chain []weak.Pointer[x509.Certificate]

func chainOf(r *http.Request) chain {
	made := make(chain, len(r.TLS.PeerCertificates))
	for i, c := range r.TLS.PeerCertificates {
		made[i] = weak.Make(c)
	}
	return made
}

// is reports whether a chain consists of these certificates, whose first one it has.
func (c chain) is(certs []*x509.Certificate) bool {
	if len(c) != len(certs) {
		return false
	}
	for i := 1; i < len(c); i++ {
		if c[i].Value() != certs[i] {
			return false
		}
	}
	return true
}

// StillValid returns a function that reports whether the certificate of a request is still one of the authorities. It does not
// keep the certificate alive: the connection does, as long as the request lasts.
func (v *Verifier) StillValid(r *http.Request) func(context.Context) bool {
	chain := chainOf(r)
	return func(context.Context) bool {
		state := &tls.ConnectionState{PeerCertificates: make([]*x509.Certificate, len(chain))}
		for i, c := range chain {
			if state.PeerCertificates[i] = c.Value(); state.PeerCertificates[i] == nil {
				return true // the connection has gone, and with it the request
			}
		}
		_, err := v.Verify(&http.Request{TLS: state})
		var refused *refusal
		return err == nil || errors.As(err, &refused) && refused.expired
	}
}

// validity returns when the first certificate of a chain ends, at the latest until.
func validity(chain []*x509.Certificate, until time.Time) time.Time {
	for _, c := range chain {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	return until
}
