package oidc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/oidc"
)

// TestDistributedClaims: groups that are to be had elsewhere are fetched, and believed
// if their issuer signed them for us.
func TestDistributedClaims(t *testing.T) {
	s, other := newIssuer(t), newIssuer(t)
	var inPlain atomic.Int32
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inPlain.Add(1)
		s.Config.Handler.ServeHTTP(w, r)
	}))
	defer plain.Close()
	s.Config.Handler.(*http.ServeMux).HandleFunc("/groups/", func(w http.ResponseWriter, r *http.Request) {
		claims := map[string]any{"iss": s.URL, "aud": "app", "exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"far"}}
		signer := s
		switch strings.TrimPrefix(r.URL.Path, "/groups/") {
		case "good":
			if r.Header.Get("Authorization") != "Bearer key" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		case "audience":
			claims["aud"] = "another"
		case "without":
			delete(claims, "groups")
		case "expired":
			claims["exp"] = 1
		case "moved":
			http.Redirect(w, r, s.URL+"/groups/good", http.StatusFound)
			return
		case "downgraded":
			http.Redirect(w, r, plain.URL+"/groups/good", http.StatusFound)
			return
		case "other": // of another issuer, with the same authority
			claims["iss"], signer = other.URL, other
		case "forged":
			signer = other
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, sign(t, signer.alg, signer.key, signer.id, claims))
	})
	empty := ""
	a := s.start(t, func(p *oidc.Provider) {
		p.Issuer.CertificateAuthority += other.ca()
		p.ClaimMappings.Groups = oidc.Mapping{Claim: "groups", Prefix: &empty}
	})
	at := func(path string) map[string]any {
		return map[string]any{"_claim_names": map[string]string{"groups": "src"}, "_claim_sources": map[string]any{"src": map[string]string{"endpoint": s.URL + "/groups/" + path, "access_token": "key"}}}
	}
	both := at("good")
	both["groups"] = []string{"near"}
	for _, tc := range []struct {
		name   string
		claims map[string]any
		groups []string
		err    string
	}{
		{"elsewhere", at("good"), []string{"far"}, ""},
		{"of another issuer", at("other"), []string{"far"}, ""},
		{"here too", both, []string{"near"}, ""},
		{"of another claim", map[string]any{"_claim_names": map[string]string{"x": "src"}, "_claim_sources": map[string]any{"src": map[string]string{"endpoint": "https://127.0.0.1:1/"}}}, nil, ""},
		{"aggregated", map[string]any{"_claim_names": map[string]string{"groups": "src"}, "_claim_sources": map[string]any{"src": map[string]string{"JWT": "x"}}}, nil, ""},
		{"no sources", map[string]any{"_claim_names": map[string]string{"groups": "src"}}, nil, "source does not exist"},
		{"no such source", map[string]any{"_claim_names": map[string]string{"groups": "src"}, "_claim_sources": map[string]any{}}, nil, "source does not exist"},
		{"not there", at("none"), nil, "404"},
		{"for another audience", at("audience"), nil, "verify distributed claim token"},
		{"without the claim", at("without"), nil, "did not contain claim: groups"},
		{"expired", at("expired"), nil, "token is expired"},
		{"forged", at("forged"), nil, "failed to verify"},
		{"moved", at("moved"), []string{"far"}, ""},
		{"moved to plain text", at("downgraded"), nil, "which is no https URL"},
		{"in plain text", map[string]any{"_claim_names": map[string]string{"groups": "src"}, "_claim_sources": map[string]any{"src": map[string]string{"endpoint": "http://127.0.0.1:1/"}}}, nil, "is no https URL"},
	} {
		who, _, err := a.AuthenticateToken(t.Context(), s.token(t, tc.claims), nil)
		if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) || err == nil && !slices.Equal(who.Identity.Groups, tc.groups) {
			t.Errorf("%s: %+v %v", tc.name, who, err)
		}
	}
	if n := inPlain.Load(); n != 0 {
		t.Errorf("%d requests were sent in plain text", n)
	}
}

