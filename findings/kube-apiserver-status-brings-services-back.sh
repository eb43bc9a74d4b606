#!/bin/sh
# k8s.io/kubernetes v1.36.2 (kube-apiserver, with the modules v0.36.2 that are published from its own tree), on
# go.etcd.io/etcd/server/v3 v3.5.16.
#
# Seen: PUT of the status of a Service that does not exist creates the Service (201), and so does an apply. It is of type
# ClusterIP without a clusterIP and without IP families; a later PUT of the Service itself, which adds the families, gives
# it no address either. For a Pod and a ReplicationController the same request is a 404.
# Expected: 404, or a Service with an address.
# Who is hurt: a controller of load balancers that writes a status just after the Service was deleted brings it back,
# without finalizers, and its name stays taken: DNS and proxies have nothing to send to, and no event says why.
#
# It builds the whole server: some minutes, and 2 GB of the build cache the first time.
set -eu
dir=$(mktemp -d); etcd= api=
trap 'kill -9 $api $etcd 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"

mkdir server etcd
source=$(go mod download -json k8s.io/kubernetes@v1.36.2 | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
sed -e 's/^module .*/module finding/' -e '/k8s.io\/sample-/d' \
	-e 's/=> \.\/staging\/src\/\(.*\)/=> \1 v0.36.2/' \
	-e 's/^require (/require (\
	k8s.io\/kubernetes v1.36.2/' "$source/go.mod" >server/go.mod
cat >server/main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
EOF
(cd server && GOWORK=off go build -mod=mod -ldflags '-X k8s.io/component-base/version.gitMajor=1
	-X k8s.io/component-base/version.gitMinor=36 -X k8s.io/component-base/version.gitVersion=v1.36.2' -o ../kube-apiserver .)
cat >etcd/main.go <<'EOF'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
EOF
(cd etcd && go mod init finding 2>/dev/null && go get go.etcd.io/etcd/server/v3@v3.5.16 2>/dev/null && go build -mod=mod -o ../etcd3 .)

e=${FINDING_PORT:-23790}; peers=$((e + 1)) port=$((e + 2))
./etcd3 --data-dir data --listen-client-urls http://127.0.0.1:$e --advertise-client-urls http://127.0.0.1:$e \
	--listen-peer-urls http://127.0.0.1:$peers --initial-advertise-peer-urls http://127.0.0.1:$peers \
	--initial-cluster default=http://127.0.0.1:$peers >etcd.log 2>&1 & etcd=$!
openssl genrsa -out key.pem 2048 2>/dev/null
echo 'token,admin,1,"system:masters"' >tokens.csv
./kube-apiserver --etcd-servers http://127.0.0.1:$e --bind-address 127.0.0.1 --secure-port $port --cert-dir certs \
	--token-auth-file tokens.csv --authorization-mode RBAC --service-account-issuer https://kubernetes.default.svc \
	--service-account-key-file key.pem --service-account-signing-key-file key.pem \
	--service-cluster-ip-range 10.96.0.0/16 --endpoint-reconciler-type none >server.log 2>&1 & api=$!

call() { # METHOD PATH [TYPE BODY]: the answer in body, its code printed
	if [ $# -gt 2 ]; then set -- "$1" "$2" -H "Content-Type: $3" --data-raw "$4"; fi
	method=$1 path=$2; shift 2
	curl -sk -o body -w '%{http_code}\n' -X "$method" "https://127.0.0.1:$port$path" -H 'Authorization: Bearer token' "$@"
}
until200() {
	for _ in $(seq 240); do
		if [ "$(call "$@" || true)" = 200 ]; then return 0; fi
		sleep 1
	done
	cat body; tail -5 server.log; return 1
}
address() { grep -c '"clusterIP"' body || true; }
until200 GET /readyz
until200 GET /api/v1/namespaces/default
core=/api/v1/namespaces/default json=application/json
service='{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80}]},
"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}'
{
	call POST $core/services $json "$service" >code
	echo "create: $(cat code), addresses: $(address)"
	echo "delete: $(call DELETE $core/services/web)"
	echo "PUT of the status: $(call PUT $core/services/web/status $json "$service"), addresses: $(address)"
	echo "get: $(call GET $core/services/web), addresses: $(address)"
	echo "PUT of the Service: $(call PUT $core/services/web $json "$service"), addresses: $(address)"
	echo "apply of the status of another: $(call PATCH "$core/services/other/status?fieldManager=m" application/apply-patch+yaml \
		"$(echo "$service" | sed 's/"web"/"other"/')"), addresses: $(address)"
	echo "PUT of the status of a Pod: $(call PUT $core/pods/web/status $json \
		'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"i"}]}}')"
} | tee out
cat >want <<'EOF'
create: 201, addresses: 1
delete: 200
PUT of the status: 201, addresses: 0
get: 200, addresses: 0
PUT of the Service: 200, addresses: 0
apply of the status of another: 201, addresses: 0
PUT of the status of a Pod: 404
EOF
diff want out
