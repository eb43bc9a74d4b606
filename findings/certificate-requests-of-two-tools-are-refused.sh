#!/bin/sh
# keytool of OpenJDK 17, certtool 3.7.9 of GnuTLS (Debian 12), and ParseCSR of k8s.io/kubectl v0.37.2, which has the condition that
# the API server and client-go check a CertificateSigningRequest by.
#
# Seen: both tools write "BEGIN NEW CERTIFICATE REQUEST", the heading of old servers of Netscape and Microsoft. OpenSSL reads it,
# and the content is as every other; Kubernetes refuses it for the heading. Without "NEW " the same bytes are accepted.
# Expected: RFC 7468, section 7: the tools ought not to write it, and parsers may treat the two as equal.
# Who is hurt: Java services and users of GnuTLS that ask a cluster for a certificate: "PEM block type must be CERTIFICATE
# REQUEST", about a file in which they read CERTIFICATE REQUEST.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download gnutls-bin=3.7.9-2+deb12u7 libgnutls30 libgnutls-dane0 libunbound8 libtasn1-6 libevent-2.1-7 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
keytool -genkeypair -keyalg EC -groupname secp256r1 -dname 'CN=system:node:a, O=system:nodes' -keystore store -storepass secret \
  -alias a >/dev/null 2>&1
keytool -certreq -keystore store -storepass secret -alias a >keytool.csr 2>/dev/null
printf 'cn = "system:node:a"\norganization = "system:nodes"\n' >template
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/certtool --generate-privkey --key-type ecdsa --outfile key.pem >/dev/null 2>&1
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/certtool --generate-request --load-privkey key.pem --template template \
  --outfile certtool.csr >/dev/null 2>&1
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout other.pem -subj '/O=system:nodes/CN=system:node:a' \
  -out openssl.csr 2>/dev/null
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"fmt"
	"os"

	"k8s.io/kubectl/pkg/util/certificate"
)

func main() {
	for _, tool := range []string{"keytool", "certtool", "openssl"} {
		data, err := os.ReadFile(tool + ".csr")
		if err != nil {
			panic(err)
		}
		for _, data := range [][]byte{data, bytes.ReplaceAll(data, []byte(" NEW "), []byte(" "))} {
			request, err := certificate.ParseCSR(data)
			if err != nil {
				fmt.Println(tool, "-", err)
				continue
			}
			fmt.Println(tool, "-", request.Subject)
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.37.2 2>/dev/null
{
  openssl req -in keytool.csr -noout -subject
  openssl req -in certtool.csr -noout -subject
  go run -mod=mod .
} | tee out
cat >want <<'EOF'
subject=O = system:nodes, CN = system:node:a
subject=O = system:nodes, CN = system:node:a
keytool - PEM block type must be CERTIFICATE REQUEST
keytool - CN=system:node:a,O=system:nodes
certtool - PEM block type must be CERTIFICATE REQUEST
certtool - CN=system:node:a,O=system:nodes
openssl - CN=system:node:a,O=system:nodes
openssl - CN=system:node:a,O=system:nodes
EOF
diff want out
