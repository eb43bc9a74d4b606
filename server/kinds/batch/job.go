// Package batch holds the strategies of Jobs and CronJobs.
package batch

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Labels that tie pods to their Job: those in use, and their older names.
const (
	legacyUIDLabel  = "controller-uid"
	legacyNameLabel = "job-name"
)

// Job returns the strategy of Jobs.
func Job(on kinds.Feature) kinds.Strategy {
	r := rulesFor(on)
	return kinds.Typed[*batchv1.Job]{
		ValidateName:        apivalidation.NameIsDNSSubdomain,
		Meta:                &kinds.WholeMeta,
		Default:             r.defaultJob,
		PrepareForCreate:    r.prepareJob,
		PrepareForUpdate:    r.prepareJobUpdate,
		Counted:             func(j *batchv1.Job) []any { return []any{j.Spec} },
		Validate:            func(j *batchv1.Job) field.ErrorList { return validateWholeJob(j, r.jobOptions(j, nil)) },
		ValidateUpdate:      r.validateJobUpdate,
		Canonicalize:        labelJob,
		Warnings:            r.jobWarnings,
		UnconditionalUpdate: true,
		OrphanByDefault:     true,
		OrphanWarning:       "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		Status:              &kinds.Status[*batchv1.Job]{Validate: r.validateStatus, Canonicalize: labelJob},
	}.Strategy()
}

// JobFields are the selectable fields of Jobs.
var JobFields = []kinds.SelectableField{{Label: "status.successful", Path: []string{"status", "succeeded"}, Default: "0"}}

// JobColumns is their Table form.
var JobColumns = columns.Of(jobCells, append([]columns.Column{
	columns.Name(),
	columns.Text("Status", "Status of the job."),
	columns.Text("Completions", batchv1.JobStatus{}.SwaggerDoc()["succeeded"]),
	columns.Text("Duration", "Time required to complete the job."),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", batchv1.JobSpec{}.SwaggerDoc()["selector"])))...)...)

func jobCells(j *batchv1.Job, now time.Time) []any {
	var done string
	switch {
	case j.Spec.Completions != nil:
		done = fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case j.Spec.Parallelism != nil && *j.Spec.Parallelism > 1:
		done = fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, *j.Spec.Parallelism)
	default:
		done = fmt.Sprintf("%d/1", j.Status.Succeeded)
	}
	var took string
	if start, end := j.Status.StartTime, j.Status.CompletionTime; start != nil {
		if took = columns.Since(*start, now); end != nil {
			took = duration.HumanDuration(end.Sub(start.Time))
		}
	}
	names, images := columns.ContainerCells(j.Spec.Template.Spec.Containers)
	return []any{
		j.Name, jobState(j), done, took, columns.Since(j.CreationTimestamp, now),
		names, images, columns.LongSelector(j.Spec.Selector),
	}
}

// JobColumnsSince133 is their Table form since release 1.33, which shows that the criteria of success are met.
var JobColumnsSince133 = columns.Of(func(j *batchv1.Job, now time.Time) []any {
	cells := jobCells(j, now)
	if cells[1] == running && holds(j, batchv1.JobSuccessCriteriaMet) {
		cells[1] = string(batchv1.JobSuccessCriteriaMet)
	}
	return cells
}, JobColumns.Definitions...)

// running is the status of a Job without a condition that sets another.
const running = "Running"

func jobState(j *batchv1.Job) string {
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if holds(j, t) {
			return string(t)
		}
	}
	if j.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget} {
		if holds(j, t) {
			return string(t)
		}
	}
	return running
}

// holds reports whether a condition of a Job is true.
func holds(j *batchv1.Job, t batchv1.JobConditionType) bool { return has(j, t, corev1.ConditionTrue) }

// has reports whether a condition of a Job has a status.
func has(j *batchv1.Job, t batchv1.JobConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == t && c.Status == status })
}

