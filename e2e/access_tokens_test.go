package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	hour   = 3600
	minute = 60
)

// part decodes one part of a token.
func part(t testing.TB, token string, n int) map[string]any {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[n])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func encoded(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// with returns a copy of claims with some changed; nil takes one away.
func with(claims map[string]any, change map[string]any) map[string]any {
	c := maps.Clone(claims)
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

// confused are tokens with good claims and every signature that is not one: there
// is no key in them that the verifier should take, whatever they claim.
func confused(t testing.TB, good string, key *rsa.PrivateKey, id string) map[string]string {
	t.Helper()
	parts, claims := strings.Split(good, "."), part(t, good, 1)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := encoded(map[string]any{"alg": "RS256", "jwk": jose.JSONWebKey{Key: stranger.Public(), KeyID: id}})
	signed := harness.SignJWT(t, jose.RS256, stranger, id, claims)
	forged := map[string]string{
		"another key":                signed,
		"another key, no id":         harness.SignJWT(t, jose.RS256, stranger, "", claims),
		"another key, another id":    harness.SignJWT(t, jose.RS256, stranger, "x", claims),
		"a key on a curve":           harness.SignJWT(t, jose.ES256, curve, id, claims),
		"HS256 by the DER key":       harness.SignJWT(t, jose.HS256, der, id, claims),
		"HS256 by the PEM key":       harness.SignJWT(t, jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), id, claims),
		"HS256 by the modulus":       harness.SignJWT(t, jose.HS256, key.N.Bytes(), id, claims),
		"the key another token says": own + "." + parts[1] + "." + strings.Split(signed, ".")[2],
		"no signature":               parts[0] + "." + parts[1] + ".",
		"two parts":                  parts[0] + "." + parts[1],
		"four parts":                 good + ".x",
		"a signature cut short":      good[:len(good)-8],
		"a signature made longer":    good + "AAAA",
		"an empty header":            encoded(map[string]any{}) + "." + parts[1] + "." + parts[2],
		"JSON serialization":         fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, parts[0], parts[1], parts[2]),
		"changed claims":             parts[0] + "." + encoded(with(claims, map[string]any{"exp": time.Now().Unix() + 9*hour})) + "." + parts[2],
		"a critical extension":       encoded(map[string]any{"alg": "RS256", "kid": id, "crit": []string{"b64"}, "b64": false}) + "." + parts[1] + "." + parts[2],
	}
	for _, alg := range []string{"none", "None", "NONE", "nOnE", "", "HS256", "RS512", "PS256", "ES256"} {
		header := encoded(map[string]any{"alg": alg, "kid": id})
		forged["alg "+alg] = header + "." + parts[1] + "."
		forged["alg "+alg+", old signature"] = header + "." + parts[1] + "." + parts[2]
	}
	return forged
}

// bound asks for a token of an account.
func (a *access) tokenOf(t testing.TB, namespace, account, spec string) string {
	t.Helper()
	answer := a.admin(t, "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token", `{"spec":`+spec+`}`)
	var review struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(answer), &review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Token
}

