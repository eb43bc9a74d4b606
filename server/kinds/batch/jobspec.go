package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Limits of Indexed Jobs. Above highCompletions, failures per index are tracked
// only within the narrower bounds of highParallelism.
const (
	maxParallelism  = 100_000
	maxFailed       = 100_000
	highCompletions = 100_000
	highParallelism = 10_000
	maxManagedBy    = 63
)

// jobRules are the rules of Jobs and CronJobs where some gates are on.
type jobRules struct {
	pods                                              podspec.Rules
	perIndex, replacement, managedBy, successPolicies bool
	now                                               bool // the rules after release 1.32
	anyAmount, anyPlace                               bool // of suspended Jobs
}

func rulesFor(on kinds.Feature) jobRules {
	return jobRules{
		pods: podspec.For(on), perIndex: on("JobBackoffLimitPerIndex"), replacement: on("JobPodReplacementPolicy"),
		managedBy: on("JobManagedBy"), successPolicies: on("JobSuccessPolicy"),
		now: on.Has(release.KindRules133), anyAmount: on("MutablePodResourcesForSuspendedJobs"), anyPlace: on("MutableSchedulingDirectivesForSuspendedJobs"),
	}
}

// dropDisabled removes fields behind gates that are off, unless old, which is nil on
// create, has them. Rules of a failure policy that an old Job has may not change at all.
func (r jobRules) dropDisabled(s, old *batchv1.JobSpec) {
	created := old == nil
	if created {
		old = &batchv1.JobSpec{}
	}
	if !r.perIndex && old.BackoffLimitPerIndex == nil {
		s.BackoffLimitPerIndex = nil
	}
	if !r.perIndex && old.MaxFailedIndexes == nil {
		s.MaxFailedIndexes = nil
	}
	if !r.perIndex && created && s.PodFailurePolicy != nil {
		s.PodFailurePolicy.Rules = slices.DeleteFunc(s.PodFailurePolicy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
			return rule.Action == batchv1.PodFailurePolicyActionFailIndex
		})
	}
	if !r.replacement && old.PodReplacementPolicy == nil {
		s.PodReplacementPolicy = nil
	}
	if !r.managedBy && created {
		s.ManagedBy = nil
	}
	if !r.successPolicies && old.SuccessPolicy == nil {
		s.SuccessPolicy = nil
	}
}

// options defines which rules of a Job are relaxed on an update.
type options struct {
	template      podspec.Options
	keepSelector  bool // the old selector has values that are not valid
	movable       bool // suspended and never started: where pods run may change
	resizable     bool // suspended without pods: resources of containers may change
	plainLabelsOK bool // the old template lacks the prefixed labels
}

func (r jobRules) jobOptions(j, old *batchv1.Job) options {
	if old == nil {
		return options{template: r.pods.TemplateOptions(&j.Spec.Template, nil)}
	}
	_, name := old.Spec.Template.Labels[batchv1.JobNameLabel]
	_, uid := old.Spec.Template.Labels[batchv1.ControllerUidLabel]
	suspended := rules.Value(old.Spec.Suspend)
	idle := suspended && (old.Status.StartTime == nil || holds(old, batchv1.JobSuspended)) && old.Status.Active == 0
	return options{
		template:      r.pods.TemplateOptions(&j.Spec.Template, &old.Spec.Template),
		keepSelector:  rules.SelectorInvalid(old.Spec.Selector),
		movable:       suspended && old.Status.StartTime == nil || r.anyPlace && idle,
		resizable:     r.anyAmount && idle,
		plainLabelsOK: !name || !uid,
	}
}

// A stock server checks the spec of a changed Job twice, and so lists some causes twice.
func (r jobRules) validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	o := r.jobOptions(j, old)
	path := field.NewPath("spec")
	errs := validateWholeJob(j, o)
	errs = append(errs, validateSelectedSpec(&j.Spec, path, o)...)
	errs = append(errs, validateCompletionsUpdate(&j.Spec, &old.Spec, path.Child("completions"))...)
	errs = append(errs, rules.Immutable(j.Spec.Selector, old.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, validateTemplateUpdate(&j.Spec.Template, &old.Spec.Template, path.Child("template"), o)...)
	errs = append(errs, rules.Immutable(j.Spec.CompletionMode, old.Spec.CompletionMode, path.Child("completionMode"))...)
	errs = append(errs, rules.Immutable(j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy, path.Child("podFailurePolicy"))...)
	errs = append(errs, rules.Immutable(j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	errs = append(errs, rules.Immutable(j.Spec.ManagedBy, old.Spec.ManagedBy, path.Child("managedBy"))...)
	return append(errs, rules.Immutable(j.Spec.SuccessPolicy, old.Spec.SuccessPolicy, path.Child("successPolicy"))...)
}

// Completions of an Indexed Job may change together with its parallelism.
func validateCompletionsUpdate(s, old *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if rules.Value(s.CompletionMode) != batchv1.IndexedCompletion {
		return rules.Immutable(s.Completions, old.Completions, path)
	}
	if rules.Same(s.Completions, old.Completions) || s.Completions == nil || *s.Completions == rules.Value(s.Parallelism) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, s.Completions, fmt.Sprintf("can only be modified in tandem with %s", path.Root().Child("parallelism")))}
}

