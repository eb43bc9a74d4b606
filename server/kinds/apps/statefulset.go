package apps

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// StatefulSet returns the strategy of StatefulSets.
func StatefulSet(on kinds.Feature) kinds.Strategy {
	maxUnavailable := on("MaxUnavailableStatefulSet")
	whole := statefulSetRules{now: on.Has(release.KindRules133)}
	if whole.now {
		whole.pods, whole.claims = true, &podspec.ClaimOptions{AttributesClass: on("VolumeAttributesClass")}
	}
	return workload[*appsv1.StatefulSet]{
		template: func(s *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &s.Spec.Template },
		defaults: func(s *appsv1.StatefulSet) { defaultStatefulSet(&s.Spec, maxUnavailable) },
		prepare: func(s, old *appsv1.StatefulSet) {
			if !maxUnavailable {
				dropMaxUnavailable(s, old)
			}
		},
		validate: func(s *appsv1.StatefulSet, o podspec.Options) field.ErrorList {
			return whole.validate(&s.Spec, o)
		},
		validateUpdate: whole.validateUpdate,
		always:         true,
		warnings: func(s, old *appsv1.StatefulSet, ofTemplate []string) []string {
			out := ofTemplate
			for i := range s.Spec.VolumeClaimTemplates {
				at := specPath.Child("volumeClaimTemplates").Index(i)
				if old != nil { // as a stock server names it
					at = at.Child("Spec")
				}
				out = append(out, podspec.ClaimSpecWarnings(&s.Spec.VolumeClaimTemplates[i].Spec, at)...)
			}
			if n := s.Spec.RevisionHistoryLimit; whole.now && n != nil && *n < 0 {
				out = append(out, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
			}
			return out
		},
	}.strategy(on, kinds.Typed[*appsv1.StatefulSet]{
		ValidateName: apivalidation.NameIsDNSLabel,
		Counted:      func(s *appsv1.StatefulSet) []any { return []any{s.Spec} },
		Status:       &kinds.Status[*appsv1.StatefulSet]{Validate: validateStatefulSetStatus},
	})
}

// StatefulSetScale is their scale.
var StatefulSetScale = kinds.TypedScale[*appsv1.StatefulSet]{
	Wanted:   func(s *appsv1.StatefulSet) **int32 { return &s.Spec.Replicas },
	Current:  func(s *appsv1.StatefulSet) int32 { return s.Status.Replicas },
	Selector: func(s *appsv1.StatefulSet) string { return columns.Selector(s.Spec.Selector) },
	// In 1.32 as well, where errors about the other kinds name the scale.
	NamesParent: true,
}.Mapping()

// StatefulSetColumns is their Table form.
var StatefulSetColumns = columns.Of(statefulSetCells, append([]columns.Column{
	columns.Name(),
	columns.Text("Ready", "Number of the pod with ready state"),
	columns.Age(),
}, columns.Containers()...)...)

func statefulSetCells(s *appsv1.StatefulSet, now time.Time) []any {
	names, images := columns.ContainerCells(s.Spec.Template.Spec.Containers)
	return []any{
		s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, rules.Value(s.Spec.Replicas)),
		columns.Since(s.CreationTimestamp, now), names, images,
	}
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec, maxUnavailable bool) {
	s.PodManagementPolicy = cmp.Or(s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		rules.DefaultTo(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if r := s.UpdateStrategy.RollingUpdate; r != nil {
		if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType || r.Partition == nil {
			rules.DefaultTo(&r.Partition, 0)
		}
		if maxUnavailable && s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
			rules.DefaultTo(&r.MaxUnavailable, intstr.FromInt32(1))
		}
	}
	rules.DefaultTo(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	retention := s.PersistentVolumeClaimRetentionPolicy
	retention.WhenDeleted = cmp.Or(retention.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	retention.WhenScaled = cmp.Or(retention.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	rules.DefaultTo(&s.Replicas, 1)
	rules.DefaultTo(&s.RevisionHistoryLimit, 10)
	for i := range s.VolumeClaimTemplates {
		defaultClaim(&s.VolumeClaimTemplates[i])
	}
}

// defaultClaim completes a claim template, which is a whole object of its kind.
func defaultClaim(c *corev1.PersistentVolumeClaim) {
	c.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	c.Status.Phase = cmp.Or(c.Status.Phase, corev1.ClaimPending)
	podspec.DefaultClaimSpec(&c.Spec)
}

// dropMaxUnavailable removes maxUnavailable, whose gate is off, unless old has it; old is nil on create.
func dropMaxUnavailable(s, old *appsv1.StatefulSet) {
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
		if old == nil || old.Spec.UpdateStrategy.RollingUpdate == nil || old.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable == nil {
			r.MaxUnavailable = nil
		}
	}
}

// statefulSetRules are the rules that a StatefulSet need not always follow.
type statefulSetRules struct {
	now    bool                  // those of releases after 1.32
	pods   bool                  // of the pods that it makes
	claims *podspec.ClaimOptions // of its claims and of the name of its service; nil: none
}

func (r statefulSetRules) validateUpdate(s, old *appsv1.StatefulSet, o podspec.Options) field.ErrorList {
	r.claims = nil // claims and the name of the service do not change: stored ones may stay
	errs := r.validate(&s.Spec, o)
	if r.pods && len(errs) > 0 && len(r.validate(&old.Spec, o)) > 0 {
		r.pods = false // the stored object may have such faults
		errs = r.validate(&s.Spec, o)
	}
	rest := s.Spec
	rest.Replicas = old.Spec.Replicas
	rest.Template = old.Spec.Template
	rest.UpdateStrategy = old.Spec.UpdateStrategy
	rest.MinReadySeconds = old.Spec.MinReadySeconds
	rest.Ordinals = old.Spec.Ordinals
	rest.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	limit := ""
	if r.now {
		limit, rest.RevisionHistoryLimit = "'revisionHistoryLimit', ", old.Spec.RevisionHistoryLimit
	}
	return rules.ForbiddenIf(errs, !rules.Same(rest, old.Spec), specPath, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "+limit+"'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
}

func (r statefulSetRules) validate(s *appsv1.StatefulSetSpec, o podspec.Options) field.ErrorList {
	var errs field.ErrorList
	switch s.PodManagementPolicy {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	case "":
		errs = append(errs, field.Required(specPath.Child("podManagementPolicy"), ""))
	default:
		errs = append(errs, field.Invalid(specPath.Child("podManagementPolicy"), s.PodManagementPolicy, "must be 'OrderedReady' or 'Parallel'"))
	}
	errs = append(errs, validateStatefulSetStrategy(&s.UpdateStrategy, specPath.Child("updateStrategy"))...)
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		path := specPath.Child("persistentVolumeClaimRetentionPolicy")
		retain, remove := appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		errs = append(errs, rules.OneOf(p.WhenDeleted, path.Child("whenDeleted"), retain, remove)...)
		errs = append(errs, rules.OneOf(p.WhenScaled, path.Child("whenScaled"), retain, remove)...)
	}
	if r.claims != nil {
		for i := range rules.Until(&errs, s.VolumeClaimTemplates) {
			errs = append(errs, podspec.ValidateClaimSpec(&s.VolumeClaimTemplates[i].Spec, specPath.Child("volumeClaimTemplates").Index(i).Child("spec"), *r.claims)...)
		}
	}
	errs = append(errs, rules.NotNegativePtr(s.Replicas, specPath.Child("replicas"))...)
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	if s.Ordinals != nil {
		errs = append(errs, rules.NotNegative(s.Ordinals.Start, specPath.Child("ordinals.start"))...)
	}
	if r.claims != nil && s.ServiceName != "" {
		errs = append(errs, rules.Label(s.ServiceName, specPath.Child("serviceName"))...)
	}
	selector, bad := validateSelector(s.Selector, "statefulset", "")
	errs = append(errs, bad...)
	if selector != nil {
		errs = append(errs, r.validateTemplate(s, selector, o)...)
	}
	return append(errs, validateForever(&s.Template.Spec, "StatefulSet")...)
}

// validateTemplate checks the template without its pod spec, from which the volumes of the claims are missing,
// or with the pod spec that pods will have.
func (r statefulSetRules) validateTemplate(s *appsv1.StatefulSetSpec, selector labels.Selector, o podspec.Options) field.ErrorList {
	var errs field.ErrorList
	t := &s.Template
	if !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		errs = append(errs, mismatch(t))
	}
	if r.pods {
		made := *t
		made.Spec.Subdomain, made.Spec.Hostname = "", "" // the controller sets them
		if len(s.VolumeClaimTemplates) > 0 {
			made.Spec.Volumes = volumesWithClaims(s)
		}
		errs = append(errs, podspec.ValidateTemplate(&made, templatePath, o)...)
	}
	errs = append(errs, rules.Labels(t.Labels, templatePath.Child("labels"))...)
	errs = append(errs, rules.Annotations(t.Annotations, templatePath.Child("annotations"))...)
	return append(errs, podspec.ValidatePodAnnotations(t.Annotations, &t.Spec, templatePath.Child("annotations"), o)...)
}

// volumesWithClaims returns the volumes of a pod: a claim takes the place of a volume of its name.
func volumesWithClaims(s *appsv1.StatefulSetSpec) []corev1.Volume {
	claimed := make(map[string]bool, len(s.VolumeClaimTemplates))
	volumes := make([]corev1.Volume, 0, len(s.VolumeClaimTemplates)+len(s.Template.Spec.Volumes))
	for i := range s.VolumeClaimTemplates {
		name := s.VolumeClaimTemplates[i].Name
		if !claimed[name] {
			source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
			volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		}
		claimed[name] = true
	}
	for _, v := range s.Template.Spec.Volumes {
		if !claimed[v.Name] {
			volumes = append(volumes, v)
		}
	}
	return volumes
}

func validateStatefulSetStrategy(s *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case "":
		return field.ErrorList{field.Required(path, "")}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), shownRolling{rules.Value(s.RollingUpdate.Partition), s.RollingUpdate.MaxUnavailable}, "only allowed for updateStrategy 'RollingUpdate'")}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if s.RollingUpdate == nil {
			return nil
		}
		return validateRollingStatefulSet(s.RollingUpdate, path.Child("rollingUpdate"))
	default:
		return field.ErrorList{field.Invalid(path, rules.Shown(s), "must be 'RollingUpdate' or 'OnDelete'")}
	}
}

