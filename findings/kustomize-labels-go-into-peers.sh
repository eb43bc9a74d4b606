#!/bin/sh
# sigs.k8s.io/kustomize/api v0.21.1 (kubectl kustomize), `labels` with includeSelectors and commonLabels.
#
# Seen: the labels go into the peers of a NetworkPolicy too: `from: [{podSelector: {app: prometheus}, namespaceSelector: {team: monitoring}}]` then asks for a Prometheus
# with the labels of this overlay, and so do the rules for egress.
# Expected: the selectors of the overlay's own Pods. A peer in another namespace is never one of them.
# Who is hurt: overlays of policies: with `env: prod` as a common label the ingress controller, the DNS server and Prometheus, which do not have it, are locked out, by a line
# that looks like a note on the objects.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir overlay
cat >overlay/kustomization.yaml <<'END'
labels:
- pairs: {env: prod}
  includeSelectors: true
resources: [policy.yaml]
END
cat >overlay/policy.yaml <<'END'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress:
  - from:
    - podSelector: {matchLabels: {app: prometheus}}
      namespaceSelector: {matchLabels: {team: monitoring}}
  egress:
  - to:
    - podSelector: {matchLabels: {k8s-app: kube-dns}}
      namespaceSelector: {matchLabels: {team: system}}
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
go run -mod=mod . overlay | sed -n '/^spec:/,$p' | tee out
cat >want <<'END'
spec:
  egress:
  - to:
    - namespaceSelector:
        matchLabels:
          team: system
      podSelector:
        matchLabels:
          env: prod
          k8s-app: kube-dns
  ingress:
  - from:
    - namespaceSelector:
        matchLabels:
          team: monitoring
      podSelector:
        matchLabels:
          app: prometheus
          env: prod
  podSelector:
    matchLabels:
      app: web
      env: prod
END
diff want out
