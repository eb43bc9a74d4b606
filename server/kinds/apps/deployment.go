package apps

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Deployment returns the strategy of Deployments. Their generation counts changes of annotations too.
func Deployment(on kinds.Feature) kinds.Strategy {
	terminating := on("DeploymentReplicaSetTerminatingReplicas")
	return workload[*appsv1.Deployment]{
		template: func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template },
		defaults: defaultDeployment,
		validate: func(d *appsv1.Deployment, o podspec.Options) field.ErrorList {
			return validateDeploymentSpec(&d.Spec, o)
		},
		validateUpdate: func(d, old *appsv1.Deployment, o podspec.Options) field.ErrorList {
			return append(validateDeploymentSpec(&d.Spec, o), rules.Immutable(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))...)
		},
		warnings: func(d, _ *appsv1.Deployment, ofTemplate []string) []string {
			return append(podspec.NameWarning(d.Name), ofTemplate...)
		},
	}.strategy(on, kinds.Typed[*appsv1.Deployment]{
		Counted: func(d *appsv1.Deployment) []any { return []any{d.Spec, d.Annotations} },
		Status: &kinds.Status[*appsv1.Deployment]{
			Prepare: func(d, old *appsv1.Deployment) {
				d.Labels = old.Labels
				if !terminating && old.Status.TerminatingReplicas == nil {
					d.Status.TerminatingReplicas = nil
				}
			},
			Validate:    validateDeploymentStatus,
			ResetFields: []string{"metadata.labels"},
		},
	})
}

// DeploymentScale is their scale.
var DeploymentScale = kinds.TypedScale[*appsv1.Deployment]{
	Wanted:   func(d *appsv1.Deployment) **int32 { return &d.Spec.Replicas },
	Current:  func(d *appsv1.Deployment) int32 { return d.Status.Replicas },
	Selector: func(d *appsv1.Deployment) string { return columns.Selector(d.Spec.Selector) },
}.Mapping()

// DeploymentColumns is their Table form. Clients of a stock server see the words
// of the version in which a kind was first shown so.
var DeploymentColumns = columns.Of(deploymentCells, append([]columns.Column{
	columns.Name(),
	columns.Text("Ready", "Number of the pod with ready state"),
	columns.Text("Up-to-date", appsv1.DeploymentStatus{}.SwaggerDoc()["updatedReplicas"]),
	columns.Text("Available", appsv1.DeploymentStatus{}.SwaggerDoc()["availableReplicas"]),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", firstSelector(appsv1.DeploymentSpec{}.SwaggerDoc()["selector"], "", ""))))...)...)

func deploymentCells(d *appsv1.Deployment, now time.Time) []any {
	names, images := columns.ContainerCells(d.Spec.Template.Spec.Containers)
	return []any{
		d.Name,
		fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, rules.Value(d.Spec.Replicas)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas),
		columns.Since(d.CreationTimestamp, now),
		names, images, columns.Selector(d.Spec.Selector),
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	rules.DefaultTo(&d.Spec.Replicas, 1)
	d.Spec.Strategy.Type = cmp.Or(d.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		rules.DefaultTo(&d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		rules.DefaultTo(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		rules.DefaultTo(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	rules.DefaultTo(&d.Spec.RevisionHistoryLimit, 10)
	rules.DefaultTo(&d.Spec.ProgressDeadlineSeconds, 600)
}

func validateDeploymentSpec(s *appsv1.DeploymentSpec, o podspec.Options) field.ErrorList {
	errs := rules.NotNegativePtr(s.Replicas, specPath.Child("replicas"))
	selector, bad := validateSelector(s.Selector, "deployment", "invalid label selector")
	errs = append(errs, bad...)
	if selector != nil {
		errs = append(errs, validateReplicaTemplate(&s.Template, selector, o)...)
	}
	errs = append(errs, validateDeploymentStrategy(&s.Strategy, specPath.Child("strategy"))...)
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, rules.NotNegativePtr(s.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
	if deadline := s.ProgressDeadlineSeconds; deadline != nil {
		path := specPath.Child("progressDeadlineSeconds")
		errs = append(errs, rules.NotNegative(*deadline, path)...)
		errs = rules.InvalidIf(errs, *deadline <= s.MinReadySeconds, path, deadline, "must be greater than minReadySeconds")
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	rolling := path.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		return rules.ForbiddenIf(nil, s.RollingUpdate != nil, rolling, "may not be specified when strategy `type` is 'Recreate'")
	case appsv1.RollingUpdateDeploymentStrategyType:
		if s.RollingUpdate == nil {
			return field.ErrorList{field.Required(rolling, "this should be defaulted and never be nil")}
		}
		return validateRollingDeployment(s.RollingUpdate, rolling)
	default:
		return field.ErrorList{field.NotSupported(path, rules.Shown(s),
			[]appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
	}
}

func validateRollingDeployment(r *appsv1.RollingUpdateDeployment, path *field.Path) field.ErrorList {
	unavailable, surge, errs := rollingAmounts(r.MaxUnavailable, r.MaxSurge, path)
	if rules.Amount(unavailable) == 0 && rules.Amount(surge) == 0 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), rules.Shown(unavailable), "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, rules.AtMostAll(unavailable, path.Child("maxUnavailable"))...)
}

func validateDeploymentStatus(obj, old *appsv1.Deployment) field.ErrorList {
	s, was := &obj.Status, &old.Status
	errs := rules.NotNegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))
	errs = append(errs, rules.NotNegative(s.Replicas, statusPath.Child("replicas"))...)
	errs = append(errs, rules.NotNegative(s.UpdatedReplicas, statusPath.Child("updatedReplicas"))...)
	errs = append(errs, rules.NotNegative(s.ReadyReplicas, statusPath.Child("readyReplicas"))...)
	errs = append(errs, rules.NotNegative(s.AvailableReplicas, statusPath.Child("availableReplicas"))...)
	errs = append(errs, rules.NotNegative(s.UnavailableReplicas, statusPath.Child("unavailableReplicas"))...)
	errs = append(errs, rules.NotNegativePtr(s.TerminatingReplicas, statusPath.Child("terminatingReplicas"))...)
	errs = append(errs, rules.NotNegativePtr(s.CollisionCount, statusPath.Child("collisionCount"))...)
	const all = "cannot be greater than status.replicas"
	errs = append(errs, rules.AtMost(s.UpdatedReplicas, s.Replicas, statusPath.Child("updatedReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.ReadyReplicas, s.Replicas, statusPath.Child("readyReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.Replicas, statusPath.Child("availableReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.ReadyReplicas, statusPath.Child("availableReplicas"), "cannot be greater than readyReplicas")...)
	return append(errs, rules.NotDecremented(s.CollisionCount, was.CollisionCount, statusPath.Child("collisionCount"))...)
}
