package serviceaccount_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/serviceaccount"
)

const issuer = "https://kubernetes.default.svc"

// objects is a Lookup by "plural/namespace/name".
type objects struct {
	objects map[string]serviceaccount.Object
	secrets map[string]serviceaccount.Secret
}

func (o *objects) Object(_ context.Context, plural, namespace, name string) (serviceaccount.Object, bool, error) {
	obj, ok := o.objects[plural+"/"+namespace+"/"+name]
	return obj, ok, nil
}

func (o *objects) Secret(_ context.Context, namespace, name string) (serviceaccount.Secret, bool, error) {
	s, ok := o.secrets[namespace+"/"+name]
	return s, ok, nil
}

type fixture struct {
	*objects
	key    *rsa.PrivateKey
	local  *serviceaccount.Local
	signer *serviceaccount.Signer
	auth   *serviceaccount.Authenticator
	now    time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{key: key, now: time.Unix(1_700_000_000, 0), objects: &objects{
		objects: map[string]serviceaccount.Object{
			"serviceaccounts/ns/app": {UID: "u1"}, "pods/ns/p": {UID: "u2"}, "secrets/ns/s": {UID: "u3"}, "nodes//n": {UID: "u4"},
		},
		secrets: map[string]serviceaccount.Secret{},
	}}
	if f.local, err = serviceaccount.NewLocal(key); err != nil {
		t.Fatal(err)
	}
	f.signer = serviceaccount.NewSigner(issuer, f.local)
	f.auth = serviceaccount.New(serviceaccount.Config{
		Issuers: []string{issuer}, Keys: serviceaccount.Fixed{f.local.Key()}, Audiences: []string{issuer},
		Lookup: f.objects, Clock: func() time.Time { return f.now },
	})
	return f
}

