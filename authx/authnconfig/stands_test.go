package authnconfig_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/rowlock/rowlock/authx/authnconfig"
)

// TestConfigurationChanges: a token is valid as long as the configuration has its issuer, and accepts it for the same user.
func TestConfigurationChanges(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var url string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, Algorithm: "ES256"}}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": url, "jwks_uri": url + "/keys"})
	}))
	defer srv.Close()
	url = srv.URL
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{"iss": url, "aud": "x", "sub": "jan", "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	providers := func(audience, prefix, more string) string {
		return head + fmt.Sprintf("jwt: [{issuer: {url: %s, audiences: [%s], certificateAuthority: %q}, claimMappings: {username: {claim: sub, prefix: %q}}%s}]\n",
			url, audience, ca, prefix, more)
	}
	text := providers("x", "", "")
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := authnconfig.Rules{}.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	reloads := make(chan bool, 10)
	p := &authnconfig.Providers{Path: path, Log: slog.New(slog.DiscardHandler), Reloaded: func(ok bool, _ time.Time) { reloads <- ok }}
	if err := p.Start(c, []byte(text)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	defer func() {
		stop()
		<-done
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		who, _, err := p.AuthenticateToken(ctx, token, nil)
		if err != nil && time.Now().Before(deadline) {
			continue // the issuer is being looked for
		}
		if err != nil || who.Identity.Name != "jan" || !who.StillValid(ctx) {
			t.Fatal(who, err)
		}
		for _, step := range []struct {
			text  string
			valid bool
		}{
			{providers("x", "", `, claimValidationRules: [{expression: "claims.sub == 'jan'"}]`), true},
			{providers("x", "", `, claimValidationRules: [{expression: "claims.sub == 'ann'"}]`), false},
			{providers("x", "login:", ""), false},
			{providers("z", "", ""), false},
			{providers("x", "", ""), true},
			{head + "jwt: []\n", false},
		} {
			if err := os.WriteFile(path+".new", []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			if !<-reloads {
				t.Fatalf("%s is refused", step.text)
			}
			if got := who.StillValid(ctx); got != step.valid {
				t.Errorf("valid: %t with %s", got, step.text)
			}
		}
		return
	}
}
