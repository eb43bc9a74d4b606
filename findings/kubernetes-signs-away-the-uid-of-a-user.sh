#!/bin/sh
# k8s.io/kubernetes v1.37.2 (the signer of kube-controller-manager for CertificateSigningRequests) and k8s.io/apiserver v0.37.2 (the reader of client
# certificates), beside openssl.
#
# Seen: the API server reads a user's UID from the subject of a client certificate (1.3.6.1.4.1.57683.2). A request with it that Kubernetes' own signer
# signs becomes a certificate without it: the signer copies the parsed subject, and Go writes only those attributes of it that it has fields for.
# OpenSSL keeps it. Nothing in the request's status tells that the certificate has another subject than the request.
# Expected: the subject that was approved, or a refusal.
# Who is hurt: whoever gives users a UID by certificate, so that a new jane is not the old one: by the cluster's API for certificates it is lost, and
# audit, webhooks and rules by UID see an empty one.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out key.pem
openssl req -x509 -key key.pem -out ca.pem -days 2 -subj /CN=ca
cat >request.cnf <<'EOF'
oid_section = oids
[oids]
kubernetesUid = 1.3.6.1.4.1.57683.2
[req]
prompt = no
distinguished_name = name
[name]
O = developers
CN = jane
kubernetesUid = 0123-4567
EOF
openssl req -new -config request.cnf -key key.pem -out request.pem
openssl x509 -req -in request.pem -CA ca.pem -CAkey key.pem -CAcreateserial -days 2 -out openssl.pem 2>/dev/null
# The modules that Kubernetes keeps in its own tree are published as v0.37.2.
source=$(go mod download -json k8s.io/kubernetes@v1.37.2 | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
sed -e 's/^module .*/module finding/' -e '/k8s.io\/sample-/d' \
  -e 's/=> \.\/staging\/src\/\(.*\)/=> \1 v0.37.2/' \
  -e 's/^require (/require (\
  k8s.io\/kubernetes v1.37.2/' "$source/go.mod" >go.mod
cat >main.go <<'EOF'
package main

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/kubernetes/pkg/controller/certificates/authority"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(name string) []byte {
	text, err := os.ReadFile(name)
	check(err)
	block, _ := pem.Decode(text)
	return block.Bytes
}

func main() {
	key, err := x509.ParsePKCS8PrivateKey(read("key.pem"))
	check(err)
	ca, err := x509.ParseCertificate(read("ca.pem"))
	check(err)
	signer := &authority.CertificateAuthority{Certificate: ca, PrivateKey: key.(crypto.Signer)}
	signed, err := signer.Sign(read("request.pem"), authority.PermissiveSigningPolicy{TTL: time.Hour, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}})
	check(err)
	for _, c := range []struct {
		name string
		der  []byte
	}{{"OpenSSL", read("openssl.pem")}, {"Kubernetes", signed}} {
		certificate, err := x509.ParseCertificate(c.der)
		check(err)
		response, _, err := x509request.CommonNameUserConversion.User([]*x509.Certificate{certificate})
		check(err)
		fmt.Printf("signed by %s: name %q, groups %q, UID %q\n", c.name, response.User.GetName(), response.User.GetGroups(), response.User.GetUID())
	}
}
EOF
GOWORK=off go run -mod=mod . | tee out
cat >want <<'EOF'
signed by OpenSSL: name "jane", groups ["developers"], UID "0123-4567"
signed by Kubernetes: name "jane", groups ["developers"], UID ""
EOF
diff want out
