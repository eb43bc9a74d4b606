#!/bin/sh
# k8s.io/kubernetes v1.32.6 (kube-apiserver, with k8s.io/apiserver and
# k8s.io/apiextensions-apiserver v0.32.6), on go.etcd.io/etcd/server/v3 v3.5.16.
#
# Seen, 1: server-side apply of a valid autoscaling/v1 Scale with another number of replicas
# to the subresource scale of a custom resource answers 500 "failed to convert new object ... to
# proper version: request to convert CR to an invalid group/version: autoscaling/v1". PUT and
# merge patch of the same Scale work, and so does an apply that changes nothing.
# Expected: 200, or a refusal that blames the client (4xx) and discovery without "patch".
# Who is hurt: autoscalers and GitOps tools that own replicas by server-side apply; a client
# takes a 500 for trouble that passes, and tries again for ever.
#
# Seen, 2: DELETE with ?dryRun=All and the body {} answers 200 and really deletes the object.
# The options in a query are read only where there is no body at all; those that
# DELETE ...?dryRun=All has otherwise are dropped without a warning.
# Expected: nothing is deleted, or a 400.
# Who is hurt: whoever tries a delete through a library that sends {} where it has no options,
# and looks at the query alone: it was the rehearsal that deleted.
#
# It builds the whole server: some minutes, and 2 GB of the build cache the first time.
set -eu
dir=$(mktemp -d); etcd= api=
trap 'kill $api $etcd 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"

# The modules that Kubernetes keeps in its own tree are published as v0.32.6.
mkdir server etcd
source=$(go mod download -json k8s.io/kubernetes@v1.32.6 | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
sed -e 's/^module .*/module finding/' -e '/k8s.io\/sample-/d' \
	-e 's/=> \.\/staging\/src\/\(.*\)/=> \1 v0.32.6/' \
	-e 's/^require (/require (\
	k8s.io\/kubernetes v1.32.6/' "$source/go.mod" >server/go.mod
cat >server/main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
EOF
(cd server && GOWORK=off go build -mod=mod -o ../kube-apiserver .)
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
until200 GET /readyz
until200 GET /api/v1/namespaces/default
crds=/apis/apiextensions.k8s.io/v1/customresourcedefinitions
call POST $crds application/json '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"shops.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"shops","kind":"Shop"},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"replicas":{"type":"integer"}}},
"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}' >code
shops=/apis/example.com/v1/namespaces/default/shops
until200 GET $shops
sleep 5 # a new definition is not served at once everywhere
call POST $shops application/json '{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"s"},"spec":{"replicas":1}}' >code
scale='{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"s"},"spec":{"replicas":3}}'
same=$(echo "$scale" | sed 's/"replicas":3/"replicas":2/')
maps=/api/v1/namespaces/default/configmaps
{
	echo "merge patch of the scale: $(call PATCH $shops/s/scale application/merge-patch+json '{"spec":{"replicas":2}}')"
	echo "apply of the same scale: $(call PATCH "$shops/s/scale?fieldManager=same" application/apply-patch+yaml "$same")"
	echo "apply of the scale: $(call PATCH "$shops/s/scale?fieldManager=me&force=true" application/apply-patch+yaml "$scale")"
	sed -n 's/^ *"message": "\(.*\)",$/\1/p' body
	call POST $maps application/json '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}' >code
	echo "dry delete without a body: $(call DELETE "$maps/a?dryRun=All"), then get: $(call GET $maps/a)"
	echo "dry delete with {}: $(call DELETE "$maps/a?dryRun=All" application/json '{}'), then get: $(call GET $maps/a)"
} | tee out
cat >want <<'EOF'
merge patch of the scale: 200
apply of the same scale: 200
apply of the scale: 500
failed to convert new object (/s; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1
dry delete without a body: 200, then get: 200
dry delete with {}: 200, then get: 404
EOF
diff want out
