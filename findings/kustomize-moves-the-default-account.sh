#!/bin/sh
# sigs.k8s.io/kustomize/api v0.21.1 (kubectl kustomize), `namespace:` of a kustomization.
#
# Seen: a subject of a RoleBinding or ClusterRoleBinding that is the ServiceAccount "default" of another, named namespace is moved to the new one; each other account keeps its
# namespace. So {name: default, namespace: monitoring} becomes {name: default, namespace: shop}, and {name: agent, namespace: monitoring} stays.
# Expected: a namespace that is written stays, as for the others; a subject of a ServiceAccount must name its namespace, so that it always is written.
# Who is hurt: overlays that bind a role to the default account of an operator's or a runner's namespace: it gets no permissions, and each Pod of the overlay's
# own namespace that has no account of its own gets them.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir overlay
cat >overlay/kustomization.yaml <<'END'
namespace: shop
resources: [bindings.yaml]
END
cat >overlay/bindings.yaml <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: scrape}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: ServiceAccount, name: default, namespace: monitoring}
- {kind: ServiceAccount, name: agent, namespace: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node-reader}
subjects:
- {kind: ServiceAccount, name: default, namespace: kube-system}
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	files := filesys.MakeFsOnDisk()
	out, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, os.Args[1])
	if err != nil {
		panic(err)
	}
	text, err := out.AsYaml()
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
}
END
go mod init finding 2>/dev/null
go get sigs.k8s.io/kustomize/api@v0.21.1 2>/dev/null
go run -mod=mod . overlay | awk '/^kind:/ { kind = $2 } /^subjects:/ { on = 1 } on && /name:|namespace:/ { printf "%s %s %s\n", kind, $1, $2 } /^---/ { on = 0 }' | tee out
cat >want <<'END'
RoleBinding name: default
RoleBinding namespace: shop
RoleBinding name: agent
RoleBinding namespace: monitoring
ClusterRoleBinding name: default
ClusterRoleBinding namespace: shop
END
diff want out