// TestDistributedClaimsAreBounded: however many clients have good tokens with a distributed claim, few claims are fetched at
// once, fewer for one client, and the same claim is not fetched for each request.
func TestDistributedClaimsAreBounded(t *testing.T) {
	s := newIssuer(t)
	var fetched atomic.Int32
	entered, free := make(chan struct{}, 1000), make(chan struct{})
	s.Config.Handler.(*http.ServeMux).HandleFunc("/groups", func(w http.ResponseWriter, r *http.Request) {
		fetched.Add(1)
		entered <- struct{}{}
		<-free
		fmt.Fprint(w, sign(t, s.alg, s.key, s.id, map[string]any{"iss": s.URL, "aud": "app", "exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"far"}}))
	})
	type client struct{}
	empty := ""
	a := s.start(t, func(p *oidc.Provider) {
		p.ClaimMappings.Groups = oidc.Mapping{Claim: "groups", Prefix: &empty}
		p.Source = func(ctx context.Context) any { return ctx.Value(client{}) }
	})
	judge := func(from, key int) error {
		token := s.token(t, map[string]any{"_claim_names": map[string]string{"groups": "src"}, "_claim_sources": map[string]any{"src": map[string]string{"endpoint": s.URL + "/groups", "access_token": fmt.Sprint(key)}}})
		_, _, err := a.AuthenticateToken(context.WithValue(t.Context(), client{}, from), token, nil)
		return err
	}
	results := make(chan error, 1000)
	for from := range 8 {
		for i := range 8 {
			go func() { results <- judge(from, 100*from+i) }()
		}
	}
	for range 64 {
		<-entered
	}
	for from := range 10 { // among them those that have no claim under way
		if err := judge(from, 1000+from); !errors.Is(err, authx.ErrBusy) {
			t.Errorf("a claim of client %d: %v", from, err)
		}
	}
	close(free)
	for range 64 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for range 10 {
		if err := judge(1, 101); err != nil {
			t.Error(err)
		}
	}
	if n := fetched.Load(); n != 64 {
		t.Errorf("%d claims were fetched, want 64", n)
	}
}

// TestStepsOfAToken: the expressions about one token share their steps.
func TestStepsOfAToken(t *testing.T) {
	s := newIssuer(t)
	token := s.token(t, map[string]any{"few": make([]int, 150), "many": make([]int, 8000)})
	for n, want := range []string{"", "", "the values are too large to be compared or formatted"} {
		a := s.start(t, func(p *oidc.Provider) {
			for i := range n {
				p.ClaimValidationRules = append(p.ClaimValidationRules, oidc.ClaimValidationRule{Expression: fmt.Sprintf("dyn(claims.few).all(x%d, claims.many == claims.many)", i)})
			}
		})
		if _, _, err := a.AuthenticateToken(t.Context(), token, nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d rules: %v", n, err)
		}
	}
}

// TestEndlessDiscovery: of a document that does not end little is read.
func TestEndlessDiscovery(t *testing.T) {
	s := newIssuer(t)
	var sent atomic.Int64
	endless := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"issuer":"`)
		for piece := strings.Repeat("x", 1<<20); sent.Load() < 64<<20; sent.Add(1 << 20) {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	p := oidc.Provider{Issuer: oidc.Issuer{URL: endless.URL, Audiences: []string{"app"}, CertificateAuthority: s.ca()}}
	p.ClaimMappings.Username = oidc.Mapping{Expression: "claims.sub"}
	a, err := oidc.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go a.Run(ctx, func(err error) { failed <- err })
	if err := <-failed; a.Ready() || sent.Load() > 32<<20 {
		t.Errorf("%v after %d bytes", err, sent.Load())
	}
}

// TestDiscoveryURL: the document is at the configured URL, and has to be
// of the issuer.
func TestDiscoveryURL(t *testing.T) {
	s := newIssuer(t)
	var asked atomic.Int32
	reported := atomic.Value{}
	reported.Store("https://issuer.example")
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/inside/discovery" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": reported.Load(), "jwks_uri": s.URL + "/keys"})
	}))
	defer elsewhere.Close()
	empty, at := "", elsewhere.URL+"/inside/discovery"
	p := oidc.Provider{Issuer: oidc.Issuer{URL: "https://issuer.example", DiscoveryURL: &at, Audiences: []string{"app"}, CertificateAuthority: s.ca()}}
	p.ClaimMappings.Username = oidc.Mapping{Claim: "sub", Prefix: &empty}
	if errs := oidc.Validate([]oidc.Provider{p}, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	a, err := oidc.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Run(t.Context(), func(err error) { t.Error(err) })
	who, _, err := a.AuthenticateToken(t.Context(), sign(t, jose.RS256, s.key, s.id, map[string]any{"iss": "https://issuer.example", "aud": "app", "sub": "jane", "exp": time.Now().Add(time.Hour).Unix()}), nil)
	if err != nil || who.Identity.Name != "jane" || asked.Load() != 1 {
		t.Fatalf("%v %v, asked %d times", who, err, asked.Load())
	}
	reported.Store(elsewhere.URL)
	b, err := oidc.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go b.Run(t.Context(), func(err error) { failed <- err })
	if err := <-failed; !strings.Contains(err.Error(), "issuer") || b.Ready() {
		t.Fatalf("a document of another issuer: %v", err)
	}
}