func (f *fixture) issue(t testing.TB, change func(*authx.Grant)) string {
	t.Helper()
	g := &authx.Grant{
		Namespace: "ns", Account: authx.Ref{Name: "app", UID: "u1"}, Audiences: []string{issuer},
		Issued: f.now, Expires: f.now.Add(time.Hour),
	}
	if change != nil {
		change(g)
	}
	token, _, err := f.signer.Issue(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestBound(t *testing.T) {
	pod := func(g *authx.Grant) {
		g.Pod, g.Node = &authx.Ref{Name: "p", UID: "u2"}, &authx.Ref{Name: "n", UID: "u4"}
	}
	node := func(g *authx.Grant) { g.Node = &authx.Ref{Name: "n", UID: "u4"} }
	secret := func(g *authx.Grant) { g.Secret = &authx.Ref{Name: "s", UID: "u3"} }
	for _, tc := range []struct {
		name  string
		grant func(*authx.Grant)
		then  func(f *fixture) // what happens after the token has been used once
		err   string
	}{
		{"account", nil, nil, ""},
		{"pod", pod, nil, ""},
		{"account goes", nil, func(f *fixture) { delete(f.objects.objects, "serviceaccounts/ns/app") }, `serviceaccounts "app" not found`},
		{"account anew", nil, func(f *fixture) { f.objects.objects["serviceaccounts/ns/app"] = serviceaccount.Object{UID: "x"} }, "service account UID (x) does not match claim (u1)"},
		{"account just deleted", nil, func(f *fixture) {
			f.objects.objects["serviceaccounts/ns/app"] = serviceaccount.Object{UID: "u1", Deleted: f.now.Add(-30 * time.Second)}
		}, ""},
		{"account long deleted", nil, func(f *fixture) {
			f.objects.objects["serviceaccounts/ns/app"] = serviceaccount.Object{UID: "u1", Deleted: f.now.Add(-61 * time.Second)}
		}, "service account token has been invalidated"},
		{"pod goes", pod, func(f *fixture) { delete(f.objects.objects, "pods/ns/p") }, "service account token has been invalidated"},
		{"pod anew", pod, func(f *fixture) { f.objects.objects["pods/ns/p"] = serviceaccount.Object{UID: "x"} }, "pod UID (x) does not match service account pod ref claim (u2)"},
		{"node of a pod goes", pod, func(f *fixture) { delete(f.objects.objects, "nodes//n") }, ""},
		{"node goes", node, func(f *fixture) { delete(f.objects.objects, "nodes//n") }, "service account token has been invalidated"},
		{"secret goes", secret, func(f *fixture) { delete(f.objects.objects, "secrets/ns/s") }, "service account token has been invalidated"},
		{"time goes", nil, func(f *fixture) { f.now = f.now.Add(time.Hour + 61*time.Second) }, "service account token has expired"},
		{"within leeway", nil, func(f *fixture) { f.now = f.now.Add(time.Hour + 59*time.Second) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			token := f.issue(t, tc.grant)
			who, mine, err := f.auth.AuthenticateToken(t.Context(), token, nil)
			if err != nil || !mine || who.Identity.Name != "system:serviceaccount:ns:app" || who.Identity.UID != "u1" || !who.Identity.InGroup("system:serviceaccounts:ns") {
				t.Fatalf("%v %v %v", who, mine, err)
			}
			if tc.name == "pod" && (who.Identity.Extra[authx.PodName][0] != "p" || who.Identity.Extra[authx.NodeUID][0] != "u4") {
				t.Fatal(who.Identity.Extra)
			}
			if tc.then != nil {
				tc.then(f)
			}
			_, _, err = f.auth.AuthenticateToken(t.Context(), token, nil)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if stands := who.StillValid(t.Context()); stands != (tc.err == "" || tc.name == "time goes") {
				t.Fatalf("the token stands: %v", stands)
			}
		})
	}
}

func TestClaimsAsWritten(t *testing.T) {
	f := newFixture(t)
	token := f.issue(t, func(g *authx.Grant) { g.Pod = &authx.Ref{Name: "p", UID: "u2"} })
	var parts [2]map[string]any
	for i := range parts {
		data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &parts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if id, ok := parts[1]["jti"].(string); !ok || len(id) != 36 {
		t.Errorf("jti %v", parts[1]["jti"])
	}
	delete(parts[1], "jti")
	want := [2]map[string]any{
		{"alg": "RS256", "kid": f.local.Key().ID},
		{
			"aud": []any{issuer}, "iss": issuer, "sub": "system:serviceaccount:ns:app",
			"iat": float64(f.now.Unix()), "nbf": float64(f.now.Unix()), "exp": float64(f.now.Add(time.Hour).Unix()),
			"kubernetes.io": map[string]any{
				"namespace": "ns", "serviceaccount": map[string]any{"name": "app", "uid": "u1"}, "pod": map[string]any{"name": "p", "uid": "u2"},
			},
		},
	}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Errorf("header and claims (-want +got):\n%s", diff)
	}
}

func TestAudiences(t *testing.T) {
	f := newFixture(t)
	token := f.issue(t, func(g *authx.Grant) { g.Audiences = []string{"vault", issuer} })
	for _, tc := range []struct {
		want, got []string
		err       string
	}{
		{nil, []string{issuer}, ""},
		{[]string{"vault"}, []string{"vault"}, ""},
		{[]string{issuer, "q", "vault"}, []string{issuer, "vault"}, ""}, // in the order of the request
		{[]string{"vault", issuer, "vault"}, []string{"vault", issuer, "vault"}, ""},
		{[]string{"q"}, nil, `token audiences ["vault" "https://kubernetes.default.svc"] is invalid for the target audiences ["q"]`},
	} {
		for range 2 { // cold and warm
			who, _, err := f.auth.AuthenticateToken(t.Context(), token, tc.want)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("%v: %v", tc.want, err)
				}
				continue
			}
			if err != nil || !slices.Equal(who.Audiences, tc.got) {
				t.Fatalf("%v: %v %v", tc.want, who, err)
			}
		}
	}
}