// takeResources gives containers the resources of others that have their names.
func takeResources(list, from []corev1.Container) {
	if len(list) != len(from) {
		return
	}
	for i := range list {
		if list[i].Name == from[i].Name {
			list[i].Resources = from[i].Resources
		}
	}
}

// validateTemplateUpdate lets a Job that never started be sent elsewhere, and one without pods need other resources.
func validateTemplateUpdate(t, old *corev1.PodTemplateSpec, path *field.Path, o options) field.ErrorList {
	if o.movable {
		old = old.DeepCopy()
		old.Spec.Affinity = withNodeAffinityOf(old.Spec.Affinity, t.Spec.Affinity)
		old.Spec.NodeSelector = t.Spec.NodeSelector
		old.Spec.Tolerations = t.Spec.Tolerations
		old.Spec.SchedulingGates = t.Spec.SchedulingGates
		old.Annotations = t.Annotations
		old.Labels = t.Labels
	}
	if !o.resizable {
		return rules.Immutable(t, old, path)
	}
	// Nothing but the pod spec is compared.
	spec := old.Spec.DeepCopy()
	takeResources(spec.Containers, t.Spec.Containers)
	takeResources(spec.InitContainers, t.Spec.InitContainers)
	return rules.Immutable(t.Spec, *spec, path.Child("spec"))
}

func withNodeAffinityOf(old, next *corev1.Affinity) *corev1.Affinity {
	switch {
	case old == nil && next == nil:
		return nil
	case next == nil:
		old.NodeAffinity = nil
		if *old == (corev1.Affinity{}) {
			return nil
		}
		return old
	case old == nil:
		return &corev1.Affinity{NodeAffinity: next.NodeAffinity}
	default:
		old.NodeAffinity = next.NodeAffinity
		return old
	}
}

func validateWholeJob(j *batchv1.Job, o options) field.ErrorList {
	errs := validateGeneratedSelector(j, o)
	errs = append(errs, validateSelectedSpec(&j.Spec, field.NewPath("spec"), o)...)
	if rules.Value(j.Spec.CompletionMode) == batchv1.IndexedCompletion && rules.Value(j.Spec.Completions) > 0 {
		// Pods of an Indexed Job carry their index in their host name.
		longest := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
		if len(validation.IsDNS1123Label(longest)) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+longest))
		}
	}
	return errs
}

func validateGeneratedSelector(j *batchv1.Job, o options) field.ErrorList {
	if rules.Value(j.Spec.ManualSelector) || j.Spec.Selector == nil {
		return nil
	}
	errs := rules.RequiredIf(nil, j.UID == "", field.NewPath("metadata", "uid"), "")
	expected := labels.Set{legacyUIDLabel: string(j.UID), legacyNameLabel: j.Name}
	order := []string{legacyUIDLabel, legacyNameLabel}
	if !o.plainLabelsOK {
		expected[batchv1.ControllerUidLabel], expected[batchv1.JobNameLabel] = string(j.UID), j.Name
		order = append(order, batchv1.ControllerUidLabel, batchv1.JobNameLabel)
	}
	path := field.NewPath("spec", "template", "metadata", "labels")
	for _, key := range order {
		actual, ok := j.Spec.Template.Labels[key]
		switch {
		case !ok:
			errs = append(errs, field.Required(path.Key(key), fmt.Sprintf("must be '%s'", expected[key])))
		case actual != expected[key]:
			errs = append(errs, field.Invalid(path.Key(key), j.Spec.Template.Labels, fmt.Sprintf("must be '%s'", expected[key])))
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !selector.Matches(expected) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "selector"), j.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

func validateSelectedSpec(s *batchv1.JobSpec, path *field.Path, o options) field.ErrorList {
	errs := validateJobSpec(s, path, o.template)
	if s.Selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, rules.LooseSelector(s.Selector, o.keepSelector, path.Child("selector"))...)
	}
	if selector, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !selector.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
	}
	return errs
}

