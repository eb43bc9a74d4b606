package apps

import (
	"cmp"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// DaemonSet returns the strategy of DaemonSets.
func DaemonSet(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return workload[*appsv1.DaemonSet]{
		template: func(d *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &d.Spec.Template },
		defaults: defaultDaemonSet,
		prepare:  prepareDaemonSet,
		validate: func(d *appsv1.DaemonSet, o podspec.Options) field.ErrorList {
			return validateDaemonSetSpec(&d.Spec, false, o)
		},
		validateUpdate: func(d, old *appsv1.DaemonSet, o podspec.Options) field.ErrorList {
			errs := validateDaemonSetSpec(&d.Spec, rules.SelectorInvalid(old.Spec.Selector), o)
			same := rules.Immutable(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
			if now {
				return append(same, errs...)
			}
			// A stock server of release 1.32 checks a changed spec twice, and lists its causes twice.
			return append(rules.Twice(errs), same...)
		},
		changed: func(d, old *appsv1.DaemonSet) bool { return templateGeneration(d) != templateGeneration(old) },
	}.strategy(on, kinds.Typed[*appsv1.DaemonSet]{
		Meta:    kinds.WholeMeta132(on),
		Counted: func(d *appsv1.DaemonSet) []any { return []any{d.Spec} },
		Status: &kinds.Status[*appsv1.DaemonSet]{
			Prepare:  func(d, old *appsv1.DaemonSet) { setTemplateGeneration(d, templateGeneration(old)) },
			Validate: validateDaemonSetStatus,
		},
	})
}

// DaemonSetColumns is their Table form.
var DaemonSetColumns = columns.Of(daemonSetCells, append([]columns.Column{
	columns.Name(),
	columns.Number("Desired", appsv1.DaemonSetStatus{}.SwaggerDoc()["desiredNumberScheduled"]),
	columns.Number("Current", appsv1.DaemonSetStatus{}.SwaggerDoc()["currentNumberScheduled"]),
	columns.Number("Ready", firstReady(appsv1.DaemonSetStatus{}.SwaggerDoc()["numberReady"])),
	columns.Number("Up-to-date", appsv1.DaemonSetStatus{}.SwaggerDoc()["updatedNumberScheduled"]),
	columns.Number("Available", appsv1.DaemonSetStatus{}.SwaggerDoc()["numberAvailable"]),
	columns.Text("Node Selector", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"]),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", firstSelector(appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"], "If empty, defaulted to labels on Pod template. ", ""))))...)...)

func daemonSetCells(d *appsv1.DaemonSet, now time.Time) []any {
	names, images := columns.ContainerCells(d.Spec.Template.Spec.Containers)
	return []any{
		d.Name, int64(d.Status.DesiredNumberScheduled), int64(d.Status.CurrentNumberScheduled), int64(d.Status.NumberReady),
		int64(d.Status.UpdatedNumberScheduled), int64(d.Status.NumberAvailable),
		labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), columns.Since(d.CreationTimestamp, now),
		names, images, columns.LongSelector(d.Spec.Selector),
	}
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	s := &d.Spec.UpdateStrategy
	s.Type = cmp.Or(s.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.Type != appsv1.RollingUpdateDaemonSetStrategyType && s.RollingUpdate != nil {
		rules.DefaultTo(&s.RollingUpdate.MaxUnavailable, intstr.FromInt32(0))
		rules.DefaultTo(&s.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	if s.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		rules.DefaultTo(&s.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		rules.DefaultTo(&s.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		rules.DefaultTo(&s.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	rules.DefaultTo(&d.Spec.RevisionHistoryLimit, 10)
	setTemplateGeneration(d, templateGeneration(d))
}

// templateGeneration counts changes of the template; it lives in an annotation.
func templateGeneration(d *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	annotations := maps.Clone(d.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
	d.Annotations = annotations
}

// ZeroDaemonSet shows the number that a stock server keeps as a field.
func ZeroDaemonSet(obj kinds.Object) { setTemplateGeneration(obj.(*appsv1.DaemonSet), 0) }

// prepareDaemonSet counts changes of the template; old is nil on create.
func prepareDaemonSet(d, old *appsv1.DaemonSet) {
	if old == nil {
		setTemplateGeneration(d, max(templateGeneration(d), 1))
		return
	}
	n := templateGeneration(old)
	if !rules.Same(d.Spec.Template, old.Spec.Template) {
		n++
	}
	setTemplateGeneration(d, n)
}

func validateDaemonSetSpec(s *appsv1.DaemonSetSpec, keepInvalid bool, o podspec.Options) field.ErrorList {
	errs := rules.LooseSelector(s.Selector, keepInvalid, specPath.Child("selector"))
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err == nil && !selector.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, mismatch(&s.Template))
	}
	errs = rules.InvalidIf(errs, rules.SelectorEmpty(s.Selector), specPath.Child("selector"), s.Selector, "empty selector is invalid for daemonset")
	errs = append(errs, podspec.ValidateTemplate(&s.Template, templatePath, o)...)
	errs = append(errs, validateForever(&s.Template.Spec, "DaemonSet")...)
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, validateDaemonSetStrategy(&s.UpdateStrategy, specPath.Child("updateStrategy"))...)
	return append(errs, rules.NotNegativePtr(s.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
}

func validateDaemonSetStrategy(s *appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
		if s.RollingUpdate == nil {
			return field.ErrorList{field.Required(path.Child("rollingUpdate"), "")}
		}
		return validateRollingDaemonSet(s.RollingUpdate, path.Child("rollingUpdate"))
	default:
		return field.ErrorList{field.NotSupported(path, rules.Shown(s),
			[]appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType})}
	}
}

// A rolling update either takes pods away or adds some, never both and never neither.
func validateRollingDaemonSet(r *appsv1.RollingUpdateDaemonSet, path *field.Path) field.ErrorList {
	unavailable, surge, errs := rollingAmounts(r.MaxUnavailable, r.MaxSurge, path)
	errs = append(errs, rules.AtMostAll(unavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, rules.AtMostAll(surge, path.Child("maxSurge"))...)
	takes, adds := rules.Amount(unavailable) != 0, rules.Amount(surge) != 0
	switch {
	case takes && adds:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), rules.Shown(surge), "may not be set when maxUnavailable is non-zero"))
	case !takes && !adds:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func validateDaemonSetStatus(obj, old *appsv1.DaemonSet) field.ErrorList {
	s, was := &obj.Status, &old.Status
	errs := rules.NotNegative(s.CurrentNumberScheduled, statusPath.Child("currentNumberScheduled"))
	errs = append(errs, rules.NotNegative(s.NumberMisscheduled, statusPath.Child("numberMisscheduled"))...)
	errs = append(errs, rules.NotNegative(s.DesiredNumberScheduled, statusPath.Child("desiredNumberScheduled"))...)
	errs = append(errs, rules.NotNegative(s.NumberReady, statusPath.Child("numberReady"))...)
	errs = append(errs, rules.NotNegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	errs = append(errs, rules.NotNegative(s.UpdatedNumberScheduled, statusPath.Child("updatedNumberScheduled"))...)
	errs = append(errs, rules.NotNegative(s.NumberAvailable, statusPath.Child("numberAvailable"))...)
	errs = append(errs, rules.NotNegative(s.NumberUnavailable, statusPath.Child("numberUnavailable"))...)
	errs = append(errs, rules.NotNegativePtr(s.CollisionCount, statusPath.Child("collisionCount"))...)
	return append(errs, rules.NotDecremented(s.CollisionCount, was.CollisionCount, statusPath.Child("collisionCount"))...)
}