// forge signs any claims in any way.
func forge(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestForgeries(t *testing.T) {
	f := newFixture(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	kid := f.local.Key().ID
	good := func(change map[string]any) map[string]any {
		c := map[string]any{
			"iss": issuer, "aud": []string{issuer}, "sub": "system:serviceaccount:ns:app",
			"exp": f.now.Add(time.Hour).Unix(), "iat": f.now.Unix(), "nbf": f.now.Unix(),
			"kubernetes.io": map[string]any{"namespace": "ns", "serviceaccount": map[string]any{"name": "app", "uid": "u1"}},
		}
		for k, v := range change {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return c
	}
	der, _ := x509.MarshalPKIXPublicKey(f.key.Public())
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	payload, _ := json.Marshal(good(nil))
	b64 := base64.RawURLEncoding.EncodeToString
	valid := f.issue(t, nil)
	for _, tc := range []struct {
		name, token, err string
	}{
		{"good", forge(t, jose.RS256, f.key, kid, good(nil)), ""},
		{"no kid", forge(t, jose.RS256, f.key, "", good(nil)), ""},
		{"no end", forge(t, jose.RS256, f.key, kid, good(map[string]any{"exp": nil})), ""},
		{"audience as text", forge(t, jose.RS256, f.key, kid, good(map[string]any{"aud": issuer})), ""},
		{"another key", forge(t, jose.RS256, other, kid, good(nil)), "square/go-jose: error in cryptographic primitive"},
		{"unknown kid", forge(t, jose.RS256, f.key, "q", good(nil)), "invalid signature, no keys found"},
		{"public key as secret", forge(t, jose.HS256, public, kid, good(nil)), "square/go-jose: error in cryptographic primitive"},
		{"another algorithm of the key", forge(t, jose.PS256, f.key, kid, good(nil)), "square/go-jose: error in cryptographic primitive"},
		{"none", b64([]byte(`{"alg":"none"}`)) + "." + b64(payload) + ".", "square/go-jose: error in cryptographic primitive"},
		{"tampered", valid + "x", "square/go-jose: error in cryptographic primitive"},
		{"expired", forge(t, jose.RS256, f.key, kid, good(map[string]any{"exp": f.now.Add(-2 * time.Minute).Unix()})), "service account token has expired"},
		{"not yet", forge(t, jose.RS256, f.key, kid, good(map[string]any{"nbf": f.now.Add(2 * time.Minute).Unix()})), "service account token is not valid yet"},
		{"future", forge(t, jose.RS256, f.key, kid, good(map[string]any{"iat": f.now.Add(2 * time.Minute).Unix()})), "service account token is issued in the future"},
		{"nothing bound", forge(t, jose.RS256, f.key, kid, good(map[string]any{"kubernetes.io": nil})), "service account token has no kubernetes.io claim"},
		{"posing as legacy", forge(t, jose.RS256, f.key, kid, good(map[string]any{"iss": serviceaccount.LegacyIssuer})), "namespace claim is missing"},
	} {
		who, mine, err := f.auth.AuthenticateToken(t.Context(), tc.token, nil)
		if !mine || tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err || who != nil) {
			t.Errorf("%s: %v %v %v", tc.name, who, mine, err)
		}
	}
	for _, token := range []string{"", "a.b.c", "abc", forge(t, jose.RS256, f.key, kid, map[string]any{"iss": "https://q"}), strings.Repeat(".", 1000)} {
		if _, mine, err := f.auth.AuthenticateToken(t.Context(), token, nil); mine || err != nil {
			t.Errorf("%.20q: %v %v", token, mine, err)
		}
	}
}

func TestLegacy(t *testing.T) {
	f := newFixture(t)
	token := forge(t, jose.RS256, f.key, "", map[string]any{
		"iss": serviceaccount.LegacyIssuer, "sub": "system:serviceaccount:ns:app",
		"kubernetes.io/serviceaccount/namespace": "ns", "kubernetes.io/serviceaccount/secret.name": "s",
		"kubernetes.io/serviceaccount/service-account.name": "app", "kubernetes.io/serviceaccount/service-account.uid": "u1",
	})
	var used *authx.Authenticated
	for _, tc := range []struct {
		secret *serviceaccount.Secret
		err    string
	}{
		{nil, "Token has been invalidated"},
		{&serviceaccount.Secret{Token: []byte("q")}, "Token does not match server's copy"},
		{&serviceaccount.Secret{Token: []byte(token)}, ""},
		{&serviceaccount.Secret{Token: []byte(token), Invalid: true}, "the token in secret ns/s for service account ns/app has been marked invalid."},
	} {
		if tc.secret != nil {
			f.secrets["ns/s"] = *tc.secret
		}
		if used != nil && used.StillValid(t.Context()) != (tc.err == "") {
			t.Errorf("%v: the token stands: %v", tc.secret, tc.err != "")
		}
		who, mine, err := f.auth.AuthenticateToken(t.Context(), token, nil)
		if !mine || tc.err == "" && (err != nil || who.Identity.Name != "system:serviceaccount:ns:app") || tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)) {
			t.Errorf("%v: %v %v", tc.secret, who, err)
		}
		if err == nil {
			used = who
		}
	}
}

func FuzzToken(f *testing.F) {
	x := newFixture(f)
	f.Add(x.issue(f, nil))
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		who, mine, err := x.auth.AuthenticateToken(t.Context(), token, nil)
		if mine && err == nil && who.Identity.Name != "system:serviceaccount:ns:app" {
			t.Fatalf("%q is %v", token, who.Identity)
		}
	})
}

func BenchmarkWarm(b *testing.B) {
	f := newFixture(b)
	token := f.issue(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := f.auth.AuthenticateToken(b.Context(), token, nil); err != nil {
			b.Fatal(err)
		}
	}
}
