package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// statusChange is a Job before and after a write of its status. Rules apply to the changes of a write, so
// that an old fault does not block another repair.
type statusChange struct {
	job, old *batchv1.Job
	path     *field.Path
	now      bool // the rules after release 1.32
	errs     field.ErrorList
}

func (r jobRules) validateStatus(obj, old *batchv1.Job) field.ErrorList {
	c := &statusChange{job: obj, old: old, path: field.NewPath("status"), now: r.now}
	c.counts()
	c.uncounted()
	c.outcome()
	c.finished()
	c.indexes()
	c.pods()
	c.criteria()
	c.progress()
	return c.errs
}

func (c *statusChange) invalid(name string, v any, message string) {
	c.errs = append(c.errs, field.Invalid(c.path.Child(name), v, message))
}

// text returns the error text of a release.
func (c *statusChange) text(in132, after string) string {
	if c.now {
		return after
	}
	return in132
}

func (c *statusChange) condition(message string) {
	c.invalid("conditions", field.OmitValueType{}, message)
}

func (c *statusChange) required(name, message string) {
	c.errs = append(c.errs, field.Required(c.path.Child(name), message))
}

func (c *statusChange) is(t batchv1.JobConditionType) bool  { return holds(c.job, t) }
func (c *statusChange) was(t batchv1.JobConditionType) bool { return holds(c.old, t) }
func (c *statusChange) changed(t batchv1.JobConditionType) bool {
	return c.is(t) != c.was(t)
}

func (c *statusChange) isFinished() bool {
	return c.is(batchv1.JobComplete) || c.is(batchv1.JobFailed)
}

func (c *statusChange) finishedChanged() bool {
	return c.isFinished() != (c.was(batchv1.JobComplete) || c.was(batchv1.JobFailed))
}

func (c *statusChange) startChanged() bool {
	return !c.old.Status.StartTime.Equal(c.job.Status.StartTime)
}

func (c *statusChange) endChanged() bool {
	return !c.old.Status.CompletionTime.Equal(c.job.Status.CompletionTime)
}

func (c *statusChange) counts() {
	s := &c.job.Status
	c.errs = append(c.errs, rules.NotNegative(s.Active, c.path.Child("active"))...)
	c.errs = append(c.errs, rules.NotNegative(s.Succeeded, c.path.Child("succeeded"))...)
	c.errs = append(c.errs, rules.NotNegative(s.Failed, c.path.Child("failed"))...)
	c.errs = append(c.errs, rules.NotNegativePtr(s.Ready, c.path.Child("ready"))...)
	c.errs = append(c.errs, rules.NotNegativePtr(s.Terminating, c.path.Child("terminating"))...)
}

func (c *statusChange) uncounted() {
	u := c.job.Status.UncountedTerminatedPods
	if u == nil {
		return
	}
	seen := map[types.UID]bool{}
	check := func(uids []types.UID, path *field.Path) {
		for i, uid := range rules.Until(&c.errs, uids) {
			switch {
			case uid == "":
				c.errs = append(c.errs, field.Invalid(path.Index(i), uid, "must not be empty"))
			case seen[uid]:
				c.errs = append(c.errs, field.Duplicate(path.Index(i), uid))
			default:
				seen[uid] = true
			}
		}
	}
	path := c.path.Child("uncountedTerminatedPods")
	check(u.Succeeded, path.Child("succeeded"))
	check(u.Failed, path.Child("failed"))
}

