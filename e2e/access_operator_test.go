package e2e

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// file writes a file of a test, in one stroke.
func file(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path+".new", mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines counts the lines of a log that contain all of some texts.
func lines(log string, texts ...string) int {
	n := 0
	for line := range strings.Lines(log) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			n++
		}
	}
	return n
}

// TestLoggedForOperators: a doubtful setting that does not stop the start is in the log
// once, with the flag and the file, and without secrets.
func TestLoggedForOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer hook.Close()
	kubeconfig := webhookKubeconfig(t, dir, hook)
	if err := os.Chmod(kubeconfig, 0o644); err != nil {
		t.Fatal(err)
	}
	policy := file(t, filepath.Join(dir, "policy"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, user: [jane]}]\n", 0o644)
	first := harness.StartT(t, harness.Options{})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	own := map[string]os.FileMode{"ca.key": 0o640, "admin.kubeconfig": 0o604, "service-account.key": 0o644, "serving.key": 0o660, "rowlock.db": 0o644}
	for name, mode := range own {
		if err := os.Chmod(filepath.Join(first.DataDir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	o := first.Options()
	tokens := file(t, filepath.Join(dir, "tokens"), harness.AdminToken+`,admin,0,"system:masters"`+"\nt0p5ecret,ann,1\n,bob,2\nan0ther,,3\nt0p5ecret,eve,4\n", 0o640)
	o.Args = append(o.Args, "--authentication-token-webhook-config-file", kubeconfig, "--audit-log-path", "-", "--token-auth-file", tokens,
		"--audit-policy-file", policy, "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false,api/all", "--enable-priority-and-fairness=false")
	s := harness.StartT(t, o)
	a := &access{s: s, clients: map[*certificate]*http.Client{}}
	var err error
	if a.roots, err = s.CA(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got := a.who(t, call{token: fmt.Sprintf("unkn0wn-%d", i)}); got != "401" {
			t.Errorf("a token that nobody can judge: taken as %s", got)
		}
	}
	if got := a.who(t, call{token: "an0ther"}); got != "401" {
		t.Errorf("a token without a user: taken as %s", got)
	}
	if got := a.who(t, call{token: "t0p5ecret"}); got != "eve" {
		t.Errorf("a token that is there twice: taken as %s", got)
	}
	if code, answer := a.do(t, call{path: "/apis", token: "t0p5ecret"}); code != http.StatusOK || strings.Contains(answer, "flowcontrol") {
		t.Errorf("flow control is off: %d %s", code, answer)
	}
	logged(t, s, "the token webhook failed")
	log := s.Log()
	want := [][]string{
		{"the token webhook failed", "flag=--authentication-token-webhook-config-file", kubeconfig},
		{"mode=0644", "flag=--authentication-token-webhook-config-file", kubeconfig},
		{`unknown field`, "rules[0].user", "flag=--audit-policy-file", policy},
		{"line 3 has an empty token", "flag=--token-auth-file", tokens},
		{"line 4 has an empty user name", "flag=--token-auth-file", tokens},
		{"line 5 has the token of line 2", "flag=--token-auth-file", tokens},
		{"mode=0640", "flag=--token-auth-file", tokens},
	}
	for name, mode := range own {
		want = append(want, []string{fmt.Sprintf("mode=%04o", mode), "flag=--data-dir", "file=" + filepath.Join(s.DataDir, name) + " "})
	}
	for _, texts := range want {
		if n := lines(log, texts...); n != 1 {
			t.Errorf("%d lines with %q:\n%s", n, texts, log)
		}
	}
	for _, secret := range []string{"t0p5ecret", "an0ther", "unkn0wn"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has the token %s:\n%s", secret, log)
		}
	}
}

// TestNothingIsRecorded: an audit log without a policy records nothing, which the log notes; the server starts.
func TestNothingIsRecorded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := harness.StartT(t, harness.Options{Args: []string{"--audit-log-path", path}})
	logged(t, s, "no request is recorded: that needs --audit-policy-file too")
	if n := lines(s.Log(), "no request is recorded", "flag=--audit-log-path", path); n != 1 {
		t.Errorf("%d lines:\n%s", n, s.Log())
	}
}

