package core

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// controllerRules are the rules of ReplicationControllers where some gates are on.
type controllerRules struct {
	pods podspec.Rules
	now  bool // the rules after release 1.32
}

// meta returns the rules for metadata.
func (r controllerRules) meta() *kinds.MetaRules {
	if r.now {
		return &kinds.MetaRules{Updates: 1, LongName: true}
	}
	return &kinds.WholeMeta
}

// ReplicationController returns the strategy of ReplicationControllers.
func ReplicationController(on kinds.Feature) kinds.Strategy {
	r := controllerRules{podspec.For(on), on.Has(release.KindRules133)}
	return kinds.Typed[*corev1.ReplicationController]{
		ValidateName:        apivalidation.NameIsDNSSubdomain,
		Meta:                r.meta(),
		Default:             r.defaultController,
		PrepareForCreate:    r.prepareController,
		PrepareForUpdate:    r.prepareControllerUpdate,
		Counted:             func(c *corev1.ReplicationController) []any { return []any{c.Spec} },
		Validate:            func(c *corev1.ReplicationController) field.ErrorList { return r.validateController(c, nil) },
		ValidateUpdate:      r.validateControllerUpdate,
		Warnings:            r.controllerWarnings,
		UnconditionalUpdate: true,
		OrphanByDefault:     true,
		Status:              &kinds.Status[*corev1.ReplicationController]{Validate: validateControllerStatus, Canonicalize: labelController},
	}.Strategy()
}

// ReplicationControllerScale is their scale.
var ReplicationControllerScale = kinds.TypedScale[*corev1.ReplicationController]{
	Wanted:   func(r *corev1.ReplicationController) **int32 { return &r.Spec.Replicas },
	Current:  func(r *corev1.ReplicationController) int32 { return r.Status.Replicas },
	Selector: func(r *corev1.ReplicationController) string { return labels.Set(r.Spec.Selector).String() },
}.Mapping()

// ReplicationControllerFields are their selectable fields.
var ReplicationControllerFields = []kinds.SelectableField{
	{Label: "status.replicas", Path: []string{"status", "replicas"}, Default: "0"},
}

