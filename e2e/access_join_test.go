package e2e

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestJoining: with bootstrap tokens enabled, all clients can read how to reach and
// to check the API; a Secret for a token of an account gets one, which is taken until the
// account goes.
func TestJoining(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--enable-bootstrap-token-auth", "--controllers=*,serviceaccount-token,bootstrapsigner"}})
	k := s.Kubectl(t)
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	// ask is the answer to a GET with a token, or without one.
	ask := func(path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, readAll(t, resp)
	}
	apply := func(manifest string) {
		t.Helper()
		if out, err := k.Try(manifest, "apply", "-f", "-"); err != nil {
			t.Fatal(err, out)
		}
	}
	const public = "/api/v1/namespaces/kube-public/configmaps"
	anybodyReads := func(text string) {
		t.Helper()
		eventually(t, text, func() bool {
			code, body := ask(public+"/cluster-info", "")
			return code == http.StatusOK && strings.Contains(body, text)
		})
	}
	anybodyReads("certificate-authority-data: ")
	if code, body := ask(public, ""); code != http.StatusForbidden {
		t.Errorf("anybody may list: %d %s", code, body)
	}
	apply(`apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-abcdef, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-signing: "true"}
`)
	anybodyReads("jws-kubeconfig-abcdef")

	k.Run("create", "serviceaccount", "robot")
	apply(`apiVersion: v1
kind: Secret
metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
`)
	token := ""
	eventually(t, "a token", func() bool {
		raw, err := base64.StdEncoding.DecodeString(k.Run("get", "secret", "robot-token", "-o", "jsonpath={.data.token}"))
		token = string(raw)
		return err == nil && strings.Count(token, ".") == 2
	})
	if ca, err := base64.StdEncoding.DecodeString(k.Run("get", "secret", "robot-token", "-o", `jsonpath={.data.ca\.crt}`)); err != nil || !strings.Contains(string(ca), "BEGIN CERTIFICATE") {
		t.Errorf("the authority in the Secret: %q %v", ca, err)
	}
	// The answer to a forbidden request names the user.
	if code, body := ask(public, token); code != http.StatusForbidden || !strings.Contains(body, "system:serviceaccount:default:robot") {
		t.Errorf("the token is not taken: %d %s", code, body)
	}
	k.Run("delete", "serviceaccount", "robot")
	eventually(t, "no Secret", func() bool { return k.Run("get", "secrets", "-o", "name") == "" })
	if code, body := ask(public, token); code != http.StatusUnauthorized {
		t.Errorf("the token of an account that is gone is taken: %d %s", code, body)
	}
}
