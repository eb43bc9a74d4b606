#!/bin/sh
# github.com/coreos/go-oidc/v3 v3.17.0 with github.com/go-jose/go-jose/v4 v4.1.8 (sign-in by OIDC in kube-apiserver, Argo CD,
# Dex, Vault and others), compared with jose 6.2.18 (npm).
#
# Seen: one key of a set that go-jose cannot read makes the whole set unreadable: an Ed448 or secp256k1 key for signatures,
# an X25519 key for encryption, a kty of the future. Tokens that another key of the set has signed are refused.
# Expected: RFC 7517, section 5: a reader should ignore the keys that it does not understand. (A comment in go-jose quotes
# the sentence, where it returns the error for the key.) jose in Node verifies the same tokens with the same sets.
# Who is hurt: everybody who signs in, once the identity provider adds a key for another application, or for a
# rotation to another algorithm, to the set that all of them read. It begins when the readers fetch the keys again, maybe days
# later: the old tokens of each cluster are fine until then.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "used"}}, nil))
	claims := `{"iss":"https://issuer.test","aud":"cluster","sub":"a","exp":4102444800}`
	token := must(must(signer.Sign([]byte(claims))).CompactSerialize())
	used := string(must(json.Marshal(jose.JSONWebKey{Key: &key.PublicKey, KeyID: "used", Algorithm: "RS256", Use: "sig"})))
	other := map[string]string{
		"1 none": "",
		"2 Ed448": `,{"kty":"OKP","crv":"Ed448","kid":"b","use":"sig","alg":"EdDSA",
			"x":"X9dEm1m0Yf0s54fsYWrUah2hNCSFpw4fig6nXYDpZ3jt8SR2m0bHBhvWeD3x5Q9s0foavq_oJWGA"}`,
		"3 secp256k1": `,{"kty":"EC","crv":"secp256k1","kid":"b","use":"sig","alg":"ES256K",
			"x":"eb5mfvncu6xVoGKVzocLBwKb_NstzijZWfKBWxb4F5g","y":"SDradyajxGVdpPv8DhEIqP0XtEimhVQZnEfQj_sQ1Lg"}`,
		"4 X25519": `,{"kty":"OKP","crv":"X25519","kid":"b","use":"enc","alg":"ECDH-ES",
			"x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
		"5 a new kty": `,{"kty":"NEW","kid":"b","use":"sig","alg":"NEW1"}`,
	}
	sets := map[string]string{}
	for _, name := range []string{"1 none", "2 Ed448", "3 secp256k1", "4 X25519", "5 a new kty"} {
		set := `{"keys":[` + used + other[name] + `]}`
		sets[name] = set
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(set))
		}))
		keys := oidc.NewRemoteKeySet(context.Background(), server.URL)
		_, err := oidc.NewVerifier("https://issuer.test", keys, &oidc.Config{ClientID: "cluster"}).Verify(context.Background(), token)
		result := "verified"
		if err != nil {
			text, _, _ := strings.Cut(err.Error(), " {")
			result = text[strings.LastIndex(text, "go-jose/go-jose:"):]
		}
		fmt.Printf("go-oidc, further key %s: %s\n", name[2:], result)
		server.Close()
	}
	text := must(json.Marshal(map[string]any{"token": token, "sets": sets}))
	if err := os.WriteFile("sets.json", text, 0o600); err != nil {
		panic(err)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/coreos/go-oidc/v3@v3.17.0 github.com/go-jose/go-jose/v4@v4.1.8 2>/dev/null
go run -mod=mod . | tee out
npm install --silent --no-save --prefix . jose@6.2.18 >/dev/null
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import { createLocalJWKSet, jwtVerify } from 'jose'

const { token, sets } = JSON.parse(readFileSync('sets.json', 'utf8'))
for (const [name, set] of Object.entries(sets).sort()) {
  const result = await jwtVerify(token, createLocalJWKSet(JSON.parse(set)), { audience: 'cluster' }).then(() => 'verified', (e) => e.message)
  console.log(`jose, further key ${name.slice(2)}: ${result}`)
}
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
go-oidc, further key none: verified
go-oidc, further key Ed448: go-jose/go-jose: unsupported key type/format
go-oidc, further key secp256k1: go-jose/go-jose: unsupported elliptic curve 'secp256k1'
go-oidc, further key X25519: go-jose/go-jose: unsupported key type/format
go-oidc, further key a new kty: go-jose/go-jose: unsupported key type/format
jose, further key none: verified
jose, further key Ed448: verified
jose, further key secp256k1: verified
jose, further key X25519: verified
jose, further key a new kty: verified
EOF
diff want out
