package autoscaling

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	maxPeriod = 1800 // seconds
	maxWindow = 3600 // seconds
)

// scalerRules are the rules that depend on the release, and on the old object.
type scalerRules struct {
	now   bool  // those after 1.32
	least int32 // the least number of replicas
	// anyScaled and anyObject skip the check of API versions: of scale targets, and of objects that metrics
	// describe.
	anyScaled, anyObject bool
}

// validate checks a spec that replaces old, which is nil on create.
func (r scalerRules) validate(s, old *autoscalingv2.HorizontalPodAutoscalerSpec) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if s.MinReplicas != nil && *s.MinReplicas < r.least {
		errs = append(errs, field.Invalid(p.Child("minReplicas"), *s.MinReplicas, fmt.Sprintf("must be greater than or equal to %d", r.least)))
	}
	switch most := p.Child("maxReplicas"); {
	case s.MaxReplicas >= 1:
	case !r.now:
		errs = append(errs, field.Invalid(most, s.MaxReplicas, "must be greater than 0"))
	case s.MaxReplicas == 0:
		errs = append(errs, field.Required(most, "must be set and greater than 0"))
	default:
		errs = append(errs, field.Invalid(most, s.MaxReplicas, "must be greater than or equal to 1"))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	r.anyScaled, r.anyObject = !r.now, !r.now
	if old != nil {
		is, was := s.ScaleTargetRef, old.ScaleTargetRef
		r.anyScaled = r.anyScaled || is.APIVersion == was.APIVersion && is.Kind == was.Kind
		r.anyObject = r.anyObject || slices.ContainsFunc(old.Metrics, func(m autoscalingv2.MetricSpec) bool {
			return m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil && versionFault(m.Object.DescribedObject, true) != ""
		})
	}
	errs = append(errs, validateReference(s.ScaleTargetRef, p.Child("scaleTargetRef"), r.anyScaled, s.ScaleTargetRef.Kind == "ReplicationController")...)
	errs = append(errs, r.validateMetrics(s.Metrics, s.MinReplicas, p.Child("metrics"))...)
	if b := s.Behavior; b != nil {
		errs = append(errs, validateRules(b.ScaleUp, p.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateRules(b.ScaleDown, p.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// validateReference checks a reference, whose version may be any, or may lack a group.
func validateReference(r autoscalingv2.CrossVersionObjectReference, p *field.Path, anyVersion, noGroup bool) field.ErrorList {
	errs := validateSegment(r.Kind, p.Child("kind"), "")
	errs = append(errs, validateSegment(r.Name, p.Child("name"), "")...)
	if fault := versionFault(r, noGroup); fault != "" && !anyVersion {
		errs = append(errs, field.Invalid(p.Child("apiVersion"), r.APIVersion, fault))
	}
	return errs
}

func versionFault(r autoscalingv2.CrossVersionObjectReference, noGroup bool) string {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	switch {
	case err != nil:
		return err.Error()
	case gv.Group == "" && !noGroup:
		return "apiVersion must specify API group"
	}
	return ""
}

func validateSegment(v string, p *field.Path, missing string) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(p, missing)}
	}
	return rules.Messages(p, v, path.IsValidPathSegmentName(v))
}

func validateRules(r *autoscalingv2.HPAScalingRules, p *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		switch at := p.Child("stabilizationWindowSeconds"); {
		case *w < 0:
			errs = append(errs, field.Invalid(at, *w, "must be greater than or equal to zero"))
		case *w > maxWindow:
			errs = append(errs, field.Invalid(at, *w, fmt.Sprintf("must be less than or equal to %d", maxWindow)))
		}
	}
	if r.SelectPolicy != nil {
		errs = append(errs, rules.OneOf(*r.SelectPolicy, p.Child("selectPolicy"),
			autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)...)
	}
	errs = rules.RequiredIf(errs, len(r.Policies) == 0, p.Child("policies"), "must specify at least one Policy")
	errs = append(errs, rules.EachPtr(r.Policies, p.Child("policies"), validatePolicy)...)
	if t := r.Tolerance; t != nil {
		errs = rules.InvalidIf(errs, t.Sign() < 0, p.Child("tolerance"), t.String(), apivalidation.IsNegativeErrorMsg)
	}
	return errs
}

func validatePolicy(s *autoscalingv2.HPAScalingPolicy, p *field.Path) field.ErrorList {
	errs := rules.OneOf(s.Type, p.Child("type"), autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)
	errs = rules.InvalidIf(errs, s.Value <= 0, p.Child("value"), s.Value, "must be greater than zero")
	errs = rules.InvalidIf(errs, s.PeriodSeconds <= 0, p.Child("periodSeconds"), s.PeriodSeconds, "must be greater than zero")
	if s.PeriodSeconds > maxPeriod {
		errs = append(errs, field.Invalid(p.Child("periodSeconds"), s.PeriodSeconds, fmt.Sprintf("must be less than or equal to %d", maxPeriod)))
	}
	return errs
}

func (r scalerRules) validateMetrics(metrics []autoscalingv2.MetricSpec, least *int32, p *field.Path) field.ErrorList {
	errs := rules.EachPtr(metrics, p, r.validateMetric)
	// Such a metric can rise while no pod runs.
	outside := slices.ContainsFunc(metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	})
	return rules.ForbiddenIf(errs, least != nil && *least == 0 && !outside, p, "must specify at least one Object or External metric to support scaling to zero replicas")
}

// source is one of the kinds of metric sources.
type source struct {
	kind     autoscalingv2.MetricSourceType
	name     string
	given    bool
	validate func(*field.Path) field.ErrorList
}

