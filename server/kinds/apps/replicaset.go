package apps

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// ReplicaSet returns the strategy of ReplicaSets.
func ReplicaSet(on kinds.Feature) kinds.Strategy {
	now, terminating := on.Has(release.KindRules133), on("DeploymentReplicaSetTerminatingReplicas")
	return workload[*appsv1.ReplicaSet]{
		template: func(r *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &r.Spec.Template },
		defaults: func(r *appsv1.ReplicaSet) { rules.DefaultTo(&r.Spec.Replicas, 1) },
		validate: func(r *appsv1.ReplicaSet, o podspec.Options) field.ErrorList {
			return validateReplicaSetSpec(&r.Spec, o)
		},
		validateUpdate: func(r, old *appsv1.ReplicaSet, o podspec.Options) field.ErrorList {
			errs := validateReplicaSetSpec(&r.Spec, o)
			if !now {
				errs = rules.Twice(errs)
			}
			return append(errs, rules.Immutable(r.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))...)
		},
		warnings: func(r, _ *appsv1.ReplicaSet, ofTemplate []string) []string {
			return append(podspec.NameWarning(r.Name), ofTemplate...)
		},
	}.strategy(on, kinds.Typed[*appsv1.ReplicaSet]{
		Meta:    kinds.WholeMeta132(on),
		Counted: func(r *appsv1.ReplicaSet) []any { return []any{r.Spec} },
		Status: &kinds.Status[*appsv1.ReplicaSet]{
			Prepare: func(r, old *appsv1.ReplicaSet) {
				if !terminating && old.Status.TerminatingReplicas == nil {
					r.Status.TerminatingReplicas = nil
				}
			},
			Validate: validateReplicaSetStatus,
		},
	})
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
		r.Name, int64(rules.Value(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas),
		columns.Since(r.CreationTimestamp, now), names, images, columns.LongSelector(r.Spec.Selector),
	}
}

func validateReplicaSetSpec(s *appsv1.ReplicaSetSpec, o podspec.Options) field.ErrorList {
	errs := rules.NotNegativePtr(s.Replicas, specPath.Child("replicas"))
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	// The text of a stock server has "deployment" here too.
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
	errs = append(errs, rules.NotNegativePtr(s.TerminatingReplicas, statusPath.Child("terminatingReplicas"))...)
	const all = "cannot be greater than status.replicas"
	errs = append(errs, rules.AtMost(s.FullyLabeledReplicas, s.Replicas, statusPath.Child("fullyLabeledReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.ReadyReplicas, s.Replicas, statusPath.Child("readyReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.Replicas, statusPath.Child("availableReplicas"), all)...)
	return append(errs, rules.AtMost(s.AvailableReplicas, s.ReadyReplicas, statusPath.Child("availableReplicas"), "cannot be greater than readyReplicas")...)
}
