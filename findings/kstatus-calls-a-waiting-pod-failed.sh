#!/bin/sh
# github.com/fluxcd/cli-utils v1.2.2 (kstatus, on which Flux, Helm 4 and kpt stand; the first two replace its verdict on Jobs),
# helm.sh/helm/v3 v3.22.0 (`helm --wait`) and k8s.io/kubectl v0.37.2 (`kubectl rollout status`).
#
# Seen: the three judge the same objects differently. kstatus calls a Pod Failed that was not placed 15 seconds after it was made,
# which is every Pod that waits for a new node, and Current a Pod that has failed and a Job that has only started. Helm calls a
# DaemonSet ready with no Pod ready on a cluster of one node, a Deployment of one replica with maxUnavailable 1 likewise, and
# never a Pod that has completed. A LoadBalancer without an address is ready for kstatus and not for Helm.
# Expected: one meaning of "ready" for objects of the built-in kinds, or names that tell the meanings apart.
# Who is hurt: programs on kstatus: a set with a Pod in it fails while the autoscaler adds a node, and is done although a Pod in
# it has failed. With Helm an agent that runs nowhere is rolled out, and a chart with a Pod that runs once never is.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"helm.sh/helm/v3/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

func ptr[T any](value T) *T { return &value }

func main() {
	meta := metav1.ObjectMeta{Name: "a", Namespace: "b", Generation: 1, CreationTimestamp: metav1.NewTime(time.Now().Add(-16 * time.Second).Truncate(time.Second))}
	labels := map[string]string{"app": "a"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	pod := func(phase corev1.PodPhase, condition corev1.PodConditionType, reason string) runtime.Object {
		return &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: phase,
			Conditions: []corev1.PodCondition{{Type: condition, Status: corev1.ConditionFalse, Reason: reason}}}}
	}
	daemons := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template,
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr(intstr.FromInt32(1))}}},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberUnavailable: 1}}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: ptr(int32(1)), Selector: selector, Template: template,
		Strategy: appsv1.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr(intstr.FromInt32(1)), MaxSurge: ptr(intstr.FromInt32(0))}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1}}
	replicas := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "a-1", Namespace: "b", Labels: labels, Generation: 1,
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "a", Controller: ptr(true)}}},
		Spec:   appsv1.ReplicaSetSpec{Replicas: ptr(int32(1)), Selector: selector, Template: template},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: 1}}
	for _, c := range []struct {
		name   string
		object runtime.Object
	}{
		{"Pod that waits for a node", pod(corev1.PodPending, corev1.PodScheduled, "Unschedulable")},
		{"Pod that has failed", pod(corev1.PodFailed, corev1.PodReady, "PodFailed")},
		{"Pod that has completed", pod(corev1.PodSucceeded, corev1.PodReady, "PodCompleted")},
		{"Job that has started", &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{BackoffLimit: ptr(int32(6)), Completions: ptr(int32(1)), Parallelism: ptr(int32(1))},
			Status: batchv1.JobStatus{StartTime: &meta.CreationTimestamp, Active: 1}}},
		{"DaemonSet, 0 of 1 ready", daemons},
		{"Deployment, 0 of 1 ready, maxUnavailable 1", deployment},
		{"LoadBalancer without an address", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.10"}}},
	} {
		kinds, _, err := scheme.Scheme.ObjectKinds(c.object)
		if err != nil {
			panic(err)
		}
		c.object.GetObjectKind().SetGroupVersionKind(kinds[0])
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.object)
		if err != nil {
			panic(err)
		}
		object := &unstructured.Unstructured{Object: content}
		result, err := status.Compute(object)
		if err != nil {
			panic(err)
		}
		checker := kube.NewReadyChecker(fake.NewClientset(c.object, replicas.DeepCopy()), func(string, ...interface{}) {}, kube.CheckJobs(true))
		ready, err := checker.IsReady(context.Background(), &resource.Info{Name: "a", Namespace: "b", Object: c.object})
		helm := map[bool]string{true: "ready", false: "waits"}[ready]
		if err != nil {
			helm = err.Error()
		}
		rollout := "-"
		if viewer, err := polymorphichelpers.StatusViewerFor(kinds[0].GroupKind()); err == nil {
			_, done, err := viewer.Status(object, 0)
			if err != nil {
				panic(err)
			}
			rollout = map[bool]string{true: "done", false: "waits"}[done]
		}
		fmt.Printf("%s: kstatus %s, Helm 3 %s, kubectl %s\n", c.name, result.Status, helm, rollout)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/fluxcd/cli-utils@v1.2.2 helm.sh/helm/v3@v3.22.0 k8s.io/kubectl@v0.37.2 k8s.io/client-go@v0.37.2 k8s.io/cli-runtime@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
Pod that waits for a node: kstatus Failed, Helm 3 waits, kubectl -
Pod that has failed: kstatus Current, Helm 3 waits, kubectl -
Pod that has completed: kstatus Current, Helm 3 waits, kubectl -
Job that has started: kstatus Current, Helm 3 waits, kubectl -
DaemonSet, 0 of 1 ready: kstatus InProgress, Helm 3 ready, kubectl waits
Deployment, 0 of 1 ready, maxUnavailable 1: kstatus InProgress, Helm 3 ready, kubectl waits
LoadBalancer without an address: kstatus Current, Helm 3 waits, kubectl -
EOF
diff want out
