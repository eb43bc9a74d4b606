package authnconfig_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx/authnconfig"
	"github.com/rowlock/rowlock/authx/remote"
)

const head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"

const provider = head + `jwt:
- issuer: {url: https://a, audiences: [x]}
  claimMappings: {username: {claim: sub, prefix: ""}}
`

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":            "empty config data",
		provider:      "",
		head:          "",
		"kind: Other": "Object 'apiVersion' is missing",
		strings.Replace(head, "v1beta1", "v1", 1):                      "no kind",
		strings.Replace(head, "v1beta1", "v1alpha1", 1):                "",
		strings.Replace(provider, "issuer: {", "issuer: {foo: 1, ", 1): `strict decoding error: unknown field "jwt[0].issuer.foo"`,
		head + "anonymous: {enabled: false, conditions: [{path: /a}]}": `anonymous.conditions: Invalid value: [{"path":"/a"}]: enabled should be set to true when conditions are defined`,
		strings.Replace(provider, "https://a", "http://a", 1):          `jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https`,
	} {
		_, err := (authnconfig.Rules{}).Parse([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestReload: changes of the file are applied; invalid ones are counted and not applied.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(head + "anonymous: {enabled: true}\n")
	c, err := authnconfig.Rules{}.Parse([]byte(head + "anonymous: {enabled: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	reloads := make(chan bool, 10)
	p := &authnconfig.Providers{Path: path, Log: slog.New(slog.DiscardHandler), Reloaded: func(ok bool, _ time.Time) { reloads <- ok }}
	text, _ := os.ReadFile(path)
	if err := p.Start(c, text); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for _, step := range []struct {
		text string
		ok   bool
	}{
		{"nonsense", false},
		{head + "jwt: []\nanonymous: {enabled: true}\n", true},
		{head + "anonymous: {enabled: false}\n", false},
	} {
		write(step.text)
		select {
		case ok := <-reloads:
			if ok != step.ok {
				t.Fatalf("%q: %v", step.text, ok)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%q is not seen", step.text)
		}
	}
	stop()
	<-done
}

// TestDeadIssuer: while a changed file waits for an issuer that does not answer, the next version is applied
// at once, and the waiting one is dropped.
func TestDeadIssuer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(head)
	c, err := authnconfig.Rules{}.Parse([]byte(head))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 100)
	dead := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer dead.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: dead.Certificate().Raw})
	issuer := fmt.Sprintf("{url: %s, audiences: [x], certificateAuthority: %q}", dead.URL, ca)
	waits := strings.Replace(provider, "{url: https://a, audiences: [x]}", issuer, 1)
	reloads := make(chan bool, 10)
	p := &authnconfig.Providers{Path: path, Log: slog.New(slog.DiscardHandler), Reloaded: func(ok bool, _ time.Time) { reloads <- ok }}
	if err := p.Start(c, []byte(head)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	next := func() bool {
		t.Helper()
		select {
		case ok := <-reloads:
			return ok
		case <-time.After(time.Minute):
			t.Fatal("nothing is taken over")
			return false
		}
	}
	for _, correction := range []string{head + "jwt: []\n", "nonsense"} {
		write(waits)
		<-asked // it is being taken over
		write(correction)
		// A refusal of the waiting file would be reported first.
		if ok := next(); ok != (correction != "nonsense") {
			t.Errorf("%q: %v", correction, ok)
		}
	}
	stop()
	<-done
	if len(reloads) > 0 {
		t.Errorf("more was taken over: %v", <-reloads)
	}
}

// TestNewestVersion: a server that knows the version v1 reads it and the older ones, and a changed file, too.
func TestNewestVersion(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1", "v1"} {
		text := strings.Replace(head, "v1beta1", version, 1) + "anonymous: {enabled: true, conditions: [{path: /livez}]}\n"
		c, err := authnconfig.Rules{V1: true}.Parse([]byte(text))
		if err != nil || !slices.Equal(c.Anonymous.Paths(), []string{"/livez"}) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(provider))
	f.Add([]byte(head))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := (authnconfig.Rules{}).Parse(text); err == nil && c.Kind == "" {
			t.Fatal("a configuration without kind")
		}
	})
}

// TestEgress: an issuer may be in a network that is reached through a proxy, in releases that know of it and with its gate.
func TestEgress(t *testing.T) {
	in := func(network string) []byte {
		return []byte(strings.Replace(provider, "issuer: {", "issuer: {egressSelectorType: "+network+", ", 1))
	}
	refused := errors.New("refused")
	var asked []string
	on := authnconfig.Rules{V1: true, Egress: func(network string) remote.Dial {
		asked = append(asked, network)
		return func(context.Context, string, string) (net.Conn, error) { return nil, refused }
	}}
	for _, c := range []struct {
		rules   authnconfig.Rules
		network string
		want    string
	}{
		{authnconfig.Rules{}, "cluster", `strict decoding error: unknown field "jwt[0].issuer.egressSelectorType"`},
		{authnconfig.Rules{V1: true}, "cluster", `jwt[0].issuer.egressSelectorType: Invalid value: "cluster": egress selector is not supported when StructuredAuthenticationConfigurationEgressSelector feature gate is disabled`},
		{on, "etcd", `jwt[0].issuer.egressSelectorType: Invalid value: "etcd": egress selector must be either controlplane or cluster`},
	} {
		if _, err := c.rules.Parse(in(c.network)); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.network, err, c.want)
		}
	}
	c, err := on.Parse(in("controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.JWT[0].Dial(t.Context(), "tcp", "a:443"); !errors.Is(err, refused) || !slices.Equal(asked, []string{"controlplane"}) {
		t.Errorf("%v of %q", err, asked)
	}
	if c, err = on.Parse([]byte(provider)); err != nil || c.JWT[0].Dial != nil {
		t.Errorf("an issuer that names no network: %v", err)
	}
}

// TestShorter: errors of releases after 1.32 do not repeat the name of the field.
func TestShorter(t *testing.T) {
	text := []byte(strings.Replace(provider, "https://a", "", 1))
	for rules, want := range map[*authnconfig.Rules]string{{}: "jwt[0].issuer.url: Required value: URL is required", {V1: true}: "jwt[0].issuer.url: Required value"} {
		if _, err := rules.Parse(text); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
