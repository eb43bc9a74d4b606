// Package workloads deletes Jobs and pods that have ended, and pods that no kubelet looks after.
package workloads

import (
	"context"
	"net/http"
	"net/url"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	jobsStorage = "jobs.batch"
	jobsAgent   = reconcile.ManagerAgent + "ttl-after-finished-controller" // field manager of FinishedJobs' writes
)

// FinishedJobs deletes Jobs after their spec.ttlSecondsAfterFinished, together with their dependents.
//
// Clients that may write Jobs cause, for each, a reconcile when it changes and one when its TTL has expired, and a queue
// entry of a hundred bytes until then.
type FinishedJobs struct{ reconcile.Base }

// Run works until ctx ends.
func (j *FinishedJobs) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: j.Base, Reconcile: j.reconcile, Failure: "cannot delete a Job that has finished"}
	l.Sources = []reconcile.Source{l.Objects(jobsStorage, mayExpire)}
	return l.Run(ctx)
}

// mayExpire reports, without decoding a Job, whether it may expire.
func mayExpire(item *cache.Item) bool {
	return item.Err() == nil && !item.Meta().Deleting && scan.Lookup(item.Peek(), "spec", "ttlSecondsAfterFinished") != nil && scan.Lookup(item.Peek(), "status", "conditions") != nil
}

// reconcile deletes a Job whose TTL has expired.
func (j *FinishedJobs) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	var job batchv1.Job
	if !reconcile.Decode(j.Cache.Get(jobsStorage, key.Namespace, key.Name), &job) {
		return r, nil
	}
	expires, ok := expiry(&job)
	if !ok {
		return r, nil
	}
	if left := expires.Sub(j.Now()); left > 0 {
		return reconcile.Result{After: left}, nil
	}
	// The precondition on the revision keeps a Job whose TTL was extended in the meantime.
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{
		PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
	}
	path := "/apis/batch/v1/namespaces/" + key.Namespace + "/jobs/" + url.PathEscape(key.Name)
	return r, j.API.Call(ctx, jobsAgent, http.MethodDelete, path, reconcile.JSON, &options, nil)
}

// expiry returns when a Job expires; ok is false for one that does not.
func expiry(job *batchv1.Job) (at time.Time, ok bool) {
	if job.DeletionTimestamp != nil || job.Spec.TTLSecondsAfterFinished == nil {
		return at, false
	}
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), !c.LastTransitionTime.IsZero()
		}
	}
	return at, false
}