// ReplicationControllerColumns is their Table form.
var ReplicationControllerColumns = columns.Of(controllerCells, append([]columns.Column{
	columns.Name(),
	columns.Number("Desired", corev1.ReplicationControllerSpec{}.SwaggerDoc()["replicas"]),
	columns.Number("Current", corev1.ReplicationControllerStatus{}.SwaggerDoc()["replicas"]),
	columns.Number("Ready", corev1.ReplicationControllerStatus{}.SwaggerDoc()["readyReplicas"]),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", corev1.ReplicationControllerSpec{}.SwaggerDoc()["selector"])))...)...)

func controllerCells(c *corev1.ReplicationController, now time.Time) []any {
	var names, images string
	if c.Spec.Template != nil {
		names, images = columns.ContainerCells(c.Spec.Template.Spec.Containers)
	}
	return []any{
		c.Name, int64(rules.Value(c.Spec.Replicas)), int64(c.Status.Replicas), int64(c.Status.ReadyReplicas),
		columns.Since(c.CreationTimestamp, now), names, images, labels.FormatLabels(c.Spec.Selector),
	}
}

func (r controllerRules) defaultController(c *corev1.ReplicationController) {
	if t := c.Spec.Template; t != nil {
		if t.Labels != nil && len(c.Spec.Selector) == 0 {
			c.Spec.Selector = maps.Clone(t.Labels)
		}
		labelController(c)
		r.pods.DefaultTemplate(t)
	}
	rules.DefaultTo(&c.Spec.Replicas, 1)
}

// labelController gives a controller without labels those of its pods.
func labelController(c *corev1.ReplicationController) {
	if t := c.Spec.Template; t != nil && t.Labels != nil && len(c.Labels) == 0 {
		c.Labels = maps.Clone(t.Labels)
	}
}

func (r controllerRules) prepareController(c *corev1.ReplicationController) {
	if c.Spec.Template != nil {
		r.pods.DropDisabled(&c.Spec.Template.Spec, nil)
	}
}

func (r controllerRules) prepareControllerUpdate(c, old *corev1.ReplicationController) {
	if c.Spec.Template != nil {
		var before *corev1.PodSpec
		if old.Spec.Template != nil {
			before = &old.Spec.Template.Spec
		}
		r.pods.DropDisabled(&c.Spec.Template.Spec, before)
	}
}

// validateController checks a controller that replaces old, which is nil on create.
func (r controllerRules) validateController(c, old *corev1.ReplicationController) field.ErrorList {
	errs := rules.NotNegative(c.Spec.MinReadySeconds, specPath.Child("minReadySeconds"))
	errs = rules.RequiredIf(errs, len(c.Spec.Selector) == 0, specPath.Child("selector"), "")
	errs = append(errs, rules.NotNegativePtr(c.Spec.Replicas, specPath.Child("replicas"))...)
	var before *corev1.PodTemplateSpec
	if old != nil {
		before = old.Spec.Template
	}
	return append(errs, r.validateControllerTemplate(c, before, specPath.Child("template"))...)
}

func (r controllerRules) validateControllerTemplate(c *corev1.ReplicationController, before *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	t := c.Spec.Template
	if t == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := rules.InvalidIf(nil, len(c.Spec.Selector) > 0 && !labels.SelectorFromSet(c.Spec.Selector).Matches(labels.Set(t.Labels)), path.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`")
	errs = append(errs, podspec.ValidateTemplate(t, path, r.pods.TemplateOptions(t, before))...)
	errs = append(errs, rules.OneOf(t.Spec.RestartPolicy, path.Child("spec", "restartPolicy"), corev1.RestartPolicyAlways)...)
	return rules.ForbiddenIf(errs, t.Spec.ActiveDeadlineSeconds != nil, path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicationController is not Supported")
}

// validateControllerUpdate checks everything twice in release 1.32: clients see each cause twice,
// and the message names it once.
func (r controllerRules) validateControllerUpdate(c, old *corev1.ReplicationController) field.ErrorList {
	errs := r.validateController(c, old)
	if r.now {
		return errs
	}
	return append(errs, errs...)
}

func validateControllerStatus(c, _ *corev1.ReplicationController) field.ErrorList {
	s := &c.Status
	errs := rules.NotNegative(s.Replicas, statusPath.Child("replicas"))
	errs = append(errs, rules.NotNegative(s.FullyLabeledReplicas, statusPath.Child("fullyLabeledReplicas"))...)
	errs = append(errs, rules.NotNegative(s.ReadyReplicas, statusPath.Child("readyReplicas"))...)
	errs = append(errs, rules.NotNegative(s.AvailableReplicas, statusPath.Child("availableReplicas"))...)
	errs = append(errs, rules.NotNegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	const more = "cannot be greater than status.replicas"
	errs = append(errs, rules.AtMost(s.FullyLabeledReplicas, s.Replicas, statusPath.Child("fullyLabeledReplicas"), more)...)
	errs = append(errs, rules.AtMost(s.ReadyReplicas, s.Replicas, statusPath.Child("readyReplicas"), more)...)
	errs = append(errs, rules.AtMost(s.AvailableReplicas, s.Replicas, statusPath.Child("availableReplicas"), more)...)
	return append(errs, rules.AtMost(s.AvailableReplicas, s.ReadyReplicas, statusPath.Child("availableReplicas"), "cannot be greater than readyReplicas")...)
}

func (r controllerRules) controllerWarnings(c, old *corev1.ReplicationController) []string {
	path := specPath.Child("template")
	if old == nil {
		return append(podspec.NameWarning(c.Name), r.templateWarnings(path, c.Spec.Template)...)
	}
	if c.Generation == old.Generation {
		return nil
	}
	// A stock server warns of the template that goes.
	return r.templateWarnings(path, old.Spec.Template)
}

func (r controllerRules) templateWarnings(path *field.Path, t *corev1.PodTemplateSpec) []string {
	if t == nil {
		return nil
	}
	return r.pods.Warnings(path, t)
}
