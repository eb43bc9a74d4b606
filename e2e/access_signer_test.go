package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/rowlock/rowlock/authx/serviceaccount/external/signertest"
	"github.com/rowlock/rowlock/e2e/harness"
)

// TestExternalSigner: another process signs the tokens of service accounts, and goes on to
// another key; what it signed is good while it is away, and privileged Pods are refused
// where the server refuses them.
func TestExternalSigner(t *testing.T) {
	t.Parallel()
	signer := signertest.New(t, "first")
	signer.SetBehavior(signertest.Behavior{Longest: 7200})
	s := harness.StartT(t, harness.Options{Args: []string{
		"--service-account-signing-endpoint=" + signer.Serve(t), "--feature-gates=ExternalServiceAccountTokenSigner=true", "--allow-privileged=false",
	}})
	k := s.Kubectl(t)
	eventually(t, "the default service account", func() bool {
		_, err := k.Try("", "get", "serviceaccount", "default")
		return err == nil
	})
	a := newAPI(t, s)
	var asked authenticationv1.TokenRequest
	if err := json.Unmarshal(want(t, a, 201, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", "application/json",
		`{"spec":{"expirationSeconds":172800}}`), &asked); err != nil {
		t.Fatal(err)
	}
	first := asked.Status.Token
	if kid := part(t, first, 0)["kid"]; kid != "first" {
		t.Errorf("signed by %v", kid)
	}
	if claims := part(t, first, 1); claims["exp"].(float64)-claims["iat"].(float64) != 7200 {
		t.Errorf("lives longer than its signer has it: %v", claims)
	}
	whoami := func(token string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/apis/authentication.k8s.io/v1/selfsubjectreviews",
			strings.NewReader(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := a.c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if body := readAll(t, resp); resp.StatusCode != http.StatusCreated || !strings.Contains(body, "system:serviceaccount:default:default") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	signer.Rotate(t, "second")
	second := strings.TrimSpace(k.Run("create", "token", "default"))
	if kid := part(t, second, 0)["kid"]; kid != "second" {
		t.Errorf("signed by %v", kid)
	}
	if keys := k.Run("get", "--raw", "/openid/v1/jwks"); !strings.Contains(keys, `"first"`) || !strings.Contains(keys, `"second"`) {
		t.Error(keys)
	}
	signer.SetBehavior(signertest.Behavior{Longest: 7200, Header: map[string]any{"alg": "ABC"}})
	if got := want(t, a, 500, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", "application/json", "{}"); !strings.Contains(string(got), `failed to generate token: while validating header: bad signing algorithm \"ABC\"`) {
		t.Errorf("%s", got)
	}
	signer.Stop()
	whoami(first)
	whoami(second)
	body := `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}`
	if got := want(t, a, 422, http.MethodPost, "/api/v1/namespaces/default/pods", "application/json", body); !strings.Contains(string(got), "disallowed by cluster policy") {
		t.Errorf("%s", got)
	}
}