func attackAccountTokens(t *testing.T, a *access) {
	a.namespace(t, "tokens")
	a.admin(t, "POST", "/api/v1/namespaces/tokens/serviceaccounts", `{"metadata":{"name":"app"}}`)
	good := a.tokenOf(t, "tokens", "app", `{}`)
	const app = "system:serviceaccount:tokens:app system:serviceaccounts,system:serviceaccounts:tokens"
	if got := a.who(t, call{token: good}); got != app {
		t.Fatalf("a good token is of %s", got)
	}
	claims, id := part(t, good, 1), fmt.Sprint(part(t, good, 0)["kid"])
	for name, token := range confused(t, good, a.key, id) {
		if got := a.who(t, call{token: token}); got != "401" {
			t.Errorf("%s: taken as %s", name, got)
		}
	}
	now := time.Now().Unix()
	kubernetes := claims["kubernetes.io"].(map[string]any)
	sa := kubernetes["serviceaccount"].(map[string]any)
	for _, tc := range []struct {
		name   string
		change map[string]any
		good   bool
	}{
		{"as it was", nil, true},
		{"expired", map[string]any{"exp": now - 2*minute}, false},
		{"not valid yet", map[string]any{"nbf": now + 2*minute}, false},
		{"issued in the future", map[string]any{"iat": now + 2*minute}, false},
		{"an end that is no time", map[string]any{"exp": "tomorrow"}, false},
		{"an end that is far", map[string]any{"exp": 1e300}, false},
		{"another issuer", map[string]any{"iss": "https://elsewhere"}, false},
		{"no issuer", map[string]any{"iss": nil}, false},
		{"issuers", map[string]any{"iss": []string{"https://kubernetes.default.svc"}}, false},
		{"another audience", map[string]any{"aud": []string{"vault"}}, false},
		{"an audience like ours", map[string]any{"aud": "https://kubernetes.default.svc/"}, false},
		{"one audience of several", map[string]any{"aud": []string{"vault", "https://kubernetes.default.svc"}}, true},
		{"no account", map[string]any{"kubernetes.io": nil}, false},
		{"another uid", map[string]any{"kubernetes.io": with(kubernetes, map[string]any{"serviceaccount": with(sa, map[string]any{"uid": "x"})})}, false},
		{"another namespace", map[string]any{"kubernetes.io": with(kubernetes, map[string]any{"namespace": "kube-system"})}, false},
		{"another name", map[string]any{"kubernetes.io": with(kubernetes, map[string]any{"serviceaccount": with(sa, map[string]any{"name": "default"})})}, false},
		{"a pod that is not", map[string]any{"kubernetes.io": with(kubernetes, map[string]any{"pod": map[string]any{"name": "p", "uid": "u"}})}, false},
		{"a node that is not", map[string]any{"kubernetes.io": with(kubernetes, map[string]any{"node": map[string]any{"name": "n", "uid": "u"}})}, false},
		{"a legacy token without a Secret", map[string]any{
			"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:tokens:app", "kubernetes.io/serviceaccount/namespace": "tokens", "kubernetes.io/serviceaccount/secret.name": "none",
			"kubernetes.io/serviceaccount/service-account.name": "app", "kubernetes.io/serviceaccount/service-account.uid": sa["uid"],
		}, false},
	} {
		want := "401"
		if tc.good {
			want = app
		}
		token := harness.SignJWT(t, jose.RS256, a.key, id, with(claims, tc.change))
		if got := a.who(t, call{token: token}); got != want {
			t.Errorf("%s: taken as %s, want %s", tc.name, got, want)
		}
	}
	if got := a.who(t, call{token: a.tokenOf(t, "tokens", "app", `{"audiences":["vault"]}`)}); got != "401" {
		t.Errorf("a token for another audience: taken as %s", got)
	}
	for _, header := range []string{"Bearer", "Bearer ", "Basic YWRtaW46YWRtaW4=", good, "Token " + good} {
		if got := a.who(t, call{headers: http.Header{"Authorization": {header}}}); got != "anonymous" {
			t.Errorf("%.20q: taken as %s", header, got)
		}
	}
	if got := a.who(t, call{headers: http.Header{"Authorization": {"Bearer nonsense", "Bearer " + harness.AdminToken}}}); got != "401" {
		t.Errorf("a second header is looked at: %s", got)
	}
	if code, _ := a.do(t, call{path: "/api/v1/namespaces?access_token=" + harness.AdminToken}); code != http.StatusForbidden {
		t.Errorf("a token in the query: %d", code)
	}
}

