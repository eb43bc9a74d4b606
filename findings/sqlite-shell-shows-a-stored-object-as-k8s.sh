#!/bin/sh
# sqlite3 3.40.1 of Debian 12 (the shell), with k8s.io/api v0.37.2 for an object in Kubernetes' Protobuf.
#
# Seen: a BLOB is printed up to its first zero byte in the modes list, csv, line and markdown. Kubernetes' Protobuf begins with "k8s" and a
# zero, so that every object is "k8s", without an error. In JSON all bytes are there, each as a character of its own.
# Expected: all bytes, or hexadecimal digits, as psql prints them and as the mode quote does.
# Who is hurt: operators of clusters that keep objects in SQLite (k3s' kine and others): a table exported with -csv before a repair
# holds the keys and no values, and length(value) shows the right size.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}
	var stored bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &stored); err != nil {
		panic(err)
	}
	fmt.Printf("CREATE TABLE kine (name TEXT, value BLOB); INSERT INTO kine VALUES ('/registry/configmaps/b/a', x'%x');\n", stored.Bytes())
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/api@v0.37.2 k8s.io/client-go@v0.37.2 2>/dev/null
shell() { LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/sqlite3 -batch "$@"; }
go run -mod=mod . | shell kine.db
{
  for mode in list csv line json markdown quote; do
    printf '%s: ' $mode
    shell -noheader -cmd ".mode $mode" kine.db 'SELECT value FROM kine' | tr -d '\r' | tr '\n' ' ' | cut -c1-60
  done
  printf 'length: '
  shell kine.db 'SELECT length(value) FROM kine'
} | tee out
cat >want <<'EOF'
list: k8s 
csv: k8s 
line: value = k8s 
json: [{"value":"k8s\u0000\n\u000f\n\u0002v1\u0012\tConfigMap\u001
markdown: | value | |-------| | k8s   | 
quote: X'6b3873000a0f0a0276311209436f6e6669674d617012140a120a016112
length: 47
EOF
diff want out