// TestAlwaysAllowByFile: if a configuration file lets everybody do everything, no request without a
// credential is accepted: from the start, once the file is changed to that, and however anonymous
// requests were enabled; without AlwaysAllow they are accepted as before.
func TestAlwaysAllowByFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: rbac}"
	open, narrow := head+", {type: AlwaysAllow, name: alwaysallow}]", head+"]"
	block := file(t, filepath.Join(dir, "authentication"), "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n", 0o600)
	for name, tc := range map[string]struct {
		args    []string
		welcome bool // without AlwaysAllow
	}{
		"default":  {nil, true},
		"by flag":  {[]string{"--anonymous-auth=true"}, true},
		"by block": {[]string{"--authentication-config", block}, true},
		"off":      {[]string{"--anonymous-auth=false"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, filepath.Join(t.TempDir(), "authorization"), narrow, 0o600)
			a := startAuthorization(t, append(tc.args, "--authorization-config", path)...)
			welcome, shut := map[bool]string{true: "200", false: "401"}[tc.welcome], "401"
			stranger := func() string {
				code, _ := a.do(t, call{path: "/version"})
				return fmt.Sprint(code)
			}
			reviewed := func() bool {
				return strings.Contains(a.admin(t, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":" x"}}`), "system:anonymous")
			}
			if got := stranger(); got != welcome || reviewed() != tc.welcome {
				t.Fatalf("without AlwaysAllow: %s, want %s", got, welcome)
			}
			for range 2 {
				file(t, path, open, 0o600)
				mustCome(t, "AlwaysAllow", func() bool { code, _ := a.as(t, "jane", "GET", podsPath, ""); return code == http.StatusOK })
				if got := stranger(); got != shut || reviewed() {
					t.Errorf("with AlwaysAllow: %s", got)
				}
				if code, _ := a.do(t, call{path: "/api/v1/secrets"}); code != http.StatusUnauthorized {
					t.Errorf("with AlwaysAllow a stranger's request for secrets: %d", code)
				}
				file(t, path, narrow, 0o600)
				mustCome(t, "no AlwaysAllow", func() bool { code, _ := a.as(t, "jane", "GET", podsPath, ""); return code == http.StatusForbidden })
				if got := stranger(); got != welcome {
					t.Errorf("without AlwaysAllow again: %s, want %s", got, welcome)
				}
			}
		})
	}
	t.Run("from the start", func(t *testing.T) {
		t.Parallel()
		path := file(t, filepath.Join(t.TempDir(), "authorization"), open, 0o600)
		a := startAuthorization(t, "--authorization-config", path)
		if code, _ := a.do(t, call{path: "/version"}); code != http.StatusUnauthorized {
			t.Errorf("%d", code)
		}
		logged(t, a.s, "AnonymousAuth is not allowed with the AlwaysAllow authorizer")
	})
}

// TestNamedAuthorities: a handshake names the authorities of users and of proxies, the
// server's own among them, as they are at that moment.
func TestNamedAuthorities(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users, more, proxies := harness.NewAuthority(t, "users"), harness.NewAuthority(t, "more users"), harness.NewAuthority(t, "proxies")
	path := file(t, filepath.Join(dir, "users.crt"), string(users.PEM), 0o644)
	front := file(t, filepath.Join(dir, "proxies.crt"), string(proxies.PEM), 0o644)
	s := harness.StartT(t, harness.Options{Args: []string{
		"--client-ca-file", path, "--requestheader-client-ca-file", front, "--requestheader-username-headers=X-Remote-User", "--requestheader-allowed-names=front",
	}})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if got := strings.Join(named(t, s, version), ", "); got != "rowlock-ca, users, proxies" {
			t.Errorf("%x: %s", version, got)
		}
	}
	file(t, path, string(users.PEM)+string(more.PEM), 0o644)
	mustCome(t, "the name of a new authority", func() bool { return slices.Contains(named(t, s, tls.VersionTLS13), "more users") })
	file(t, path, string(more.PEM), 0o644)
	mustCome(t, "the end of an old one", func() bool { return !slices.Contains(named(t, s, tls.VersionTLS13), "users") })
	if !slices.Contains(named(t, s, tls.VersionTLS12), "proxies") {
		t.Error("the authority of proxies is not named any more")
	}
}

// named returns the common names of the authorities that a server asks for certificates of.
func named(t *testing.T, s *harness.Server, version uint16) []string {
	t.Helper()
	roots, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: roots, MaxVersion: version,
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, raw := range info.AcceptableCAs {
				var rdn pkix.RDNSequence
				if _, err := asn1.Unmarshal(raw, &rdn); err != nil {
					return nil, err
				}
				var n pkix.Name
				n.FillFromRDNSequence(&rdn)
				names = append(names, n.CommonName)
			}
			return &tls.Certificate{}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	return names
}
