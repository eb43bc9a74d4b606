#!/bin/sh
# k8s.io/kubernetes v1.36.2 (kube-apiserver, with the modules v0.36.2 that are published from the
# same tree), on go.etcd.io/etcd/server/v3 v3.5.16.
#
# Seen: with the feature gate ShardedListAndWatch, the gauge apiserver_watch_shards_total ("number of
# active sharded watch connections") is 1 while one watch with a shardSelector is open, and -1 after it
# has ended. Each further watch that ends takes one more away: -2, -3. Watches without a selector of
# shards do not count, and leave it alone.
# Expected: 0 when no such watch is open; a gauge of connections is never negative.
# Who is hurt: whoever watches the roll-out of sharded controllers by this metric: the sum over servers
# is the number of open watches less all that have ever ended.
#
# It builds the whole server: some minutes, and 2 GB of the build cache the first time.
set -eu
dir=$(mktemp -d); etcd= api=
trap 'kill -9 $api $etcd 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-trimpath

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

e=${FINDING_PORT:-23896}; peers=$((e + 1)) port=$((e + 2))
./etcd3 --data-dir data --listen-client-urls http://127.0.0.1:$e --advertise-client-urls http://127.0.0.1:$e \
	--listen-peer-urls http://127.0.0.1:$peers --initial-advertise-peer-urls http://127.0.0.1:$peers \
	--initial-cluster default=http://127.0.0.1:$peers >etcd.log 2>&1 & etcd=$!
openssl genrsa -out key.pem 2048 2>/dev/null
echo 'token,admin,1,"system:masters"' >tokens.csv
./kube-apiserver --etcd-servers http://127.0.0.1:$e --bind-address 127.0.0.1 --secure-port $port --cert-dir certs \
	--token-auth-file tokens.csv --authorization-mode RBAC --service-account-issuer https://kubernetes.default.svc \
	--service-account-key-file key.pem --service-account-signing-key-file key.pem \
	--feature-gates ShardedListAndWatch=true --service-cluster-ip-range 10.96.0.0/16 --endpoint-reconciler-type none >server.log 2>&1 & api=$!

get() { curl -sk -H 'Authorization: Bearer token' "https://127.0.0.1:$port$1"; }
shards() { get /metrics | sed -n 's/^apiserver_watch_shards_total{.*resource="configmaps"} //p'; }
becomes() { # the gauge's value, within two minutes
	for _ in $(seq 240); do
		if [ "$(shards)" = "$1" ]; then echo "$2: $1"; return 0; fi
		sleep 0.5
	done
	echo "$2: $(shards), not $1"; return 1
}
for _ in $(seq 240); do
	if [ "$(curl -sk -o body -w '%{http_code}' -H 'Authorization: Bearer token' "https://127.0.0.1:$port/readyz" || true)" = 200 ]; then break; fi
	sleep 1
done
half="shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
watch() { # a watch of half of the ConfigMaps, in the background
	curl -skN -o /dev/null -H 'Authorization: Bearer token' --get "https://127.0.0.1:$port/api/v1/configmaps" \
		--data-urlencode watch=1 --data-urlencode "shardSelector=$half" & client=$!
}
{
	for before in 0 -1 -2; do
		watch
		becomes $((before + 1)) "while a watch is open"
		kill $client
		wait $client || true
		becomes $((before - 1)) "after it has ended"
	done
} | tee out
cat >want <<'EOF'
while a watch is open: 1
after it has ended: -1
while a watch is open: 0
after it has ended: -2
while a watch is open: -1
after it has ended: -3
EOF
diff want out
