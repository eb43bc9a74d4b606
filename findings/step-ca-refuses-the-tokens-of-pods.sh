#!/bin/sh
# github.com/smallstep/certificates v0.30.2 (step-ca), its provisioner K8sSA for service accounts.
#
# Seen: the provisioner wants the issuer "kubernetes/serviceaccount", which only tokens in Secrets have; Kubernetes makes none of those
# by itself since 1.24. The token that each Pod has is issued by the cluster's own URL, and is refused, whatever the audience.
# Expected: the issuer as a setting of the provisioner, or both kinds of token.
# Who is hurt: whoever sets up the documented provisioner for Pods: keys and signature are right, and each request is a 401 that
# fails with "invalid issuer claim". What helps is a Secret with a token that never expires, which the newer tokens were made to avoid.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v3"
	"github.com/go-jose/go-jose/v3/jwt"
	"github.com/smallstep/certificates/authority/provisioner"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	check(err)
	accounts := &provisioner.K8sSA{Type: "K8sSA", Name: "k8sSA-default", PubKeys: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})}
	day := &provisioner.Duration{Duration: 24 * time.Hour}
	check(accounts.Init(provisioner.Config{
		Claims:    provisioner.Claims{MinTLSDur: day, MaxTLSDur: day, DefaultTLSDur: day, DisableSmallstepExtensions: new(bool)},
		Audiences: provisioner.Audiences{Sign: []string{"https://ca.example.com/1.0/sign"}},
	}))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	check(err)
	now := time.Now().Unix()
	for _, c := range []struct {
		name   string
		claims map[string]any
	}{
		{"token of a Secret", map[string]any{"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:a:b",
			"kubernetes.io/serviceaccount/namespace": "a", "kubernetes.io/serviceaccount/service-account.name": "b"}},
		{"token of a Pod", map[string]any{"iss": "https://kubernetes.default.svc.cluster.local", "sub": "system:serviceaccount:a:b",
			"aud": []string{"https://ca.example.com/1.0/sign"}, "iat": now, "nbf": now, "exp": now + 3600,
			"kubernetes.io": map[string]any{"namespace": "a", "serviceaccount": map[string]any{"name": "b", "uid": "c"}}}},
	} {
		token, err := jwt.Signed(signer).Claims(c.claims).CompactSerialize()
		check(err)
		_, err = accounts.AuthorizeSign(context.Background(), token)
		for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
			err = inner
		}
		fmt.Printf("%s: %v\n", c.name, err)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/smallstep/certificates@v0.30.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
token of a Secret: <nil>
token of a Pod: go-jose/go-jose/jwt: validation failed, invalid issuer claim (iss)
EOF
diff want out