// revokeTokens: an object to which a token is bound is deleted, and both servers refuse the token within a
// second. A recreated account does not revive it.
func revokeTokens(t *testing.T, a *access) {
	a.namespace(t, "revoke")
	const base = "/api/v1/namespaces/revoke/"
	a.admin(t, "POST", base+"serviceaccounts", `{"metadata":{"name":"app"}}`)
	const pod = `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"app","automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`
	a.admin(t, "POST", base+"pods", pod)
	a.admin(t, "POST", base+"secrets", `{"metadata":{"name":"s"}}`)
	a.admin(t, "POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`)
	ref := func(kind, name string) string {
		return fmt.Sprintf(`{"boundObjectRef":{"apiVersion":"v1","kind":%q,"name":%q}}`, kind, name)
	}
	for _, tc := range []struct{ name, spec, deleted, again string }{
		{"pod", ref("Pod", "p"), base + "pods/p?gracePeriodSeconds=0", pod},
		{"secret", ref("Secret", "s"), base + "secrets/s", `{"metadata":{"name":"s"}}`},
		{"node", ref("Node", "n"), "/api/v1/nodes/n", `{"metadata":{"name":"n"}}`},
		{"account", "{}", base + "serviceaccounts/app", `{"metadata":{"name":"app"}}`},
	} {
		token := a.tokenOf(t, "revoke", "app", tc.spec)
		for _, other := range []bool{false, true, false, true} { // warm
			eventually(t, tc.name+": the token works", func() bool {
				return strings.HasPrefix(a.who(t, call{token: token, other: other}), "system:serviceaccount:revoke:app ")
			})
		}
		a.admin(t, "DELETE", tc.deleted, "")
		for _, other := range []bool{false, true} {
			eventually(t, tc.name+": the token is refused", func() bool { return a.who(t, call{token: token, other: other}) == "401" })
		}
		path, _, _ := strings.Cut(tc.deleted, "?")
		a.admin(t, "POST", path[:strings.LastIndexByte(path, '/')], tc.again)
		for _, other := range []bool{false, true} {
			if got := a.who(t, call{token: token, other: other}); got != "401" {
				t.Errorf("%s: made anew, its old token is taken as %s", tc.name, got)
			}
		}
	}
	attackLegacyTokens(t, a)
}

// attackLegacyTokens: a token in a Secret is good while the Secret holds it.
func attackLegacyTokens(t *testing.T, a *access) {
	const secrets = "/api/v1/namespaces/revoke/secrets"
	var account struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(a.admin(t, "GET", "/api/v1/namespaces/revoke/serviceaccounts/app", "")), &account); err != nil {
		t.Fatal(err)
	}
	token := harness.SignJWT(t, jose.RS256, a.key, "", map[string]any{
		"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:revoke:app", "kubernetes.io/serviceaccount/namespace": "revoke", "kubernetes.io/serviceaccount/secret.name": "legacy",
		"kubernetes.io/serviceaccount/service-account.name": "app", "kubernetes.io/serviceaccount/service-account.uid": account.Metadata.UID,
	})
	secret := fmt.Sprintf(`{"metadata":{"name":"legacy","annotations":{"kubernetes.io/service-account.name":"app"}},"type":"kubernetes.io/service-account-token","data":{"token":%q}}`,
		base64.StdEncoding.EncodeToString([]byte(token)))
	taken := func() bool {
		return a.who(t, call{token: token}) == "system:serviceaccount:revoke:app system:serviceaccounts,system:serviceaccounts:revoke"
	}
	refused := func() bool { return a.who(t, call{token: token}) == "401" }
	if !refused() {
		t.Error("a token whose Secret is not there works")
	}
	a.admin(t, "POST", secrets, secret)
	eventually(t, "the token of a Secret", taken)
	eventually(t, "its use is noted", func() bool { // again after midnight
		return taken() && strings.Contains(a.admin(t, "GET", secrets+"/legacy", ""), `"kubernetes.io/legacy-token-last-used":"`+time.Now().UTC().Format(time.DateOnly))
	})
	a.admin(t, "PATCH", secrets+"/legacy", `{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2020-01-01"}}}`)
	eventually(t, "a token marked invalid", refused)
	a.admin(t, "PATCH", secrets+"/legacy", `{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":null}}}`)
	eventually(t, "and not any more", taken)
	a.admin(t, "PATCH", secrets+"/legacy", `{"data":{"token":"eA=="}}`)
	eventually(t, "a Secret with another token", refused)
	a.admin(t, "DELETE", secrets+"/legacy", "")
}

func attackIssuerTokens(t *testing.T, a *access) {
	good := a.issuer.Token(t, with(a.issuer.Claims("jane"), map[string]any{"groups": []string{"system:masters", "devs"}}))
	const jane = "oidc:jane oidc:system:masters,oidc:devs"
	eventually(t, "the provider is found", func() bool { return a.who(t, call{token: good}) == jane })
	key, id := a.issuer.Key()
	for name, token := range confused(t, good, key, id) {
		if got := a.who(t, call{token: token}); got != "401" {
			t.Errorf("%s: taken as %s", name, got)
		}
	}
	now := time.Now().Unix()
	for name, change := range map[string]map[string]any{
		"expired":              {"exp": now - 1},
		"without an end":       {"exp": nil},
		"not valid yet":        {"nbf": now + 2*minute},
		"another audience":     {"aud": "other"},
		"no audience":          {"aud": nil},
		"an audience like it":  {"aud": "app "},
		"another issuer":       {"iss": a.issuer.URL + "/"},
		"the server as issuer": {"iss": "https://kubernetes.default.svc"},
		"no user":              {"sub": nil},
		"a user that is none":  {"sub": 7},
		"groups that are none": {"groups": map[string]any{"a": 1}},
	} {
		if got := a.who(t, call{token: a.issuer.Token(t, with(a.issuer.Claims("jane"), change))}); got != "401" {
			t.Errorf("%s: taken as %s", name, got)
		}
	}
	for _, tc := range []struct {
		id   any
		want bool
	}{{"f81d", true}, {"", false}, {7, false}} {
		token := a.issuer.Token(t, with(a.issuer.Claims("jane"), map[string]any{"jti": tc.id}))
		_, self := a.do(t, call{token: token, method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: `{}`})
		review := a.admin(t, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"spec":{"token":%q}}`, token))
		for _, answer := range []string{self, review} {
			if !strings.Contains(answer, `"oidc:jane"`) || strings.Contains(answer, `"authentication.kubernetes.io/credential-id":["JTI=f81d"]`) != tc.want || strings.Contains(answer, "credential-id") != tc.want {
				t.Errorf("jti %v: %s", tc.id, answer)
			}
		}
	}
	a.issuer.Rotate(t, "second")
	next := a.issuer.Token(t, a.issuer.Claims("jane"))
	eventually(t, "a token of the new key", func() bool { return a.who(t, call{token: next}) == "oidc:jane" })
	eventually(t, "a token of the old key is refused", func() bool { return a.who(t, call{token: good}) == "401" })
}
