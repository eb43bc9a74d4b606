#!/bin/sh
# k8s.io/apimachinery v0.37.2 (api/equality.Semantic.DeepDerivative), by which operators decide whether an object in the cluster still is what they want.
#
# Seen: a list is derived from each list that begins with it. A container, an argument, a rule or a port that somebody appends is no difference,
# and an empty list is derived from every list: a NetworkPolicy without ingress rules, which admits nothing, from one that admits all. A pointer
# to "", which storageClassName has a meaning for, is derived from every text. Numbers and booleans are the other way round: a 0 or false that is only unset
# differs from what the server's default made of it.
# Expected: "unset fields are ignored", as its comment promises, and each field that is set is compared as a whole.
# Who is hurt: operators that update "if !DeepDerivative(desired, live)": what somebody appends to a list in the cluster is never taken back,
# and an int with a default makes them update for ever.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func show(what string, desired, live any) {
	fmt.Printf("%s: same %v\n", what, equality.Semantic.DeepDerivative(desired, live))
}

func main() {
	web := corev1.Container{Name: "web", Image: "web:1", Args: []string{"--tls"}}
	miner := corev1.Container{Name: "miner", Image: "miner:1"}
	open := web
	open.Args = []string{"--tls", "--tls=false"}
	show("container appended", corev1.PodSpec{Containers: []corev1.Container{web}}, corev1.PodSpec{Containers: []corev1.Container{web, miner}})
	show("container put first", corev1.PodSpec{Containers: []corev1.Container{web}}, corev1.PodSpec{Containers: []corev1.Container{miner, web}})
	show("argument appended", web, open)
	none := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}, Ingress: []networkingv1.NetworkPolicyIngressRule{}}
	all := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}
	show("rule that admits all added to none", none, all)
	empty, standard := "", "standard"
	show(`storageClassName "" and "standard"`, corev1.PersistentVolumeClaimSpec{StorageClassName: &empty}, corev1.PersistentVolumeClaimSpec{StorageClassName: &standard})
	show("minReadySeconds unset and 10", appsv1.DeploymentSpec{}, appsv1.DeploymentSpec{MinReadySeconds: 10})
	show("hostNetwork unset and true", corev1.PodSpec{}, corev1.PodSpec{HostNetwork: true})
	show("port without a targetPort, and with the default", corev1.ServicePort{Port: 80}, func() corev1.ServicePort {
		port := corev1.ServicePort{Port: 80, Protocol: "TCP"}
		port.TargetPort.IntVal = 80
		return port
	}())
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/api@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
container appended: same true
container put first: same false
argument appended: same true
rule that admits all added to none: same true
storageClassName "" and "standard": same true
minReadySeconds unset and 10: same false
hostNetwork unset and true: same false
port without a targetPort, and with the default: same false
EOF
diff want out