func validateJobSpec(s *batchv1.JobSpec, path *field.Path, o podspec.Options) field.ErrorList {
	errs := rules.NotNegativePtr(s.Parallelism, path.Child("parallelism"))
	errs = append(errs, rules.NotNegativePtr(s.Completions, path.Child("completions"))...)
	errs = append(errs, rules.NotNegativePtr(s.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, rules.NotNegativePtr(s.BackoffLimit, path.Child("backoffLimit"))...)
	errs = append(errs, rules.NotNegativePtr(s.TTLSecondsAfterFinished, path.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, rules.NotNegativePtr(s.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	if s.MaxFailedIndexes != nil {
		errs = append(errs, rules.NotNegativePtr(s.MaxFailedIndexes, path.Child("maxFailedIndexes"))...)
		errs = rules.RequiredIf(errs, s.BackoffLimitPerIndex == nil, path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
	}
	if m := s.ManagedBy; m != nil {
		errs = append(errs, validation.IsDomainPrefixedPath(path.Child("managedBy"), *m)...)
		if len(*m) > maxManagedBy {
			errs = append(errs, field.TooLong(path.Child("managedBy"), "", maxManagedBy))
		}
	}
	errs = append(errs, validateCompletionMode(s, path)...)
	if s.PodFailurePolicy != nil {
		errs = append(errs, validateFailurePolicy(s, path.Child("podFailurePolicy"))...)
	}
	if p := s.SuccessPolicy; p != nil {
		if rules.Value(s.CompletionMode) != batchv1.IndexedCompletion {
			errs = append(errs, field.Invalid(path.Child("successPolicy"), rules.Shown(p), "requires indexed completion mode"))
		} else {
			errs = append(errs, validateSuccessPolicy(s, path.Child("successPolicy"))...)
		}
	}
	errs = append(errs, validateReplacement(s, path.Child("podReplacementPolicy"))...)
	errs = append(errs, podspec.ValidateTemplate(&s.Template, path.Child("template"), o)...)
	return append(errs, validateRestart(s, path.Child("template", "spec", "restartPolicy"))...)
}

func validateCompletionMode(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m := s.CompletionMode; m != nil {
		errs = rules.OneOf(*m, path.Child("completionMode"), batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
		if *m == batchv1.IndexedCompletion {
			return append(errs, validateIndexed(s, path)...)
		}
		if *m != batchv1.NonIndexedCompletion {
			return errs
		}
	}
	const indexedOnly = "requires indexed completion mode"
	errs = rules.InvalidIf(errs, s.BackoffLimitPerIndex != nil, path.Child("backoffLimitPerIndex"), s.BackoffLimitPerIndex, indexedOnly)
	if s.MaxFailedIndexes != nil {
		errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), *s.MaxFailedIndexes, indexedOnly))
	}
	return errs
}

func validateIndexed(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, s.Completions == nil, path.Child("completions"), "when completion mode is Indexed")
	if rules.Value(s.Parallelism) > maxParallelism {
		errs = append(errs, field.Invalid(path.Child("parallelism"), *s.Parallelism, fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", maxParallelism)))
	}
	failed := path.Child("maxFailedIndexes")
	if s.Completions != nil && s.MaxFailedIndexes != nil && *s.MaxFailedIndexes > *s.Completions {
		errs = append(errs, field.Invalid(failed, *s.MaxFailedIndexes, "must be less than or equal to completions"))
	}
	if rules.Value(s.MaxFailedIndexes) > maxFailed {
		errs = append(errs, field.Invalid(failed, *s.MaxFailedIndexes, fmt.Sprintf("must be less than or equal to %d", maxFailed)))
	}
	if rules.Value(s.Completions) <= highCompletions || s.BackoffLimitPerIndex == nil {
		return errs
	}
	if s.MaxFailedIndexes == nil {
		errs = append(errs, field.Required(failed, fmt.Sprintf("must be specified when completions is above %d", highCompletions)))
	}
	narrow := fmt.Sprintf("must be less than or equal to %d when completions are above %d and used with backoff limit per index", highParallelism, highCompletions)
	errs = rules.InvalidIf(errs, rules.Value(s.Parallelism) > highParallelism, path.Child("parallelism"), s.Parallelism, narrow)
	return rules.InvalidIf(errs, rules.Value(s.MaxFailedIndexes) > highParallelism, failed, s.MaxFailedIndexes, narrow)
}

func validateReplacement(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	switch {
	case s.PodReplacementPolicy == nil:
		return nil
	case s.PodFailurePolicy != nil:
		return rules.OneOf(*s.PodReplacementPolicy, path, batchv1.Failed)
	default:
		return rules.OneOf(*s.PodReplacementPolicy, path, batchv1.Failed, batchv1.TerminatingOrFailed)
	}
}

// Pods of a Job end; a policy that starts them again without end is refused,
// also where it is there by default.
func validateRestart(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	switch p := s.Template.Spec.RestartPolicy; {
	case p == "" || p == corev1.RestartPolicyAlways:
		return field.ErrorList{field.Required(path, `valid values: "OnFailure", "Never"`)}
	case p != corev1.RestartPolicyOnFailure && p != corev1.RestartPolicyNever:
		return field.ErrorList{field.NotSupported(path, p, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever})}
	case s.PodFailurePolicy != nil && p != corev1.RestartPolicyNever:
		return field.ErrorList{field.Invalid(path, p, `only "Never" is supported when podFailurePolicy is specified`)}
	default:
		return nil
	}
}