func (r jobRules) defaultJob(j *batchv1.Job) {
	s := &j.Spec
	r.pods.DefaultTemplate(&s.Template)
	if s.Completions == nil && s.Parallelism == nil {
		rules.DefaultTo(&s.Completions, 1)
	}
	rules.DefaultTo(&s.Parallelism, 1)
	if r.perIndex && s.BackoffLimitPerIndex != nil {
		rules.DefaultTo(&s.BackoffLimit, math.MaxInt32)
	}
	rules.DefaultTo(&s.BackoffLimit, 6)
	labelJob(j)
	rules.DefaultTo(&s.CompletionMode, batchv1.NonIndexedCompletion)
	rules.DefaultTo(&s.Suspend, false)
	rules.DefaultTo(&s.ManualSelector, false)
	defaultFailurePolicy(s.PodFailurePolicy)
	replace := batchv1.TerminatingOrFailed
	if s.PodFailurePolicy != nil {
		replace = batchv1.Failed
	}
	if r.replacement {
		rules.DefaultTo(&s.PodReplacementPolicy, replace)
	}
}

func defaultFailurePolicy(p *batchv1.PodFailurePolicy) {
	if p == nil {
		return
	}
	for i := range p.Rules {
		for k := range p.Rules[i].OnPodConditions {
			if c := &p.Rules[i].OnPodConditions[k]; c.Status == "" {
				c.Status = corev1.ConditionTrue
			}
		}
	}
}

// labelJob gives a Job without labels those of its pods.
func labelJob(j *batchv1.Job) {
	if len(j.Labels) == 0 && j.Spec.Template.Labels != nil {
		j.Labels = j.Spec.Template.Labels // the same map, see generateSelector
	}
}

func (r jobRules) prepareJob(j *batchv1.Job) {
	if !rules.Value(j.Spec.ManualSelector) {
		generateSelector(j)
	}
	r.dropDisabled(&j.Spec, nil)
	r.pods.DropDisabled(&j.Spec.Template.Spec, nil)
}

// generateSelector makes a selector that matches the pods of this Job alone.
// Labels that a client set already stay, and are judged later.
func generateSelector(j *batchv1.Job) {
	labels := maps.Clone(j.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	// A Job that took its labels from its pods takes those that are added too.
	if m := reflect.ValueOf(j.Labels); m.Len() > 0 && m.Pointer() == reflect.ValueOf(j.Spec.Template.Labels).Pointer() {
		j.Labels = labels
	}
	setMissing(labels, legacyNameLabel, j.Name)
	setMissing(labels, batchv1.JobNameLabel, j.Name)
	setMissing(labels, legacyUIDLabel, string(j.UID))
	setMissing(labels, batchv1.ControllerUidLabel, string(j.UID))
	j.Spec.Template.Labels = labels
	rules.DefaultTo(&j.Spec.Selector, metav1.LabelSelector{})
	match := maps.Clone(j.Spec.Selector.MatchLabels)
	if match == nil {
		match = map[string]string{}
	}
	setMissing(match, batchv1.ControllerUidLabel, string(j.UID))
	j.Spec.Selector.MatchLabels = match
}

func setMissing(m map[string]string, key, v string) {
	if _, ok := m[key]; !ok {
		m[key] = v
	}
}

func (r jobRules) prepareJobUpdate(j, old *batchv1.Job) {
	r.dropDisabled(&j.Spec, &old.Spec)
	r.pods.DropDisabled(&j.Spec.Template.Spec, &old.Spec.Template.Spec)
}

func (r jobRules) jobWarnings(j, old *batchv1.Job) []string {
	if old == nil {
		return append(podspec.NameWarning(j.Name), r.specWarnings(field.NewPath("spec"), &j.Spec)...)
	}
	if j.Generation == old.Generation {
		return nil
	}
	return r.specWarnings(field.NewPath("spec"), &j.Spec)
}

func (r jobRules) specWarnings(path *field.Path, s *batchv1.JobSpec) []string {
	var out []string
	if rules.Value(s.CompletionMode) == batchv1.IndexedCompletion && rules.Value(s.Completions) > highCompletions && rules.Value(s.Parallelism) > highParallelism {
		out = append(out, "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
	}
	return append(out, r.pods.Warnings(path.Child("template"), &s.Template)...)
}
