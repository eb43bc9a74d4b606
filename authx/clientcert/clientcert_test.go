package clientcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/proxy"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func issue(t testing.TB, parent *authority, change func(*x509.Certificate)) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "jane", Organization: []string{"a", "b"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		template.Subject.CommonName, template.IsCA, template.ExtKeyUsage = "authority", true, nil
		template.KeyUsage |= x509.KeyUsageCertSign
	}
	if change != nil {
		change(template)
	}
	signer := &authority{template, key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func pool(a *authority) func() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return func() *x509.CertPool { return p }
}

func request(a *authority) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = nil
	if a != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{a.cert}}
	}
	return r
}

func TestCertificates(t *testing.T) {
	ca, stranger := issue(t, nil, nil), issue(t, nil, nil)
	a := clientcert.New(pool(ca), false)
	for _, tc := range []struct {
		name string
		cert *authority
		mine bool
		err  string
	}{
		{"none", nil, false, ""},
		{"good", issue(t, ca, nil), true, ""},
		{"without name", issue(t, ca, func(c *x509.Certificate) { c.Subject.CommonName = "" }), false, ""},
		{"for servers", issue(t, ca, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), true, "incompatible key usage"},
		{"expired", issue(t, ca, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), true, "expired"},
		{"not yet", issue(t, ca, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), true, "not yet valid"},
		{"of another authority", issue(t, stranger, nil), true, "unknown authority"},
		{"self-made", issue(t, nil, func(c *x509.Certificate) { c.Subject.CommonName = "admin" }), true, "unknown authority"},
	} {
		for range 2 { // the second time from memory, if at all
			who, mine, err := a.Authenticate(request(tc.cert))
			if mine != tc.mine || tc.err == "" && err != nil || tc.err != "" && (err == nil || who != nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: %v %v %v", tc.name, who, mine, err)
			}
			if tc.name == "good" && (who.Identity.Name != "jane" || !slices.Equal(who.Identity.Groups, []string{"a", "b", "system:authenticated"})) {
				t.Errorf("%+v", who.Identity)
			}
			if tc.name == "good" && !who.CertificateEnds.Equal(tc.cert.cert.NotAfter) {
				t.Errorf("the certificate ends at %v, not %v", who.CertificateEnds, tc.cert.cert.NotAfter)
			}
		}
	}
}

// TestAuthoritiesChange: certificates that were valid under other authorities are verified again.
func TestAuthoritiesChange(t *testing.T) {
	ca, next := issue(t, nil, nil), issue(t, nil, nil)
	roots := pool(ca)
	a := clientcert.New(func() *x509.CertPool { return roots() }, false)
	r := request(issue(t, ca, nil))
	who, _, err := a.Authenticate(r)
	if err != nil || !who.StillValid(t.Context()) {
		t.Fatal(who, err)
	}
	roots = pool(next)
	if who.StillValid(t.Context()) {
		t.Error("a certificate stands without its authority")
	}
	if _, _, err := a.Authenticate(r); err == nil {
		t.Fatal("a certificate outlives its authority")
	}
}

// TestAuthoritiesChangeForAll: requests of a connection end with their authority although an earlier connection, with an equal
// certificate and another intermediate one, has gone.
func TestAuthoritiesChangeForAll(t *testing.T) {
	ca := issue(t, nil, nil)
	middle := issue(t, ca, func(c *x509.Certificate) {
		c.Subject.CommonName, c.IsCA, c.KeyUsage, c.ExtKeyUsage = "middle", true, x509.KeyUsageCertSign, nil
	})
	leaf := issue(t, middle, nil)
	roots := pool(ca)
	a := clientcert.New(func() *x509.CertPool { return roots() }, false)
	// connect makes a request with the leaf, which all connections share, and a copy of the other certificate.
	connect := func() *http.Request {
		r, copied := request(leaf), slices.Clone(middle.cert.Raw)
		other, err := x509.ParseCertificate(copied)
		if err != nil {
			t.Fatal(err)
		}
		r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, other)
		return r
	}
	var gone weak.Pointer[x509.Certificate]
	func() {
		first := connect()
		gone = weak.Make(first.TLS.PeerCertificates[1])
		if who, _, err := a.Authenticate(first); err != nil || !who.StillValid(t.Context()) {
			t.Fatal(who, err)
		}
	}()
	r := connect()
	who, _, err := a.Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); gone.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the certificate of the first connection is kept")
		}
	}
	if !who.StillValid(t.Context()) {
		t.Error("a good certificate does not stand")
	}
	roots = pool(issue(t, nil, nil))
	if who.StillValid(t.Context()) {
		t.Error("a certificate stands without its authority")
	}
	runtime.KeepAlive(r)
}

// TestBadIsRemembered: a bad certificate is looked at once, however many requests come
// with it, until the authorities change or a few seconds have passed.
func TestBadIsRemembered(t *testing.T) {
	ca, next := issue(t, nil, nil), issue(t, nil, nil)
	roots, now := pool(ca), time.Now()
	v := clientcert.NewVerifierAt(func() *x509.CertPool { return roots() }, func() time.Time { return now })
	r := request(issue(t, next, nil))
	looked := func(want int) {
		t.Helper()
		if _, err := v.Verify(r); err == nil || v.Looked() != want {
			t.Fatalf("%v, looked at %d times, want %d", err, v.Looked(), want)
		}
	}
	for range 100 {
		looked(1)
	}
	now = now.Add(time.Minute)
	looked(2)
	roots = pool(issue(t, nil, nil))
	looked(3)
	roots = pool(next)
	if _, err := v.Verify(r); err != nil {
		t.Fatalf("a new authority is not looked at: %v", err)
	}
}