func (r scalerRules) sources(m *autoscalingv2.MetricSpec) []source {
	return []source{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(p *field.Path) field.ErrorList { return r.validateObject(m.Object, p) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(p *field.Path) field.ErrorList { return validateExternal(m.External, p) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(p *field.Path) field.ErrorList { return validatePods(m.Pods, p) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(p *field.Path) field.ErrorList { return validateResource(m.Resource, p) }},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(p *field.Path) field.ErrorList { return validateContainer(m.ContainerResource, p) }},
	}
}

var metricTypes = []autoscalingv2.MetricSourceType{
	autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
	autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
}

// validateMetric checks that the source a metric's type names is there, and alone.
func (r scalerRules) validateMetric(m *autoscalingv2.MetricSpec, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, m.Type == "", p.Child("type"), "must specify a metric source type")
	errs = append(errs, rules.OneOf(m.Type, p.Child("type"), metricTypes...)...)
	list := r.sources(m)
	present := 0
	for _, s := range list {
		if s.given {
			if present++; present == 1 {
				errs = append(errs, s.validate(p.Child(s.name))...)
			}
		}
	}
	known := false
	for _, s := range list {
		if s.kind == m.Type {
			known = true
			if !s.given {
				errs = append(errs, field.Required(p.Child(s.name), "must populate information for the given metric source"))
			}
		}
	}
	if !known {
		errs = append(errs, field.NotSupported(p.Child("type"), m.Type, metricTypes))
	}
	if present != 1 {
		for _, s := range list {
			if s.given && s.kind != m.Type {
				errs = append(errs, field.Forbidden(p.Child(s.name), "must populate the given metric source only"))
			}
		}
	}
	return errs
}

func validateIdentifier(m autoscalingv2.MetricIdentifier, p *field.Path) field.ErrorList {
	return validateSegment(m.Name, p.Child("metric", "name"), "must specify a metric name")
}

func validateTarget(t *autoscalingv2.MetricTarget, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, t.Type == "", p.Child("type"), "must specify a metric target type")
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		errs = append(errs, field.Invalid(p.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(p.Child("value"), rules.Shown(t.Value), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(p.Child("averageValue"), rules.Shown(t.AverageValue), "must be positive"))
	}
	return rules.InvalidIf(errs, t.AverageUtilization != nil && *t.AverageUtilization < 1, p.Child("averageUtilization"), t.AverageUtilization, "must be greater than 0")
}

func (r scalerRules) validateObject(s *autoscalingv2.ObjectMetricSource, p *field.Path) field.ErrorList {
	errs := validateReference(s.DescribedObject, p.Child("describedObject"), r.anyObject, true)
	errs = append(errs, validateIdentifier(s.Metric, p)...)
	errs = append(errs, validateTarget(&s.Target, p.Child("target"))...)
	return rules.RequiredIf(errs, s.Target.Value == nil && s.Target.AverageValue == nil, p.Child("target", "averageValue"), "must set either a target value or averageValue")
}

func validateExternal(s *autoscalingv2.ExternalMetricSource, p *field.Path) field.ErrorList {
	errs := validateIdentifier(s.Metric, p)
	errs = append(errs, validateTarget(&s.Target, p.Child("target"))...)
	errs = rules.RequiredIf(errs, s.Target.Value == nil && s.Target.AverageValue == nil, p.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target")
	return rules.ForbiddenIf(errs, s.Target.Value != nil && s.Target.AverageValue != nil, p.Child("target", "value"), "may not set both a target value for metric and a per-pod target")
}

func validatePods(s *autoscalingv2.PodsMetricSource, p *field.Path) field.ErrorList {
	errs := validateIdentifier(s.Metric, p)
	errs = append(errs, validateTarget(&s.Target, p.Child("target"))...)
	return rules.RequiredIf(errs, s.Target.AverageValue == nil, p.Child("target", "averageValue"), "must specify a positive target averageValue")
}

func validateResource(s *autoscalingv2.ResourceMetricSource, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, s.Name == "", p.Child("name"), "must specify a resource name")
	return append(errs, validateUsage(&s.Target, p.Child("target"))...)
}

func validateContainer(s *autoscalingv2.ContainerResourceMetricSource, p *field.Path) field.ErrorList {
	errs := rules.RequiredThen(s.Name, p.Child("name"), "must specify a resource name", validateResourceName)
	errs = append(errs, rules.RequiredThen(s.Container, p.Child("container"), "must specify a container", rules.Label)...)
	return append(errs, validateUsage(&s.Target, p.Child("target"))...)
}

func validateUsage(t *autoscalingv2.MetricTarget, p *field.Path) field.ErrorList {
	errs := validateTarget(t, p)
	errs = rules.RequiredIf(errs, t.AverageUtilization == nil && t.AverageValue == nil, p.Child("averageUtilization"), "must set either a target raw value or a target utilization")
	return rules.ForbiddenIf(errs, t.AverageUtilization != nil && t.AverageValue != nil, p.Child("averageValue"), "may not set both a target raw value and a target utilization")
}

// validateResourceName checks a resource that containers can use.
func validateResourceName(name corev1.ResourceName, p *field.Path) field.ErrorList {
	errs := rules.Messages(p, string(name), validation.IsQualifiedName(string(name)))
	if strings.Contains(string(name), "/") {
		return errs
	}
	if len(errs) == 0 && !podspec.IsStandardResource(name) {
		errs = append(errs, field.Invalid(p, string(name), "must be a standard resource type or fully qualified"))
	}
	switch {
	case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return errs
	default:
		return append(errs, field.Invalid(p, string(name), "must be a standard resource for containers"))
	}
}
