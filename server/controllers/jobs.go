package controllers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
)

const (
	jobsStorage = "jobs.batch"
	jobsSwitch  = "ttl-after-finished"
	jobsAgent   = managerAgent + "ttl-after-finished-controller"
)

// FinishedJobs deletes Jobs some time after they have finished, as they ask for by
// spec.ttlSecondsAfterFinished, and what they own with them.
//
// Who may write Jobs causes, for each, a look when it changes and one when its time has
// come, and an entry of a hundred bytes until then.
type FinishedJobs struct{ Chore }

// finishedJobs builds the controller.
func finishedJobs(h Host, c Config) func(context.Context) error {
	return (&FinishedJobs{choreOf(h, c, jobsSwitch, "ttl_jobs_to_delete")}).Run
}

// Run works until ctx ends.
func (j *FinishedJobs) Run(ctx context.Context) error {
	return j.run(ctx, j.look, func(ctx context.Context, list *agenda) []source {
		touch := func(item *cache.Item) {
			if mayExpire(item) {
				list.touch(objectKey{item.Namespace, item.Name}, j.Clock())
			}
		}
		gone := func(item *cache.Item) { list.drop(objectKey{item.Namespace, item.Name}) }
		return []source{objectsOf(ctx, jobsStorage, touch, gone)}
	})
}

// mayExpire says, without decoding it, that a Job may go by itself some time.
func mayExpire(item *cache.Item) bool {
	return item.Corrupt == nil && !item.Meta().Deleting && scan.Lookup(item.Peek(), "spec", "ttlSecondsAfterFinished") != nil && scan.Lookup(item.Peek(), "status", "conditions") != nil
}

// look deletes a Job whose time has come.
func (j *FinishedJobs) look(ctx context.Context, list *agenda, key objectKey) bool {
	var job batchv1.Job
	item := j.Cache.Get(jobsStorage, key.namespace, key.name)
	if item == nil || item.Corrupt != nil || json.Unmarshal(item.JSON(), &job) != nil {
		list.forget(key)
		return true
	}
	expires, ok := expiry(&job)
	switch {
	case !ok:
		list.forget(key)
		return true
	case j.Clock().Before(expires):
		list.until(key, expires)
		return true
	}
	// It goes only as it was looked at: its time may have been moved meanwhile.
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{
		PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
	}
	path := "/apis/batch/v1/namespaces/" + key.namespace + "/jobs/" + url.PathEscape(key.name)
	err := j.API.Call(ctx, jobsAgent, http.MethodDelete, path, "application/json", &options, nil)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
		list.forget(key) // what others did comes as a change
		return true
	}
	j.Log.Warn("cannot delete a Job that has finished", "namespace", key.namespace, "name", key.name, "error", err)
	list.fail(key, j.Clock())
	return false
}

// expiry is when a Job goes by itself; ok is false for one that does not.
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
