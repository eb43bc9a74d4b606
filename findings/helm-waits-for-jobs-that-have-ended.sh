#!/bin/sh
# helm.sh/helm/v3 v3.22.0, the check of `helm install --wait --wait-for-jobs`.
#
# Seen: Helm compares the counters of a Job and does not read its conditions. A Job that is Complete by its successPolicy, or
# Failed by its deadline, its podFailurePolicy or one of its indexes, is neither ready nor an error: Helm waits until its own
# timeout. A Job without completions, a queue of work, is ready before its first Pod has ended.
# Expected: the conditions Complete and Failed, which the Job's controller sets for this; the API has had them from the start.
# Who is hurt: pipelines with a migration as a Job: a release that is done fails after the timeout, a Job that failed in its
# first second costs the whole timeout (`context deadline exceeded`, and not the reason), and a queue's release is done too soon.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"
)

func ptr[T any](value T) *T { return &value }

func main() {
	for _, c := range []struct {
		name   string
		spec   batchv1.JobSpec
		status batchv1.JobStatus
	}{
		{"Complete, 1 of 1", batchv1.JobSpec{Completions: ptr(int32(1)), BackoffLimit: ptr(int32(6))},
			batchv1.JobStatus{Succeeded: 1, Conditions: []batchv1.JobCondition{{Type: "Complete", Status: "True"}}}},
		{"Complete by its successPolicy, 1 of 3", batchv1.JobSpec{Completions: ptr(int32(3)), BackoffLimit: ptr(int32(6))},
			batchv1.JobStatus{Succeeded: 1, Conditions: []batchv1.JobCondition{{Type: "Complete", Status: "True", Reason: "SuccessPolicy"}}}},
		{"Failed, 7 tries", batchv1.JobSpec{Completions: ptr(int32(1)), BackoffLimit: ptr(int32(6))},
			batchv1.JobStatus{Failed: 7, Conditions: []batchv1.JobCondition{{Type: "Failed", Status: "True", Reason: "BackoffLimitExceeded"}}}},
		{"Failed by its deadline", batchv1.JobSpec{Completions: ptr(int32(1)), BackoffLimit: ptr(int32(6)), ActiveDeadlineSeconds: ptr(int64(60))},
			batchv1.JobStatus{Failed: 1, Conditions: []batchv1.JobCondition{{Type: "Failed", Status: "True", Reason: "DeadlineExceeded"}}}},
		{"Failed by its podFailurePolicy", batchv1.JobSpec{Completions: ptr(int32(1)), BackoffLimit: ptr(int32(6))},
			batchv1.JobStatus{Failed: 1, Conditions: []batchv1.JobCondition{{Type: "Failed", Status: "True", Reason: "PodFailurePolicy"}}}},
		{"a queue that has started", batchv1.JobSpec{Parallelism: ptr(int32(2)), BackoffLimit: ptr(int32(6))}, batchv1.JobStatus{Active: 2}},
	} {
		job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: c.spec, Status: c.status}
		checker := kube.NewReadyChecker(fake.NewClientset(job), func(string, ...interface{}) {}, kube.CheckJobs(true))
		ready, err := checker.IsReady(context.Background(), &resource.Info{Name: "a", Namespace: "b", Object: job})
		fmt.Printf("%s: ready %v, error %v\n", c.name, ready, err)
	}
}
EOF
go mod init finding 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
Complete, 1 of 1: ready true, error <nil>
Complete by its successPolicy, 1 of 3: ready false, error <nil>
Failed, 7 tries: ready false, error job is failed: b/a
Failed by its deadline: ready false, error <nil>
Failed by its podFailurePolicy: ready false, error <nil>
a queue that has started: ready true, error <nil>
EOF
diff want out
