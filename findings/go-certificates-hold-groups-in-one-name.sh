#!/bin/sh
# crypto/x509 of Go 1.26, with which kubeadm, cfssl, cert-manager and Kubernetes' own signers write certificates, read by Java 17
# (OpenJDK); beside OpenSSL 3.0.
#
# Seen: Go writes all organizations of a subject into one relative name with several values, in DER's order (the shortest first),
# and OpenSSL writes a relative name for each. Java's LdapName has one Rdn for Go's, and its getValue is the first value. The
# subject as a text, which proxies pass on, is "O=developers+O=admins" and not "O=admins,O=developers".
# Expected: one form; to Kubernetes' authentication, which takes groups from the organizations, both are the same.
# Who is hurt: services in Java, and rules on the text of a subject in proxies and databases: a user of two groups is in one of
# them if the certificate comes from the cluster, and in both if openssl made it.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"time"
)

func main() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{CommonName: "jane", Organization: []string{"developers", "admins"}},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile("go.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
		panic(err)
	}
	for _, file := range []string{"go.pem", "openssl.pem"} {
		data, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		block, _ := pem.Decode(data)
		read, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			panic(err)
		}
		fmt.Println("Go reads", file, read.Subject.Organization)
	}
}
EOF
go mod init finding 2>/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out openssl.pem -days 1 \
  -subj /O=developers/O=admins/CN=jane 2>/dev/null
cat >Main.java <<'EOF'
import java.io.FileInputStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import javax.naming.ldap.LdapName;
import javax.naming.ldap.Rdn;

public class Main {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            var certificate = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(file));
            var groups = new ArrayList<Object>();
            for (Rdn rdn : new LdapName(certificate.getSubjectX500Principal().getName()).getRdns())
                if (rdn.getType().equals("O")) groups.add(rdn.getValue());
            System.out.println("Java reads " + file + " " + groups);
        }
    }
}
EOF
{
  go run .
  java Main.java go.pem openssl.pem
  for file in go.pem openssl.pem; do openssl x509 -in $file -noout -subject -nameopt RFC2253; done
} | tee out
cat >want <<'EOF'
Go reads go.pem [admins developers]
Go reads openssl.pem [developers admins]
Java reads go.pem [admins]
Java reads openssl.pem [developers, admins]
subject=CN=jane,O=developers+O=admins
subject=CN=jane,O=admins,O=developers
EOF
diff want out
