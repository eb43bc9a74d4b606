#!/bin/sh
# etcdctl 3.4.23 and etcd 3.4.23 of Debian 12, jq 1.6, k8s.io/apimachinery v0.36.2.
#
# Seen, 1: `etcdctl get --print-value-only` adds a newline that is not in the value, and `etcdctl put` takes its input as it is. A
# copy of a Kubernetes object made with the two is one byte longer; Protobuf takes the byte for the beginning of another
# field, and the object cannot be decoded any more.
# Expected: the value's bytes. (Base64 out of `-w json` is exact.)
# Who is hurt: operators who copy or restore one object by hand: from then on every list of that resource fails.
#
# Seen, 2: `-w json` prints the numbers of members, clusters and leases as JSON numbers of 64 bits, and jq rounds them to 53.
# Expected: text, as etcd's own HTTP gateway writes them.
# Who is hurt: scripts that pick a member with jq for `etcdctl member remove`: there is no such member.
set -eu
dir=$(mktemp -d); etcd=; trap 'kill "$etcd" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download etcd-server=3.4.23-4+b4 etcd-client=3.4.23-4+b4 jq=1.6-2.1+deb12u3 libjq1=1.6-2.1+deb12u3 libonig5 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
PATH=$dir/usr/bin:$PATH LD_LIBRARY_PATH=$dir/usr/lib/x86_64-linux-gnu
export PATH LD_LIBRARY_PATH ETCDCTL_API=3
e=${FINDING_PORT:-23790} peers=$((${FINDING_PORT:-23790} + 1)); export ETCDCTL_ENDPOINTS="http://127.0.0.1:$e"
etcd --data-dir data --listen-client-urls "http://127.0.0.1:$e" --advertise-client-urls "http://127.0.0.1:$e" \
  --listen-peer-urls "http://127.0.0.1:$peers" --initial-advertise-peer-urls "http://127.0.0.1:$peers" \
  --initial-cluster "default=http://127.0.0.1:$peers" >etcd.log 2>&1 & etcd=$!
for _ in $(seq 600); do etcdctl endpoint health >/dev/null 2>&1 && break; sleep 0.1; done
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func main() {
	scheme := runtime.NewScheme()
	v1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codec := protobuf.NewSerializer(scheme, scheme)
	if os.Args[1] == "write" {
		object := &v1.Status{TypeMeta: v1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "kept"}
		if err := codec.Encode(object, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	object, _, err := codec.Decode(data, nil, nil)
	if err != nil {
		fmt.Printf("%d bytes: %v\n", len(data), err)
		return
	}
	fmt.Printf("%d bytes: %s\n", len(data), object.(*v1.Status).Message)
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.36.2 2>/dev/null
go build -mod=mod -o object .
{
  ./object write | etcdctl put /a >/dev/null
  etcdctl get /a -w json | jq -r '.kvs[0].value' | base64 -d | ./object read
  etcdctl get /a --print-value-only | etcdctl put /b >/dev/null
  etcdctl get /b -w json | jq -r '.kvs[0].value' | base64 -d | ./object read
  etcdctl member list -w json >members
  printed=$(sed 's/.*"ID":\([0-9]*\).*/\1/' members) picked=$(jq -r '.members[0].ID' members)
  if test "$printed" = "$picked"; then echo 'jq kept the number'; else echo 'jq changed the number'; fi
  etcdctl member remove "$(printf '%x' "$picked")" 2>&1 | grep -o 'member not found' | sort -u
} | tee out
cat >want <<'EOF'
44 bytes: kept
45 bytes: unexpected EOF
jq changed the number
member not found
EOF
diff want out
