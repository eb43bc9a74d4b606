package datadir

import (
	"bytes"
	"crypto"
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
	"slices"
	"time"
)

// due reports whether a certificate has reached two thirds of its lifetime and must be renewed. So must one
// that is not valid yet: the clock was ahead when it was made.
func due(c *x509.Certificate, now time.Time) bool {
	life := min(c.NotAfter.Sub(c.NotBefore), caLife) // of authorities, the time before them is not theirs
	return now.Before(c.NotBefore) || !now.Before(c.NotAfter.Add(-life/3))
}

// holds reports whether a certificate is good at a time.
func holds(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter)
}

// Renew renews certificates that have reached two thirds of their lifetime, and certificates that do not
// belong to the authority any more. The authority itself gets a successor only on request: servers that share
// one must continue to share it. It returns the names of the changed files.
//
// Clients that trust the old authority trust its successor from the start: as long as the old one is valid,
// ca.crt contains both, and the serving certificate comes with one of the successor that the old authority
// has signed.
//
// Clocks may be wrong. An authority that is not valid yet, or has expired, replaces no existing certificate,
// and gets no successor: its signatures would be useless, and the existing certificates may be valid by the
// right time. Certificates made by a clock that was ahead are replaced; an authority's validity begins with
// that of its predecessor, so that it is valid by then.
func (d *Dir) Renew(now time.Time, authority bool) (changed []string, err error) {
	return d.renew(now, func() error {
		if !authority {
			return nil
		}
		return d.succeed(now, false)
	})
}

// Replace is Renew with a successor even for an expired authority. Clients that trust only that one cannot
// connect any more in any case.
func (d *Dir) Replace(now time.Time) (changed []string, err error) {
	return d.renew(now, func() error { return d.succeed(now, true) })
}

func (d *Dir) renew(now time.Time, succeed func() error) (changed []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Path == "" { // the process ends before a certificate in memory does
		return nil, nil
	}
	release, err := lockExclusive(d.Path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	defer release()
	before := d.marks()
	if err = succeed(); err == nil {
		o := d.options
		o.Now, o.renews = now, true
		err = d.fill(o)
	}
	if err == nil && d.front != nil {
		err = d.front.fill(now)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", d.Path, err)
	}
	after := d.marks()
	for i, path := range d.kept() {
		if !bytes.Equal(before[i], after[i]) {
			changed = append(changed, filepath.Base(path))
		}
	}
	return changed, nil
}

func (d *Dir) kept() []string {
	list := []string{d.CACert, d.ServingCert, d.AdminCert, d.AdminKubeconfig}
	if d.front != nil {
		list = append(list, d.front.CACert, d.front.Cert)
	}
	return list
}

func (d *Dir) marks() (all [][]byte) {
	for _, path := range d.kept() {
		data, err := os.ReadFile(path)
		if err != nil {
			data = nil
		}
		all = append(all, data)
	}
	return all
}

// Ends returns when the certificates end, by the names of their files.
func (d *Dir) Ends() map[string]time.Time {
	if d.Path == "" {
		return nil // with the process
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ends := map[string]time.Time{}
	for _, path := range d.kept() {
		if path == d.AdminKubeconfig {
			continue
		}
		if list, err := readCertificates(path); err == nil && len(list) > 0 {
			ends[filepath.Base(path)] = list[0].NotAfter
		}
	}
	return ends
}

// The successor of an authority, until it takes over, and the old authority's certificate for it.
func (d *Dir) nextCert() string { return filepath.Join(d.Path, "ca-next.crt") }
func (d *Dir) nextKey() string  { return filepath.Join(d.Path, "ca-next.key") }
func (d *Dir) cross() string    { return filepath.Join(d.Path, "ca-cross.crt") }

// succeed gives the authority a successor once it is due; ended: after its end as well.
func (d *Dir) succeed(now time.Time, ended bool) error {
	ca, err := d.authority(now)
	if err != nil || !due(ca.cert, now) || !holds(ca.cert, now) && (!ended || now.Before(ca.cert.NotBefore)) {
		return err
	}
	old, err := readCertificates(d.CACert)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := authorityTemplate(pkix.Name{CommonName: "rowlock-ca-" + now.UTC().Format("2006-01")}, ca.cert.NotBefore, now)
	var texts [2][]byte
	for i, signer := range []*pair{ca, {template, key}} {
		if template.SerialNumber, err = newSerial(); err != nil {
			return err
		}
		t := *template
		if t.NotAfter.After(signer.cert.NotAfter) {
			t.NotAfter = signer.cert.NotAfter
		}
		der, err := x509.CreateCertificate(rand.Reader, &t, signer.cert, key.Public(), signer.key)
		if err != nil {
			return err
		}
		texts[i] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	bundle := append(texts[1], unexpired(old, now)...)
	keyText, err := encodeKey(key)
	if err != nil {
		return err
	}
	// Until the key has its name, all of this can be left out without harm; from then on
	// finishSuccession finishes it.
	for _, f := range []struct {
		path string
		data []byte
	}{{d.nextCert(), bundle}, {d.cross(), texts[0]}, {d.nextKey(), keyText}} {
		if err := writeFile(f.path, f.data); err != nil {
			return err
		}
	}
	if err := os.Rename(d.nextKey(), d.CAKey); err != nil {
		return err
	}
	return os.Rename(d.nextCert(), d.CACert)
}

// finishSuccession finishes a succession that was cut short: a key that is the successor's
// already gets the certificates that go with it.
func (d *Dir) finishSuccession() error {
	next, err := readCertificates(d.nextCert())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	text, err := os.ReadFile(d.CAKey)
	if err != nil {
		return err
	}
	key, err := parseKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", d.CAKey, err)
	}
	if len(next) == 0 || !fits(next[0], key) {
		return errors.Join(os.Remove(d.nextCert()), ignoreMissing(os.Remove(d.nextKey())))
	}
	return os.Rename(d.nextCert(), d.CACert)
}

// unexpired returns the certificates that have not expired, as PEM.
func unexpired(list []*x509.Certificate, now time.Time) (text []byte) {
	for _, c := range list {
		if now.Before(c.NotAfter) {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
		}
	}
	return text
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// chain returns the intermediate certificate for a serving certificate: the successor as signed by the old
// authority, while that one is valid.
func (d *Dir) chain(ca *pair, now time.Time) []byte {
	list, err := readCertificates(d.cross())
	if err != nil || len(list) == 0 || !fits(list[0], ca.key) || !now.Before(list[0].NotAfter) {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: list[0].Raw})
}

// fits reports whether a certificate is of a key.
func fits(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(key.Public())
}

func readCertificates(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, c)
	}
	return slices.Clip(list), nil
}
