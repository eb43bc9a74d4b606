#!/bin/sh
# k8s.io/kubernetes v1.36.2 (kube-apiserver, with the modules v0.36.2 that are published from the
# same tree), on go.etcd.io/etcd/server/v3 v3.5.16.
#
# Seen, 1: a strategic merge patch of pods/NAME/resize that also carries labels, a node or an image
# answers 200 and drops these, as it should; but its managedFields say from then on that the client
# of the resize owns metadata.labels, spec.nodeName and the image. The next server-side apply by the
# client that has set the label for real gets 409, a conflict with a value that was never written.
# Expected: a write that cannot change a field does not own it, as with pods/NAME/status.
# Who is hurt: GitOps tools beside an autoscaler that sends back whole Pods to resize them.
#
# Seen, 2: whether labels of a ResourceClaim can be patched depends on how the JSON of its opaque
# driver parameters was spelled when it was created. With a space, or with keys that are not in
# order, a patch of metadata.labels answers 422 "spec: ... field is immutable". Of two forms of patch
# that say the same, a merge patch passes and a strategic one does not, if only the order differs.
# GET shows equal objects. (The parameters are kept as bytes and compared as bytes.)
# Expected: 200 each time; JSON that differs in blanks and order is the same value.
# Who is hurt: controllers that label claims, or take finalizers off (a claim then cannot end).
#
# It builds the whole server: some minutes, and 2 GB of the build cache the first time.
set -eu
dir=$(mktemp -d); etcd= api=
trap 'kill -9 $api $etcd 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"

mkdir server store
source=$(go mod download -json k8s.io/kubernetes@v1.36.2 | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
sed -e 's/^module .*/module finding/' -e '/k8s.io\/sample-/d' \
	-e 's/=> \.\/staging\/src\/\(.*\)/=> \1 v0.36.2/' \
	-e 's/^require (/require (\
	k8s.io\/kubernetes v1.36.2/' "$source/go.mod" >server/go.mod
printf '%s\n' 'package main' '' 'import (' '	"os"' '' '	"k8s.io/component-base/cli"' \
	'	"k8s.io/kubernetes/cmd/kube-apiserver/app"' ')' '' \
	'func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }' >server/main.go
(cd server && GOWORK=off go build -mod=mod -ldflags '-X k8s.io/component-base/version.gitMajor=1
	-X k8s.io/component-base/version.gitMinor=36 -X k8s.io/component-base/version.gitVersion=v1.36.2' -o ../kube-apiserver .)
printf '%s\n' 'package main' '' 'import (' '	"os"' '' '	"go.etcd.io/etcd/server/v3/etcdmain"' ')' '' \
	'func main() { etcdmain.Main(os.Args) }' >store/main.go
(cd store && go mod init finding 2>/dev/null && go get go.etcd.io/etcd/server/v3@v3.5.16 2>/dev/null && go build -mod=mod -o ../etcd3 .)

e=${FINDING_PORT:-23796}; peers=$((e + 1)) port=$((e + 2))
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
	method=$1 path=$2
	if [ $# -gt 2 ]; then set -- -H "Content-Type: $3" --data-raw "$4"; else set --; fi
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
json=application/json merge=application/merge-patch+json strategic=application/strategic-merge-patch+json
call POST /api/v1/namespaces/default/serviceaccounts $json '{"metadata":{"name":"default"}}' >code
pods=/api/v1/namespaces/default/pods claims=/apis/resource.k8s.io/v1/namespaces/default/resourceclaims
apply='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"tier":"TIER"}},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}}}]}}'
create() { # the claim of a name, with these parameters
	call POST $claims $json '{"metadata":{"name":"'"$1"'"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu.example.com"}}],
	"config":[{"opaque":{"driver":"gpu.example.com","parameters":'"$2"'}}]}}}'
}
label() { call PATCH $claims/$1 $2 '{"metadata":{"labels":{"a":"'"$3"'"}}}'; }
{
	echo "apply of a pod: $(call PATCH "$pods/p?fieldManager=gitops" application/apply-patch+yaml "$(echo "$apply" | sed s/TIER/web/)")"
	echo "resize: $(call PATCH "$pods/p/resize?fieldManager=scaler" $strategic '{"metadata":{"labels":{"tier":"db"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"j","resources":{"requests":{"cpu":"200m"}}}]}}')"
	grep -E '"(tier|image|cpu)": ' body | sed 's/^ *//'
	echo "apply of another label: $(call PATCH "$pods/p?fieldManager=gitops" application/apply-patch+yaml "$(echo "$apply" | sed -e s/TIER/new/ -e s/100m/200m/)")"
	grep -o '"message": "conflict with .*' body | sort -u
	i=0
	for parameters in '{"a":1,"b":2}' '{"a": 1,"b":2}' '{"b":2,"a":1}'; do
		i=$((i + 1))
		echo "claim with $parameters: $(create c$i "$parameters"), merge patch $(label c$i $merge x), strategic merge patch $(label c$i $strategic y)"
	done
} | tee out
cat >want <<'EOF'
apply of a pod: 201
resize: 200
"tier": "web"
"image": "i",
"cpu": "200m"
apply of another label: 409
"message": "conflict with \"scaler\" with subresource \"resize\" using v1",
claim with {"a":1,"b":2}: 201, merge patch 200, strategic merge patch 200
claim with {"a": 1,"b":2}: 201, merge patch 422, strategic merge patch 422
claim with {"b":2,"a":1}: 201, merge patch 200, strategic merge patch 422
EOF
diff want out
