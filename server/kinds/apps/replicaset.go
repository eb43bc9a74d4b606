package apps

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ReplicaSet is how ReplicaSets are written.
var ReplicaSet = kinds.Strategy{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.WholeMeta,
	Default:             defaultReplicaSet,
	PrepareForCreate:    prepareReplicaSet,
	PrepareForUpdate:    prepareReplicaSetUpdate,
	Validate:            validateReplicaSet,
	ValidateUpdate:      validateReplicaSetUpdate,
	Warnings:            replicaSetWarnings,
	UnconditionalUpdate: true,
	ResetFields:         []string{"status"},
}

// ReplicaSetStatus is how their status is written; it may change labels.
var ReplicaSetStatus = kinds.Strategy{
	Default: ReplicaSet.Default,
	PrepareForUpdate: func(_ context.Context, obj, before kinds.Object) {
		r, old := obj.(*appsv1.ReplicaSet), before.(*appsv1.ReplicaSet)
		r.Spec = old.Spec
		r.Generation = old.Generation
	},
	ValidateUpdate: validateReplicaSetStatus,
	ResetFields:    []string{"spec"},
}

// ReplicaSetScale is their scale.
var ReplicaSetScale = &kinds.ScaleMapping{
	Replicas: func(obj kinds.Object) (int32, int32) {
		r := obj.(*appsv1.ReplicaSet)
		return replicas(r.Spec.Replicas), r.Status.Replicas
	},
	SetReplicas:  func(obj kinds.Object, n int32) { obj.(*appsv1.ReplicaSet).Spec.Replicas = &n },
	Selector:     func(obj kinds.Object) string { return columns.Selector(obj.(*appsv1.ReplicaSet).Spec.Selector) },
	ReplicasPath: []string{"spec", "replicas"},
}

// ReplicaSetColumns is their Table form.
var ReplicaSetColumns = columns.Of(replicaSetCells, append([]columns.Column{
	columns.Name(),
	columns.Number("Desired", extensionsv1beta1.ReplicaSetSpec{}.SwaggerDoc()["replicas"]),
	columns.Number("Current", extensionsv1beta1.ReplicaSetStatus{}.SwaggerDoc()["replicas"]),
	columns.Number("Ready", extensionsv1beta1.ReplicaSetStatus{}.SwaggerDoc()["readyReplicas"]),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", extensionsv1beta1.ReplicaSetSpec{}.SwaggerDoc()["selector"])))...)...)

func replicaSetCells(r *appsv1.ReplicaSet, now time.Time) []any {
	names, images := columns.ContainerCells(r.Spec.Template.Spec.Containers)
	return []any{
		r.Name, int64(replicas(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas),
		columns.Since(r.CreationTimestamp, now), names, images, columns.LongSelector(r.Spec.Selector),
	}
}

func defaultReplicaSet(obj kinds.Object) {
	r := obj.(*appsv1.ReplicaSet)
	podspec.DefaultTemplate(&r.Spec.Template)
	rules.DefaultTo(&r.Spec.Replicas, 1)
}

func prepareReplicaSet(_ context.Context, obj kinds.Object) {
	r := obj.(*appsv1.ReplicaSet)
	r.Status = appsv1.ReplicaSetStatus{}
	r.Generation = 1
	podspec.DropDisabled(&r.Spec.Template.Spec, nil)
}

func prepareReplicaSetUpdate(_ context.Context, obj, before kinds.Object) {
	r, old := obj.(*appsv1.ReplicaSet), before.(*appsv1.ReplicaSet)
	r.Status = old.Status
	r.Generation = old.Generation
	podspec.DropDisabled(&r.Spec.Template.Spec, &old.Spec.Template.Spec)
	if !rules.Same(r.Spec, old.Spec) {
		r.Generation++
	}
}

func validateReplicaSet(_ context.Context, obj kinds.Object) field.ErrorList {
	r := obj.(*appsv1.ReplicaSet)
	return validateReplicaSetSpec(&r.Spec, podspec.TemplateOptions(&r.Spec.Template, nil))
}

func validateReplicaSetUpdate(_ context.Context, obj, before kinds.Object) field.ErrorList {
	r, old := obj.(*appsv1.ReplicaSet), before.(*appsv1.ReplicaSet)
	errs := rules.Twice(validateReplicaSetSpec(&r.Spec, podspec.TemplateOptions(&r.Spec.Template, &old.Spec.Template)))
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

func validateReplicaSetStatus(_ context.Context, obj, _ kinds.Object) field.ErrorList {
	s := &obj.(*appsv1.ReplicaSet).Status
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

func replicaSetWarnings(_ context.Context, obj, before kinds.Object) []string {
	r := obj.(*appsv1.ReplicaSet)
	old, ok := before.(*appsv1.ReplicaSet)
	if !ok || old == nil {
		return append(nameWarning(r.Name), templateWarnings(&r.Spec.Template, nil, true)...)
	}
	return templateWarnings(&r.Spec.Template, &old.Spec.Template, r.Generation != old.Generation)
}
