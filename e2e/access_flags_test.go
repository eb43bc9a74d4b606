package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestRefusesAccessFlags: invalid flags of authentication or audit stop the start, with the errors that
// operators know.
func TestRefusesAccessFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"
	config := write("authentication.yaml", head+"anonymous: {enabled: true}\n")
	policy := write("policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	ca := write("ca.crt", string(harness.NewAuthority(t, "ca").PEM))
	free, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--token-auth-file", write("tokens.csv", "t,u\n")}, "must have at least 3 columns (token, user name, user uid), found 2"},
		{[]string{"--client-ca-file", write("cut.crt", string(harness.NewAuthority(t, "x").PEM[:200]))}, "no whole PEM block"},
		{[]string{"--requestheader-allowed-names", "x"}, "--requestheader-client-ca-file"},
		{[]string{"--proxy-client-cert-file", ca}, "--proxy-client-cert-file and --proxy-client-key-file go together"},
		{[]string{"--requestheader-client-ca-file", ca, "--requestheader-username-headers", "X-User", "--requestheader-uid-headers", "X-Uid"}, "RemoteRequestHeaderUID"},
		{[]string{"--service-account-issuer", ""}, "service-account-issuer should not be an empty string"},
		{[]string{"--service-account-issuer", "https://a", "--service-account-issuer", "https://a"}, "already specified"},
		{[]string{"--service-account-jwks-uri", "http://a/keys"}, "service-account-jwks-uri requires https scheme, parsed as: http://a/keys"},
		{[]string{"--service-account-max-token-expiration", "10m"}, "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"},
		{[]string{"--service-account-signing-key-file", ca}, "data does not contain a valid RSA or ECDSA private key"},
		{[]string{"--service-account-key-file", write("empty.pem", "")}, "data does not contain any valid RSA or ECDSA public keys"},
		{[]string{"--oidc-client-id", "x"}, "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{[]string{"--oidc-client-id", "x", "--oidc-issuer-url", "http://x"}, `jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https`},
		{[]string{"--oidc-client-id", "x", "--oidc-issuer-url", "https://x", "--oidc-signing-algs", "HS256"}, `oidc: unsupported signing alg: "HS256"`},
		{[]string{"--oidc-client-id", "x", "--authentication-config", config}, "authentication-config file and oidc-* flags are mutually exclusive"},
		{[]string{"--anonymous-auth=false", "--authentication-config", config}, "anonymous: Forbidden: --anonynous-auth flag cannot be set when anonymous field is configured in authentication configuration file"},
		{[]string{"--feature-gates", "StructuredAuthenticationConfiguration=false", "--authentication-config", config}, "set --feature-gates=StructuredAuthenticationConfiguration=true to use authentication-config file"},
		{[]string{"--feature-gates", "AnonymousAuthConfigurableEndpoints=false", "--authentication-config", config}, "anonymous: Forbidden"},
		{[]string{"--authentication-config", write("empty.yaml", "")}, "empty config data"},
		{[]string{"--authentication-token-webhook-config-file", config, "--authentication-token-webhook-version", "v3"}, `invalid argument "v3" for "--authentication-token-webhook-version" flag`},
		{[]string{"--audit-policy-file", write("none.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\n")}, "loaded illegal policy with 0 rules: from file "},
		{[]string{"--audit-policy-file", policy, "--audit-log-path", "-", "--audit-log-mode", "loud"}, `invalid argument "loud" for "--audit-log-mode" flag`},
		{[]string{"--audit-policy-file", policy, "--audit-webhook-config-file", config, "--audit-webhook-truncate-enabled", "--audit-webhook-truncate-max-event-size", "0"}, "invalid audit truncate webhook max event size 0, must be a positive number"},
		{[]string{"--audit-policy-file", policy, "--audit-log-path", "-", "--audit-log-truncate-enabled", "--audit-log-truncate-max-batch-size", "10"}, "must be greater than max event size"},
	} {
		args := append([]string{"serve", "--bind-address", "127.0.0.1", "--data-dir", filepath.Join(dir, "d"), "--secure-port", strconv.Itoa(free)}, tc.args...)
		_, errOut, code := rowlock(t, args...)
		if code != 1 || strings.Count(strings.TrimSpace(errOut), "\n") != 0 || !strings.Contains(errOut, tc.want) {
			t.Errorf("%q: exit code %d, want one line with %q:\n%s", tc.args, code, tc.want, errOut)
		}
	}
}
