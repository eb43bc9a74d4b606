#!/bin/sh
# sigs.k8s.io/kustomize/api v0.21.1 (`literals` of its generators) and k8s.io/kubectl v0.37.2 (`create configmap` and `create secret` with --from-literal).
#
# Seen: kustomize takes the first and the last character of a literal away if both are the same quote, although YAML has taken its own quotes away before.
# kubectl keeps them. A value that only begins with one quoted word and ends with another is cut as well: the content security policy
# 'self' https://cdn.example.com 'unsafe-inline' loses two quotes, as do "a" OR "b" and a JSON string. The same line in `envs` is kept.
# Expected: the value, as kubectl with the same key=value has it; kustomize's documentation shows literals without quotes and does not mention this.
# Who is hurt: passwords and headers that begin and end with a quote: the Secret is made without an error, and the browser or the server
# refuses a value that is in no file.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir base
cat >base/policy.env <<'EOF'
POLICY='self' https://cdn.example.com 'unsafe-inline'
EOF
cat >base/kustomization.yaml <<'EOF'
configMapGenerator:
- name: literals
  literals:
  - "policy='self' https://cdn.example.com 'unsafe-inline'"
  - 'query="a" OR "b"'
  - 'json="text"'
  - "password='tis a secret'"
  - "half='tis"
- name: envs
  envs: [policy.env]
generatorOptions:
  disableNameSuffixHash: true
EOF
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"k8s.io/kubectl/pkg/util"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "base")
	if err != nil {
		panic(err)
	}
	data := built.Resources()[0].GetDataMap()
	for _, literal := range []string{
		"policy='self' https://cdn.example.com 'unsafe-inline'",
		`query="a" OR "b"`,
		`json="text"`,
		"password='tis a secret'",
		"half='tis",
	} {
		key, value, err := util.ParseLiteralSource(literal)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n  kubectl   %s\n  kustomize %s\n", key, value, data[key])
	}
	fmt.Printf("kustomize, from envs\n  %s\n", built.Resources()[1].GetDataMap()["POLICY"])
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.37.2 sigs.k8s.io/kustomize/api@v0.21.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
policy
  kubectl   'self' https://cdn.example.com 'unsafe-inline'
  kustomize self' https://cdn.example.com 'unsafe-inline
query
  kubectl   "a" OR "b"
  kustomize a" OR "b
json
  kubectl   "text"
  kustomize text
password
  kubectl   'tis a secret'
  kustomize tis a secret
half
  kubectl   'tis
  kustomize 'tis
kustomize, from envs
  'self' https://cdn.example.com 'unsafe-inline'
EOF
diff want out