// shownRolling spells out a rolling update as a stock server does, which has the
// partition as a plain number: in Go syntax in release 1.32, and in JSON after it.
type shownRolling struct {
	Partition      int32
	MaxUnavailable *intstr.IntOrString
}

// GoString returns the form of release 1.32.
func (r shownRolling) GoString() string {
	unavailable := "(*intstr.IntOrString)(nil)"
	if r.MaxUnavailable != nil {
		unavailable = fmt.Sprintf("(*intstr.IntOrString)(%p)", r.MaxUnavailable)
	}
	return fmt.Sprintf("apps.RollingUpdateStatefulSetStrategy{Partition:%d, MaxUnavailable:%s}", r.Partition, unavailable)
}

func validateRollingStatefulSet(r *appsv1.RollingUpdateStatefulSetStrategy, path *field.Path) field.ErrorList {
	errs := rules.NotNegativePtr(r.Partition, path.Child("partition"))
	if r.MaxUnavailable == nil {
		return errs
	}
	var v intstr.IntOrString = *r.MaxUnavailable
	errs = append(errs, rules.IntOrPercent(v, path.Child("maxUnavailable"))...)
	if rules.Amount(v) == 0 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), rules.Shown(v), "cannot be 0"))
	}
	return append(errs, rules.AtMostAll(v, path.Child("maxUnavailable"))...)
}

