// Package autoscaling holds the strategy of HorizontalPodAutoscalers, which are stored
// in v2 and served in v1 too.
package autoscaling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// HorizontalPodAutoscaler returns the strategy of HorizontalPodAutoscalers.
func HorizontalPodAutoscaler(on kinds.Feature) kinds.Strategy {
	r := scalerRules{now: on.Has(release.KindRules133), least: 1}
	if on("HPAScaleToZero") {
		r.least = 0
	}
	tolerance := on("HPAConfigurableTolerance")
	return kinds.Typed[*autoscalingv2.HorizontalPodAutoscaler]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default:      defaultAutoscaler,
		Validate: func(obj *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
			return r.validate(&obj.Spec, nil)
		},
		ValidateUpdate: func(obj, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
			r := r
			if was := old.Spec.MinReplicas; was != nil && *was == 0 {
				r.least = 0
			}
			return r.validate(&obj.Spec, &old.Spec)
		},
		PrepareForCreate: func(obj *autoscalingv2.HorizontalPodAutoscaler) {
			if !tolerance {
				dropTolerance(&obj.Spec)
			}
		},
		PrepareForUpdate: func(obj, old *autoscalingv2.HorizontalPodAutoscaler) {
			if !tolerance && !tolerates(&old.Spec) {
				dropTolerance(&obj.Spec)
			}
		},
		Canonicalize:        defaultBehavior, // for objects of v1, see DefaultV1
		UnconditionalUpdate: true,
		Status: &kinds.Status[*autoscalingv2.HorizontalPodAutoscaler]{
			Validate: func(obj, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
				s := &obj.Status
				errs := rules.NotNegative(s.CurrentReplicas, field.NewPath("status", "currentReplicas"))
				return append(errs, rules.NotNegative(s.DesiredReplicas, field.NewPath("status", "desiredReplicas"))...)
			},
			Canonicalize: func(obj *autoscalingv2.HorizontalPodAutoscaler) {
				if s := &obj.Status; len(s.CurrentMetrics) == 0 {
					s.CurrentMetrics = nil // an empty list is stored as none
				}
			},
		},
	}.Strategy()
}

// directions returns the rules of both directions, of which either may be nil.
func directions(s *autoscalingv2.HorizontalPodAutoscalerSpec) []*autoscalingv2.HPAScalingRules {
	if s.Behavior == nil {
		return nil
	}
	return []*autoscalingv2.HPAScalingRules{s.Behavior.ScaleUp, s.Behavior.ScaleDown}
}

func tolerates(s *autoscalingv2.HorizontalPodAutoscalerSpec) bool {
	return slices.ContainsFunc(directions(s), func(r *autoscalingv2.HPAScalingRules) bool { return r != nil && r.Tolerance != nil })
}

func dropTolerance(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	for _, r := range directions(s) {
		if r != nil {
			r.Tolerance = nil
		}
	}
}

// HorizontalPodAutoscalerColumns is their Table form.
var HorizontalPodAutoscalerColumns = columns.Of(
	func(h *autoscalingv2.HorizontalPodAutoscaler, now time.Time) []any {
		least := "<unset>"
		if h.Spec.MinReplicas != nil {
			least = fmt.Sprint(*h.Spec.MinReplicas)
		}
		return []any{
			h.Name, h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name, targets(h), least,
			int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas), columns.Since(h.CreationTimestamp, now),
		}
	},
	columns.Name(),
	columns.Text("Reference", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["scaleTargetRef"]),
	columns.Text("Targets", textOfMetrics()),
	columns.Text("MinPods", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["minReplicas"]),
	columns.Text("MaxPods", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["maxReplicas"]),
	columns.Text("Replicas", autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"]),
	columns.Age(),
)

// textOfMetrics describes the metrics as v2beta1 did, which knew no default.
func textOfMetrics() string {
	text, _, _ := strings.Cut(autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["metrics"], " If not set,")
	return text
}

