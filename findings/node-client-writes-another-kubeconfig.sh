#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), KubeConfig.exportConfig, read by k8s.io/client-go v0.37.2.
#
# Seen: a kubeconfig that is loaded and exported lacks tokenFile, as-groups, as-uid and as-user-extra of its users, disable-compression
# of its clusters, and all extensions. exec, proxy-url and tls-server-name are kept.
# Expected: the fields that were there; what a tool adds a context to is the user's own file.
# Who is hurt: users of tools in Node that add or remove a context, as desktop programs do: the other contexts in the file lose
# their credentials or change whom they act as, and minikube's and Rancher's extensions are gone.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >config <<'EOF'
apiVersion: v1
kind: Config
current-context: first
clusters:
- name: c
  cluster:
    server: https://127.0.0.1:6443
    tls-server-name: kubernetes
    proxy-url: http://127.0.0.1:3128
    disable-compression: true
    extensions: [{name: minikube.sigs.k8s.io, extension: {version: v1}}]
users:
- name: u
  user: {tokenFile: /var/run/token, as: viewer, as-groups: [readers], as-uid: "7", as-user-extra: {scopes: [a]}}
- name: v
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never, provideClusterInfo: true}}
contexts:
- name: first
  context: {cluster: c, user: u, extensions: [{name: note, extension: {a: b}}]}
- name: second
  context: {cluster: c, user: v}
EOF
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import { KubeConfig } from '@kubernetes/client-node'

const config = new KubeConfig()
config.loadFromFile('config')
fs.writeFileSync('exported', config.exportConfig())
EOF
node main.mjs
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/clientcmd"
)

func empty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Map && v.Len() == 0
}

func main() {
	before, err := clientcmd.LoadFromFile("config")
	if err != nil {
		panic(err)
	}
	after, err := clientcmd.LoadFromFile("exported")
	if err != nil {
		panic(err)
	}
	for _, c := range []struct {
		name string
		a, b any
	}{
		{"cluster", before.Clusters["c"], after.Clusters["c"]},
		{"user u", before.AuthInfos["u"], after.AuthInfos["u"]},
		{"user v", before.AuthInfos["v"], after.AuthInfos["v"]},
		{"context", before.Contexts["first"], after.Contexts["first"]},
	} {
		a, b := reflect.ValueOf(c.a).Elem(), reflect.ValueOf(c.b).Elem()
		for i := range a.NumField() {
			field := a.Type().Field(i).Name
			if field == "LocationOfOrigin" || empty(a.Field(i)) {
				continue
			}
			result := "kept"
			if empty(b.Field(i)) {
				result = "lost"
			} else if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				result = "changed"
			}
			fmt.Printf("%s, %s: %s\n", c.name, field, result)
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
cluster, Server: kept
cluster, TLSServerName: kept
cluster, ProxyURL: kept
cluster, DisableCompression: lost
cluster, Extensions: lost
user u, TokenFile: lost
user u, Impersonate: kept
user u, ImpersonateUID: lost
user u, ImpersonateGroups: lost
user u, ImpersonateUserExtra: lost
user v, Exec: kept
context, Cluster: kept
context, AuthInfo: kept
context, Extensions: lost
EOF
diff want out