func TestProxy(t *testing.T) {
	ca, users := issue(t, nil, nil), issue(t, nil, nil)
	a := proxy.New(proxy.Config{
		Roots: pool(ca), AllowedNames: []string{"front"}, User: []string{"X-Remote-User", "X-Other"}, Groups: []string{"X-Remote-Group"}, ExtraPrefix: []string{"X-Remote-Extra-"},
	})
	named := func(name string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.Subject.CommonName = name }
	}
	for _, tc := range []struct {
		name, user string
		cert       *authority
		want       string
		err        bool
	}{
		{"allowed", "jane", issue(t, ca, named("front")), "jane", false},
		{"no user", "", issue(t, ca, named("front")), "", false},
		{"no certificate", "jane", nil, "", false},
		{"another name", "jane", issue(t, ca, named("back")), "", true},
		{"another authority", "jane", issue(t, users, named("front")), "", true},
	} {
		r := request(tc.cert)
		r.Header = http.Header{
			"X-Remote-User": {tc.user, "second"}, "X-Remote-Group": {"a,b", "", "c"},
			"X-Remote-Extra-Acme.com%2fproject": {"p", "q"}, "X-Remote-Extra-Bad%zz": {"v"},
		}
		who, mine, err := a.Authenticate(r)
		if (err != nil) != tc.err || tc.want == "" && who != nil || !tc.err && mine != (tc.want != "") {
			t.Errorf("%s: %v %v %v", tc.name, who, mine, err)
			continue
		}
		if len(r.Header) != 0 {
			t.Errorf("%s: headers travel on: %v", tc.name, r.Header)
		}
		if tc.want == "" {
			continue
		}
		id := who.Identity
		if id.Name != tc.want || !slices.Equal(id.Groups, []string{"a,b", "c"}) || !slices.Equal(id.Extra["acme.com/project"], []string{"p", "q"}) || len(id.Extra["bad%zz"]) != 1 {
			t.Errorf("%s: %+v", tc.name, id)
		}
	}
}

func BenchmarkWarm(b *testing.B) {
	ca := issue(b, nil, nil)
	a, r := clientcert.New(pool(ca), false), request(issue(b, ca, nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := a.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestUIDs: a certificate may hold one UID, where that is on.
func TestUIDs(t *testing.T) {
	ca := issue(t, nil, nil)
	on, off := clientcert.New(pool(ca), true), clientcert.New(pool(ca), false)
	for _, c := range []struct {
		name  string
		uids  []any
		want  string
		error string
	}{
		{"none", nil, "", ""},
		{"one", []any{"u1"}, "u1", ""},
		{"two", []any{"u1", "u2"}, "", "expected 1 UID, but found multiple: [u1 u2]"},
		{"empty", []any{""}, "", "UID cannot be an empty string"},
	} {
		r := request(issue(t, ca, func(template *x509.Certificate) {
			for _, uid := range c.uids {
				template.Subject.ExtraNames = append(template.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: uid})
			}
		}))
		for range 2 { // the second time from memory
			who, _, err := on.Authenticate(r)
			if c.error != "" {
				if err == nil || err.Error() != c.error {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			if err != nil || who.Identity.UID != c.want {
				t.Errorf("%s: %+v, %v", c.name, who, err)
			}
		}
		if who, ok, err := off.Authenticate(r); err != nil || !ok || who.Identity.UID != "" {
			t.Errorf("%s, off: %+v, %v", c.name, who, err)
		}
	}
}

// TestCertificatesAreNotKept: of a certificate that was good or bad nothing is kept once its connection has gone.
func TestCertificatesAreNotKept(t *testing.T) {
	ca := issue(t, nil, nil)
	a := clientcert.New(pool(ca), false)
	for name, parent := range map[string]*authority{"good": ca, "bad": nil} {
		t.Run(name, func(t *testing.T) {
			var kept []weak.Pointer[x509.Certificate]
			func() {
				leaf, more := issue(t, parent, nil), issue(t, nil, nil)
				r := request(leaf)
				r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, more.cert)
				who, _, err := a.Authenticate(r)
				if (err == nil) != (parent != nil) || err == nil && !who.StillValid(t.Context()) {
					t.Fatal(who, err)
				}
				kept = append(kept, weak.Make(leaf.cert), weak.Make(more.cert))
			}()
			for end := time.Now().Add(time.Minute); slices.ContainsFunc(kept, func(p weak.Pointer[x509.Certificate]) bool { return p.Value() != nil }); runtime.GC() {
				if time.Now().After(end) {
					t.Fatal("the certificate is kept")
				}
			}
		})
	}
}

// TestLongRefusals: errors about certificates are short, whatever is in these.
func TestLongRefusals(t *testing.T) {
	bad := issue(t, nil, func(c *x509.Certificate) {
		c.SerialNumber = new(big.Int).Lsh(big.NewInt(1), 150)
		c.Subject.CommonName = strings.Repeat("a", 20_000)
	})
	other := issue(t, bad, func(c *x509.Certificate) { c.Issuer = bad.cert.Subject })
	lying := issue(t, nil, func(c *x509.Certificate) { c.Subject.CommonName = bad.cert.Subject.CommonName })
	_, _, err := clientcert.New(pool(lying), false).Authenticate(request(other))
	if err == nil || len(err.Error()) > 520 || !strings.HasPrefix(err.Error(), "verifying client certificate SN=") {
		t.Errorf("%.600v", err)
	}
}
