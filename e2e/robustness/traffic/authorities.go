//go:build unix

package traffic

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	authoritiesFile = "client-authorities.crt"
	// authorityTime is for how long certificates are valid, before and after now: longer than clocks are wrong.
	authorityTime = 100 * time.Hour
)

// authority is an authority of client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        []byte // the certificate as PEM
}

func newAuthority(name string) (*authority, error) {
	a := &authority{}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	der, key, err := a.sign(template)
	if err != nil {
		return nil, err
	}
	a.key, a.text = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.certificate, err = x509.ParseCertificate(der)
	return a, err
}

// sign signs a certificate with a new key: by the authority, or by itself as long as the authority has no key.
func (a *authority) sign(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(now.UnixNano()), true
	template.NotBefore, template.NotAfter = now.Add(-authorityTime), now.Add(authorityTime)
	parent, by := a.certificate, a.key
	if by == nil {
		parent, by = template, key
	}
	der, err = x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	return der, key, err
}

// client returns the certificate of a user.
func (a *authority) client(user string) (tls.Certificate, error) {
	der, key, err := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: user}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// writeAuthorities writes the file of authorities in the folder of a server: one that has signed nothing, and others.
func writeAuthorities(folder string, others ...*authority) error {
	path := filepath.Join(folder, authoritiesFile)
	first, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		var a *authority
		if a, err = newAuthority("nothing"); err == nil {
			first = a.text
		}
	}
	if err != nil {
		return err
	}
	if _, rest := pem.Decode(first); len(rest) > 0 {
		first = first[:len(first)-len(rest)]
	}
	text := bytes.Clone(first)
	for _, a := range others {
		text = append(text, a.text...)
	}
	// A server that starts reads either the former file or this one.
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// authorities adds an authority to the files of the servers, and removes it. Meanwhile a user sends requests with a certificate of that
// authority, on connections that go on.
func (c *client) authorities(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	for turn := 0; ctx.Err() == nil; turn++ {
		if !c.authority(ctx, admin, fmt.Sprintf("%s-%d", c.label(), turn), turn) {
			return
		}
	}
}

// authority does that with one authority.
func (c *client) authority(ctx context.Context, admin *client, name string, turn int) bool {
	a, err := newAuthority(name)
	var certificate tls.Certificate
	if err == nil {
		certificate, err = a.client(name)
	}
	if err != nil {
		c.rec.Stuck("a certificate: " + err.Error())
		return false
	}
	objects := [][2]string{{rolesPath + "roles", named(name, "", "", "configmaps", `"get"`)}, {rolesPath + "rolebindings", boundTo(name, "Role", name, userSubject(name))}}
	if !c.made(ctx, admin, objects...) {
		return false
	}
	defer c.tidy(ctx, objects[0][0]+"/"+name, objects[1][0]+"/"+name)
	defer c.trustOnly()
	user := c.Traffic.client(name, c.proto, false)
	defer user.http.CloseIdleConnections()
	user.token = ""
	// Also where the server does not name the authority as one that it accepts.
	user.http.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	get := func(path string) use { return use{method: http.MethodGet, path: path} }
	all := []way{{name: name, uses: []use{get(redMaps + "/" + name)}, nevers: []use{get(redMaps + "/secret-of-red"), get(redMaps + "?limit=1")}}}
	user.useWays(ctx, all, 300*time.Millisecond)
	if !c.trust(name, true, a) {
		return false
	}
	user.useWays(ctx, all, max(c.granted(turn), trying))
	if !c.trust(name, false) {
		return false
	}
	user.useWays(ctx, all, afterwards)
	return true
}

// trust has all servers trust some authorities and no other ones, and records that as a right that is granted or revoked.
func (c *client) trust(subject string, granted bool, authorities ...*authority) bool {
	r := &history.Right{Subject: subject, Granted: granted, Call: c.rec.Now(), Outcome: history.OK}
	if !c.trustOnly(authorities...) {
		return false
	}
	r.Return = c.rec.Now()
	c.rec.Add(r)
	return true
}

// trustOnly writes the files of all servers.
func (c *client) trustOnly(authorities ...*authority) bool {
	for server := range c.c.Len() {
		if err := writeAuthorities(c.c.Folder(server), authorities...); err != nil {
			c.rec.Stuck("a file of authorities: " + err.Error())
			return false
		}
	}
	return true
}
