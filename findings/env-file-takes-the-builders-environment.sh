#!/bin/sh
# k8s.io/kubectl v0.37.2 (`create configmap` and `create secret` with --from-env-file) and sigs.k8s.io/kustomize/api v0.21.1.
#
# Seen: a line without "=" in an env file is a key with the value of that variable in the environment of kubectl, and with
# the empty value in kustomize. Both keep quotes and what follows "#", so A="b" is three characters.
# Expected: an error, or one meaning in both: `kubectl create -k` and `kubectl create configmap` are the same program.
# Who is hurt: a line with a name only, often the rest of an edit or a wrapped line: HOME, USER, PATH or TOKEN of the laptop or the
# CI runner go into the ConfigMap, and two runs of the same commit differ.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir base
printf 'REGION=eu\nTOKEN\nGREETING="hello" # politely\n' >base/settings.env
cat >base/kustomization.yaml <<'EOF'
configMapGenerator:
- name: settings
  envs: [settings.env]
generatorOptions:
  disableNameSuffixHash: true
EOF
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	err := util.AddFromEnvFile("base/settings.env", func(key, value string) error {
		fmt.Printf("kubectl:   %s is %q\n", key, value)
		return nil
	})
	if err != nil {
		panic(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "base")
	if err != nil {
		panic(err)
	}
	data := built.Resources()[0].GetDataMap()
	for _, key := range []string{"REGION", "TOKEN", "GREETING"} {
		fmt.Printf("kustomize: %s is %q\n", key, data[key])
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.37.2 sigs.k8s.io/kustomize/api@v0.21.1 2>/dev/null
TOKEN=value-of-the-runner go run -mod=mod . | tee out
cat >want <<'EOF'
kubectl:   REGION is "eu"
kubectl:   TOKEN is "value-of-the-runner"
kubectl:   GREETING is "\"hello\" # politely"
kustomize: REGION is "eu"
kustomize: TOKEN is ""
kustomize: GREETING is "\"hello\" # politely"
EOF
diff want out
