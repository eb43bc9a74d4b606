//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Jobs have failed long ago, and have a time to live that is over, or is not, by any clock that a fault sets.
const (
	failedAgo = 1000 * time.Hour
	shortLife = 60 // seconds
	longLife  = 4000 * shortLife * 60
	keptJob   = 3 * time.Second // longer than the controller waits before it acts
)

// jobs makes Jobs that have ended. One goes because its time is over; another one stays, until its client shortens its time.
func (c *client) jobs(ctx context.Context) {
	for turn := 0; ctx.Err() == nil && !c.rec.Lost() && c.endJobs(ctx, fmt.Sprintf("%s-%d", c.label(), turn)); turn++ {
	}
}

func (c *client) endJobs(ctx context.Context, name string) bool {
	const jobs = "/apis/batch/v1/namespaces/" + narrowNamespace + "/jobs"
	silent, short, long := c.silent, jobs+"/"+name+"-short", jobs+"/"+name+"-long"
	defer c.tidy(ctx, short, long)
	job := func(name string, seconds int) [2]string {
		return [2]string{jobs, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"ttlSecondsAfterFinished":%d,%s}}`, name, seconds, jobTemplate)}
	}
	if !c.made(ctx, c, job(name+"-short", shortLife), job(name+"-long", longLife)) {
		return false
	}
	then := time.Now().Add(-failedAgo).UTC().Format(time.RFC3339)
	failed := fmt.Sprintf(`{"status":{"startTime":%q,"conditions":[{"type":"FailureTarget","status":"True","lastTransitionTime":%[1]q},{"type":"Failed","status":"True","lastTransitionTime":%[1]q}]}}`, then)
	if !c.mustPatch(ctx, long+"/status", failed, http.StatusOK) || !c.mustPatch(ctx, short+"/status", failed, http.StatusOK, http.StatusNotFound) {
		return false
	}
	if c.silent != silent { // what had no answer may be done late
		return true
	}
	due := c.rec.Now()
	c.during(ctx, keptJob, func(int) {
		c.inspect(ctx, "lifecycle", "a Job whose time after its end is not over", long, there)
	})
	return c.jobGoes(ctx, short, due) && c.mustPatch(ctx, long, fmt.Sprintf(`{"spec":{"ttlSecondsAfterFinished":%d}}`, shortLife), http.StatusOK) && c.jobGoes(ctx, long, c.rec.Now())
}

// jobGoes waits until a Job is gone whose time is over since a moment.
func (c *client) jobGoes(ctx context.Context, path string, since time.Duration) bool {
	due := &history.Due{Property: "liveness", What: "the end of the Job " + path + ", whose time after its end is over,", Server: -1, Within: absentTime, Cause: since}
	return c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
		code, _, err := c.send(ctx, c.next(), http.MethodGet, path, "", "")
		return err == nil && code == http.StatusNotFound, c.rec.Lost()
	})
}