// targets shows the first two metrics as current/target.
func targets(h *autoscalingv2.HorizontalPodAutoscaler) string {
	const most = 2
	n := len(h.Spec.Metrics)
	if n == 0 {
		return "<none>"
	}
	var shown []string
	for i := range min(n, most) {
		var current autoscalingv2.MetricStatus
		if i < len(h.Status.CurrentMetrics) {
			current = h.Status.CurrentMetrics[i]
		}
		shown = append(shown, target(&h.Spec.Metrics[i], &current))
	}
	text := strings.Join(shown, ", ")
	if n > most {
		text += fmt.Sprintf(" + %d more...", n-most)
	}
	return text
}

func target(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		var now *autoscalingv2.MetricValueStatus
		if s.External != nil {
			now = &s.External.Current
		}
		return valueOf(&m.External.Target, now)
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		var now *autoscalingv2.MetricValueStatus
		if s.Object != nil {
			now = &s.Object.Current
		}
		return valueOf(&m.Object.Target, now)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		current := unknown
		if s.Pods != nil {
			current = s.Pods.Current.AverageValue.String()
		}
		return current + "/" + m.Pods.Target.AverageValue.String()
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		var now *autoscalingv2.MetricValueStatus
		if s.Resource != nil {
			now = &s.Resource.Current
		}
		return resourceOf(m.Resource.Name, &m.Resource.Target, now)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		var now *autoscalingv2.MetricValueStatus
		if s.ContainerResource != nil {
			now = &s.ContainerResource.Current
		}
		return resourceOf(m.ContainerResource.Name, &m.ContainerResource.Target, now)
	default:
		return "<unknown type>"
	}
}

// unknown replaces values that no status contains. If a status lacks the quantity, the missing quantity
// prints itself as "<nil>".
const unknown = "<unknown>"

// valueOf shows a metric that is measured as a whole or per pod.
func valueOf(t *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	current := unknown
	if t.AverageValue != nil {
		if now != nil && now.AverageValue != nil {
			current = now.AverageValue.String()
		}
		return current + "/" + t.AverageValue.String() + " (avg)"
	}
	if now != nil {
		current = now.Value.String()
	}
	return current + "/" + t.Value.String()
}

func resourceOf(name corev1.ResourceName, t *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	current := unknown
	if t.AverageValue != nil {
		if now != nil {
			current = now.AverageValue.String()
		}
		return fmt.Sprintf("%s: %s/%s", name, current, t.AverageValue)
	}
	if now != nil && now.AverageUtilization != nil {
		current = fmt.Sprintf("%d%%", *now.AverageUtilization)
	}
	wanted := "<auto>"
	if t.AverageUtilization != nil {
		wanted = fmt.Sprintf("%d%%", *t.AverageUtilization)
	}
	return fmt.Sprintf("%s: %s/%s", name, current, wanted)
}

// DefaultV1 sets the defaults of v1. The behavior, which it keeps in an annotation, is checked as it is.
func DefaultV1(obj kinds.Object) { defaultMetrics(obj.(*autoscalingv2.HorizontalPodAutoscaler)) }

func defaultAutoscaler(obj *autoscalingv2.HorizontalPodAutoscaler) {
	defaultMetrics(obj)
	defaultBehavior(obj)
}

func defaultMetrics(obj *autoscalingv2.HorizontalPodAutoscaler) {
	// The annotations of v1 are fields in the stored version: there they have no meaning, whatever their
	// values.
	if a := obj.GetAnnotations(); carriesOurs(a) {
		obj.SetAnnotations(withoutOurs(a))
	}
	s := &obj.Spec
	rules.DefaultTo(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		var utilization int32 = 80
		s.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
			},
		}}
	}
}

func defaultBehavior(obj *autoscalingv2.HorizontalPodAutoscaler) {
	if b := obj.Spec.Behavior; b != nil {
		b.ScaleUp = complete(b.ScaleUp, new(int32), []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
		})
		b.ScaleDown = complete(b.ScaleDown, nil, []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
		})
	}
}

// complete fills in rules of one direction. Policies that a client gave as an
// empty list stay empty, and are refused later.
func complete(r *autoscalingv2.HPAScalingRules, window *int32, policies []autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if r == nil {
		r = &autoscalingv2.HPAScalingRules{}
	}
	r.StabilizationWindowSeconds = cmp.Or(r.StabilizationWindowSeconds, window)
	rules.DefaultTo(&r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if r.Policies == nil {
		r.Policies = policies
	}
	return r
}