// outcome checks that the conditions and times of the end agree.
func (c *statusChange) outcome() {
	s := &c.job.Status
	complete, failed := c.is(batchv1.JobComplete), c.is(batchv1.JobFailed)
	completeChanged := c.changed(batchv1.JobComplete)
	if complete && failed && (completeChanged || c.changed(batchv1.JobFailed)) {
		c.condition("cannot set Complete=True and Failed=true conditions")
	}
	if complete && c.is(batchv1.JobFailureTarget) && (completeChanged || c.changed(batchv1.JobFailureTarget)) {
		c.condition("cannot set Complete=True and FailureTarget=true conditions")
	}
	if completeChanged || c.endChanged() {
		if s.CompletionTime != nil && !complete {
			c.invalid("completionTime", s.CompletionTime, "cannot set completionTime when there is no Complete=True condition")
		}
		if s.CompletionTime == nil && complete {
			c.required("completionTime", "completionTime is required for Complete jobs")
		}
	}
	if (c.startChanged() || c.endChanged()) && s.StartTime != nil && s.CompletionTime != nil && s.CompletionTime.Before(s.StartTime) {
		c.invalid("completionTime", s.CompletionTime, c.text("completionTime cannot be set before startTime", "must be equal to or after `startTime`"))
	}
	if failed && c.changed(batchv1.JobFailed) && !c.is(batchv1.JobFailureTarget) {
		c.condition("cannot set Failed=True condition without the FailureTarget=true condition")
	}
	if complete && completeChanged && !c.is(batchv1.JobSuccessCriteriaMet) {
		c.condition("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	}
}

// finished checks the conditions of a finished Job.
func (c *statusChange) finished() {
	if !c.isFinished() {
		return
	}
	s, changed := &c.job.Status, c.finishedChanged()
	if s.Active > 0 && (changed || c.old.Status.Active != s.Active) {
		c.invalid("active", s.Active, "active>0 is invalid for finished job")
	}
	// A Job of no pods that is suspended ends without having begun.
	nothing := c.now && rules.Value(c.job.Spec.Suspend) && c.job.Spec.Completions != nil && *c.job.Spec.Completions == 0
	if s.StartTime == nil && (changed || c.startChanged()) && !nothing {
		c.required("startTime", "startTime is required for finished job")
	}
	if u := s.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 &&
		(changed || !rules.Same(c.old.Status.UncountedTerminatedPods, u)) {
		c.invalid("uncountedTerminatedPods", rules.Shown(u), c.text("uncountedTerminatedPods needs to be empty for finished job", "must be empty for finished job"))
	}
}

func (c *statusChange) indexes() {
	s, spec := &c.job.Status, &c.job.Spec
	completedChanged := c.old.Status.CompletedIndexes != s.CompletedIndexes
	failedChanged := !rules.Same(c.old.Status.FailedIndexes, s.FailedIndexes)
	if completedChanged && spec.Completions != nil {
		if _, err := countIndexes(s.CompletedIndexes, *spec.Completions); err != nil {
			c.invalid("completedIndexes", s.CompletedIndexes, "error parsing completedIndexes: "+err.Error())
		}
	}
	if failedChanged && spec.Completions != nil && spec.BackoffLimitPerIndex != nil && s.FailedIndexes != nil {
		if _, err := countIndexes(*s.FailedIndexes, *spec.Completions); err != nil {
			c.invalid("failedIndexes", *s.FailedIndexes, "error parsing failedIndexes: "+err.Error())
		}
	}
	if completedChanged && s.CompletedIndexes != "" && rules.Value(spec.CompletionMode) != batchv1.IndexedCompletion {
		c.invalid("completedIndexes", s.CompletedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if failedChanged && spec.BackoffLimitPerIndex == nil && s.FailedIndexes != nil {
		c.invalid("failedIndexes", *s.FailedIndexes, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
	}
	if (failedChanged || completedChanged) && spec.Completions != nil && s.FailedIndexes != nil {
		if err := overlap(s.CompletedIndexes, *s.FailedIndexes, *spec.Completions); err != nil {
			c.invalid("failedIndexes", *s.FailedIndexes, err.Error())
		}
	}
}

func (c *statusChange) pods() {
	s, old := &c.job.Status, &c.old.Status
	if c.isFinished() && rules.Value(s.Terminating) > 0 && (c.finishedChanged() || !rules.Same(old.Terminating, s.Terminating)) {
		c.invalid("terminating", *s.Terminating, "terminating>0 is invalid for finished job")
	}
	if s.Ready != nil && *s.Ready > s.Active && (!rules.Same(old.Ready, s.Ready) || old.Active != s.Active) {
		c.invalid("ready", *s.Ready, "cannot set more ready pods than active")
	}
}

func (c *statusChange) criteria() {
	met := c.is(batchv1.JobSuccessCriteriaMet)
	if met && c.is(batchv1.JobFailed) {
		c.condition("cannot set SuccessCriteriaMet=True and Failed=true conditions")
	}
	if met && c.is(batchv1.JobFailureTarget) {
		c.condition("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	}
	if c.job.Spec.SuccessPolicy != nil && !met && c.is(batchv1.JobComplete) {
		c.condition("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
	}
}

// progress checks fields that only move in one direction.
func (c *statusChange) progress() {
	s, old, spec := &c.job.Status, &c.old.Status, &c.job.Spec
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget} {
		if c.was(t) && !c.is(t) {
			c.condition(fmt.Sprintf("cannot disable the terminal %s=True condition", t))
		}
	}
	if s.Failed < old.Failed {
		c.invalid("failed", s.Failed, "cannot decrease the failed counter")
	}
	// An Indexed Job that is scaled down forgets successes.
	elastic := rules.Value(spec.CompletionMode) == batchv1.IndexedCompletion && rules.Same(spec.Completions, spec.Parallelism)
	if s.Succeeded < old.Succeeded && !elastic {
		c.invalid("succeeded", s.Succeeded, "cannot decrease the succeeded counter")
	}
	if s.CompletionTime != nil && old.CompletionTime != nil && c.endChanged() {
		c.invalid("completionTime", s.CompletionTime, c.text("completionTime cannot be mutated", apivalidation.FieldImmutableErrorMsg))
	}
	if old.StartTime != nil && c.startChanged() && !rules.Value(spec.Suspend) {
		switch resumed := c.was(batchv1.JobSuspended) && has(c.job, batchv1.JobSuspended, corev1.ConditionFalse); {
		case !c.now:
			c.required("startTime", "startTime cannot be removed for unsuspended job")
		case !resumed:
			c.invalid("startTime", s.StartTime, "field is immutable for unsuspended job once set")
		}
	}
	met, wasMet := c.is(batchv1.JobSuccessCriteriaMet), c.was(batchv1.JobSuccessCriteriaMet)
	if wasMet && !met {
		c.condition("cannot disable the SuccessCriteriaMet=True condition")
	}
	if c.was(batchv1.JobComplete) && !wasMet && met {
		c.condition("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
	}
}
