#!/bin/sh
# k8s.io/kubectl v0.37.2 (kubectl create ... -o jsonpath).
#
# Seen: `kubectl create priorityclass high --value=1000000 -o jsonpath='{.value}'` prints 1e+06, and 1.00068e+09 for 1000680000: the commands that
# build their object themselves (create, expose, autoscale, run) give it to JSONPath by JSON with floats. -o go-template of the same command prints 1000000, as
# does -o jsonpath of `kubectl get`.
# Expected: the number, in one way.
# Who is hurt: scripts that make an object and go on with what was made: priorities are of this size in the documentation's examples, and a comparison
# with [ "$value" -gt 0 ] fails, while 999999 is printed as 999999.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/create"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	factory := cmdutil.NewFactory(genericclioptions.NewConfigFlags(true))
	command := create.NewCmdCreatePriorityClass(factory, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	command.SetArgs(os.Args[1:])
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
}
EOF
cat >config <<'EOF'
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
EOF
export KUBECONFIG="$dir/config"
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.37.2 2>/dev/null
go build -mod=mod -o create .
for value in 999999 1000000 1000680000; do
  echo "$value: jsonpath $(./create high --value=$value --dry-run=client -o 'jsonpath={.value}'), go-template $(./create high --value=$value --dry-run=client -o 'go-template={{.value}}')"
done | tee out
cat >want <<'EOF'
999999: jsonpath 999999, go-template 999999
1000000: jsonpath 1e+06, go-template 1000000
1000680000: jsonpath 1.00068e+09, go-template 1000680000
EOF
diff want out
