#!/bin/sh
# encoding/json/v2 of Go 1.26 (GOEXPERIMENT=jsonv2) with k8s.io/api v0.36.2.
#
# Seen: `omitempty` has another meaning in v2. The older package writes a pointer to an empty struct as {}, and v2 leaves it out,
# because its JSON is empty: `emptyDir: {}` and the `podSelector: {}` of a NetworkPolicy's peer vanish. The other way round, 0 and
# false are left out by the older package and written by v2: hostPort: 0, hostNetwork: false; and a nil list is [].
# Expected: the same JSON for the same tags; the API's types are written for the older meaning.
# Who is hurt: programs that change their import to v2: a volume without a source is refused, and so is a peer that meant
# "all Pods of this namespace"; with server-side apply they own every zero. The compiler and the types say nothing.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	volume := corev1.Volume{Name: "tmp"}
	volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	for _, value := range []any{
		volume,
		networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}},
		networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}},
		corev1.ContainerPort{ContainerPort: 80},
		corev1.PodSpec{},
	} {
		one, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		two, err := jsonv2.Marshal(value, jsonv2.Deterministic(true))
		if err != nil {
			panic(err)
		}
		fmt.Printf("%T\n v1: %s\n v2: %s\n", value, one, two)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/api@v0.36.2 k8s.io/apimachinery@v0.36.2 2>/dev/null
GOEXPERIMENT=jsonv2 go run -mod=mod . | tee out
cat >want <<'EOF'
v1.Volume
 v1: {"name":"tmp","emptyDir":{}}
 v2: {"name":"tmp"}
v1.NetworkPolicyPeer
 v1: {"podSelector":{}}
 v2: {}
v1.NetworkPolicyPeer
 v1: {"podSelector":{},"namespaceSelector":{}}
 v2: {}
v1.ContainerPort
 v1: {"containerPort":80}
 v2: {"hostPort":0,"containerPort":80}
v1.PodSpec
 v1: {"containers":null}
 v2: {"containers":[],"hostNetwork":false,"hostPID":false,"hostIPC":false}
EOF
diff want out
