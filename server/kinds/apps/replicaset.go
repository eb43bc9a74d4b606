package apps

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ReplicaSet is how ReplicaSets are written.
func ReplicaSet(on kinds.Feature) kinds.Strategy {
	w := rulesFor(on)
	return kinds.Typed[*appsv1.ReplicaSet]{
		ValidateName:        apivalidation.NameIsDNSSubdomain,
		Meta:                &kinds.WholeMeta,
		Default:             w.defaultReplicaSet,
		Keep:                func(r, old *appsv1.ReplicaSet) { r.Status = old.Status },
		PrepareForCreate:    w.prepareReplicaSet,
		PrepareForUpdate:    w.prepareReplicaSetUpdate,
		Counted:             func(r *appsv1.ReplicaSet) []any { return []any{r.Spec} },
		Validate:            w.validateReplicaSet,
		ValidateUpdate:      w.validateReplicaSetUpdate,
		Warnings:            replicaSetWarnings,
		UnconditionalUpdate: true,
		ResetFields:         []string{"status"},
	}.Strategy()
}

// ReplicaSetStatus is how their status is written; it may change labels.
func ReplicaSetStatus(on kinds.Feature) kinds.Strategy {
	w := rulesFor(on)
	return kinds.Typed[*appsv1.ReplicaSet]{
		Default: w.defaultReplicaSet,
		Keep: func(r, old *appsv1.ReplicaSet) {
			r.Spec = old.Spec
			r.Generation = old.Generation
		},
		ValidateUpdate: validateReplicaSetStatus,
		ResetFields:    []string{"spec"},
	}.Strategy()
}

// ReplicaSetScale is their scale.
var ReplicaSetScale = kinds.TypedScale[*appsv1.ReplicaSet]{
	Wanted:   func(r *appsv1.ReplicaSet) **int32 { return &r.Spec.Replicas },
	Current:  func(r *appsv1.ReplicaSet) int32 { return r.Status.Replicas },
	Selector: func(r *appsv1.ReplicaSet) string { return columns.Selector(r.Spec.Selector) },
}.Mapping()

// ReplicaSetColumns is their Table form.
var ReplicaSetColumns = columns.Of(replicaSetCells, append([]columns.Column{
	columns.Name(),
	columns.Number("Desired", appsv1.ReplicaSetSpec{}.SwaggerDoc()["replicas"]),
	columns.Number("Current", appsv1.ReplicaSetStatus{}.SwaggerDoc()["replicas"]),
	columns.Number("Ready", strings.Replace(corev1.ReplicationControllerStatus{}.SwaggerDoc()["readyReplicas"], "replication controller", "replica set", 1)),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", firstSelector(appsv1.ReplicaSetSpec{}.SwaggerDoc()["selector"], "", "If the selector is empty, it is defaulted to the labels present on the pod template. "))))...)...)

func replicaSetCells(r *appsv1.ReplicaSet, now time.Time) []any {
	names, images := columns.ContainerCells(r.Spec.Template.Spec.Containers)
	return []any{
		r.Name, int64(replicas(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas),
		columns.Since(r.CreationTimestamp, now), names, images, columns.LongSelector(r.Spec.Selector),
	}
}

func (w workloads) defaultReplicaSet(r *appsv1.ReplicaSet) {
	w.pods.DefaultTemplate(&r.Spec.Template)
	rules.DefaultTo(&r.Spec.Replicas, 1)
}

func (w workloads) prepareReplicaSet(r *appsv1.ReplicaSet) {
	w.pods.DropDisabled(&r.Spec.Template.Spec, nil)
}

func (w workloads) prepareReplicaSetUpdate(r, old *appsv1.ReplicaSet) {
	w.pods.DropDisabled(&r.Spec.Template.Spec, &old.Spec.Template.Spec)
}

func (w workloads) validateReplicaSet(r *appsv1.ReplicaSet) field.ErrorList {
	return validateReplicaSetSpec(&r.Spec, w.pods.TemplateOptions(&r.Spec.Template, nil))
}

func (w workloads) validateReplicaSetUpdate(r, old *appsv1.ReplicaSet) field.ErrorList {
	errs := rules.Twice(validateReplicaSetSpec(&r.Spec, w.pods.TemplateOptions(&r.Spec.Template, &old.Spec.Template)))
	return append(errs, rules.Immutable(r.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))...)
}

func validateReplicaSetSpec(s *appsv1.ReplicaSetSpec, o podspec.Options) field.ErrorList {
	errs := rules.NotNegativePtr(s.Replicas, specPath.Child("replicas"))
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	// A stock server says "deployment" here too.
	selector, bad := validateSelector(s.Selector, "deployment", "invalid label selector")
	errs = append(errs, bad...)
	if selector != nil {
		errs = append(errs, validateReplicaTemplate(&s.Template, selector, o)...)
	}
	return errs
}

func validateReplicaSetStatus(obj, _ *appsv1.ReplicaSet) field.ErrorList {
	s := &obj.Status
	errs := rules.NotNegative(s.Replicas, statusPath.Child("replicas"))
	errs = append(errs, rules.NotNegative(s.FullyLabeledReplicas, statusPath.Child("fullyLabeledReplicas"))...)
	errs = append(errs, rules.NotNegative(s.ReadyReplicas, statusPath.Child("readyReplicas"))...)
	errs = append(errs, rules.NotNegative(s.AvailableReplicas, statusPath.Child("availableReplicas"))...)
	errs = append(errs, rules.NotNegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	const all = "cannot be greater than status.replicas"
	errs = append(errs, rules.AtMost(s.FullyLabeledReplicas, s.Replicas, statusPath.Child("fullyLabeledReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.ReadyReplicas, s.Replicas, statusPath.Child("readyReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.Replicas, statusPath.Child("availableReplicas"), all)...)
	return append(errs, rules.AtMost(s.AvailableReplicas, s.ReadyReplicas, statusPath.Child("availableReplicas"), "cannot be greater than readyReplicas")...)
}

func replicaSetWarnings(r, old *appsv1.ReplicaSet) []string {
	if old == nil {
		return append(nameWarning(r.Name), templateWarnings(&r.Spec.Template, nil, true)...)
	}
	return templateWarnings(&r.Spec.Template, &old.Spec.Template, r.Generation != old.Generation)
}