func validateStatefulSetStatus(obj, old *appsv1.StatefulSet) field.ErrorList {
	s, was := &obj.Status, &old.Status
	errs := rules.NotNegative(s.Replicas, statusPath.Child("replicas"))
	errs = append(errs, rules.NotNegative(s.ReadyReplicas, statusPath.Child("readyReplicas"))...)
	errs = append(errs, rules.NotNegative(s.CurrentReplicas, statusPath.Child("currentReplicas"))...)
	errs = append(errs, rules.NotNegative(s.UpdatedReplicas, statusPath.Child("updatedReplicas"))...)
	errs = append(errs, rules.NotNegative(s.AvailableReplicas, statusPath.Child("availableReplicas"))...)
	errs = append(errs, rules.NotNegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	errs = append(errs, rules.NotNegativePtr(s.CollisionCount, statusPath.Child("collisionCount"))...)
	const all = "cannot be greater than status.replicas"
	errs = append(errs, rules.AtMost(s.ReadyReplicas, s.Replicas, statusPath.Child("readyReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.CurrentReplicas, s.Replicas, statusPath.Child("currentReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.UpdatedReplicas, s.Replicas, statusPath.Child("updatedReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.Replicas, statusPath.Child("availableReplicas"), all)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.ReadyReplicas, statusPath.Child("availableReplicas"), "cannot be greater than status.readyReplicas")...)
	return append(errs, rules.NotDecremented(s.CollisionCount, was.CollisionCount, statusPath.Child("collisionCount"))...)
}
