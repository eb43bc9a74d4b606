#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm); k8s.io/client-go v0.36.2, whose rules kubectl follows.
#
# Seen: with KUBECONFIG=first:second, kubectl takes the current context of the first file that has one, the Node
# client that of the last file. A name that stands in both files is an error for the Node client ("Duplicate
# cluster"), where kubectl takes the first; a file that does not exist is one too, and kubectl leaves it out.
# Expected: the rules of the variable, which are documented for kubectl, in each client.
# Who is hurt: those who check with kubectl which cluster is current, and then run a program on the Node client
# from the same shell: it works on the other cluster.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
for name in staging production; do
	cat >$name <<EOF
{apiVersion: v1, kind: Config, current-context: $name,
 clusters: [{name: $name, cluster: {server: "https://$name.test:6443"}}],
 contexts: [{name: $name, context: {cluster: $name, user: $name}}],
 users: [{name: $name, user: {token: t}}]}
EOF
done
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		fmt.Println("client-go: ", os.Getenv("KUBECONFIG"), err)
		return
	}
	fmt.Println("client-go:  ", os.Getenv("KUBECONFIG"), config.Host)
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.36.2 2>/dev/null
go build -mod=mod -o kubectl-rules .
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { KubeConfig } from '@kubernetes/client-node'
const config = new KubeConfig()
try {
  config.loadFromDefault()
  console.log('Node client:', process.env.KUBECONFIG, config.getCurrentCluster().server)
} catch (e) {
  console.log('Node client:', process.env.KUBECONFIG, e.code ?? e.message)
}
EOF
for files in staging:production staging:staging staging:absent; do
	KUBECONFIG=$files ./kubectl-rules
	KUBECONFIG=$files node main.mjs
done | tee out
cat >want <<'EOF'
client-go:   staging:production https://staging.test:6443
Node client: staging:production https://production.test:6443
client-go:   staging:staging https://staging.test:6443
Node client: staging:staging Duplicate cluster: staging
client-go:   staging:absent https://staging.test:6443
Node client: staging:absent ENOENT
EOF
diff want out
