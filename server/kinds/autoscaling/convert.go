package autoscaling

import (
	"encoding/json"
	"fmt"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Annotations in which v1 has values without a field.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	statusesAnnotation   = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
)

// behavior, scalingRules and scalingPolicy are the form of the annotation, whose keys are Go names;
// tolerantBehavior and tolerantRules are that of releases after 1.32.
type (
	behavior struct {
		ScaleUp   *scalingRules
		ScaleDown *scalingRules
	}
	tolerantBehavior struct {
		ScaleUp   *tolerantRules
		ScaleDown *tolerantRules
	}
	tolerantRules struct {
		scalingRules
		Tolerance *resource.Quantity
	}
	scalingRules struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []scalingPolicy
	}
	scalingPolicy struct {
		Type          autoscalingv2.HPAScalingPolicyType
		Value         int32
		PeriodSeconds int32
	}
)

// Conversion converts objects of v1, which are stored as v2.
type Conversion struct{ now bool } // as in releases after 1.32

// ConversionFor returns the Conversion of a release.
func ConversionFor(on kinds.Feature) Conversion { return Conversion{on.Has(release.KindRules133)} }

// ToV2 converts a v1 object to the stored version. An annotation that cannot be
// read is dropped, as other servers do. Annotations that are too long for any object are an error.
func (c Conversion) ToV2(obj kinds.Object) (kinds.Object, error) {
	in, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler)
	if !ok {
		return nil, fmt.Errorf("converting %T to autoscaling/v2", obj)
	}
	if err := checkAnnotations(in.Annotations); err != nil {
		return nil, err
	}
	out := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	out.SetGroupVersionKind(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"))
	var metrics []autoscalingv1.MetricSpec
	read(in.Annotations, metricsAnnotation, &metrics)
	for i := range metrics {
		out.Spec.Metrics = append(out.Spec.Metrics, c.specToV2(&metrics[i]))
	}
	if u := in.Spec.TargetCPUUtilizationPercentage; u != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: u},
			},
		})
	}
	statusToV2(in, out)
	var b tolerantBehavior
	if read(in.Annotations, behaviorAnnotation, &b) && (b.ScaleUp != nil || b.ScaleDown != nil) {
		out.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: b.ScaleUp.toV2(), ScaleDown: b.ScaleDown.toV2()}
		if !c.now {
			dropTolerance(&out.Spec)
		}
	}
	out.Annotations = withoutOurs(in.Annotations)
	return out, nil
}

func statusToV2(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) {
	if u := in.Status.CurrentCPUUtilizationPercentage; u != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name:    corev1.ResourceCPU,
				Current: autoscalingv2.MetricValueStatus{AverageUtilization: u},
			},
		}}
	}
	var statuses []autoscalingv1.MetricStatus
	if read(in.Annotations, statusesAnnotation, &statuses) {
		out.Status.CurrentMetrics = nil
		for i := range statuses {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, statusMetricToV2(&statuses[i]))
		}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if read(in.Annotations, conditionsAnnotation, &conditions) {
		for _, c := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
				LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
			})
		}
	}
}

// ToV1 converts a stored object to v1.
func (c Conversion) ToV1(obj kinds.Object) (kinds.Object, error) {
	in, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil, fmt.Errorf("converting %T to autoscaling/v1", obj)
	}
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	out.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"))
	notes := withoutOurs(in.Annotations)
	var err error
	note := func(key string, v any) {
		raw, e := json.Marshal(v)
		if e != nil {
			err = fmt.Errorf("writing annotation %s: %w", key, e)
			return
		}
		if notes == nil {
			notes = map[string]string{}
		}
		notes[key] = string(raw)
	}
	var others []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		m := &in.Spec.Metrics[i]
		if u := cpuUtilization(m); u == nil {
			others = append(others, specToV1(m))
		} else if out.Spec.TargetCPUUtilizationPercentage == nil {
			out.Spec.TargetCPUUtilizationPercentage = u
		}
	}
	if len(others) > 0 {
		note(metricsAnnotation, others)
	}
	statuses := make([]autoscalingv1.MetricStatus, len(in.Status.CurrentMetrics))
	for i := range in.Status.CurrentMetrics {
		m := &in.Status.CurrentMetrics[i]
		statuses[i] = statusMetricToV1(m)
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
	}
	if len(statuses) > 0 {
		note(statusesAnnotation, statuses)
	}
	switch b := in.Spec.Behavior; {
	case b == nil:
	case c.now:
		note(behaviorAnnotation, tolerantBehavior{ScaleUp: rulesFromV2(b.ScaleUp), ScaleDown: rulesFromV2(b.ScaleDown)})
	default:
		note(behaviorAnnotation, behavior{ScaleUp: rulesFromV2(b.ScaleUp).plain(), ScaleDown: rulesFromV2(b.ScaleDown).plain()})
	}
	if len(in.Status.Conditions) > 0 {
		note(conditionsAnnotation, in.Status.Conditions)
	}
	out.Annotations = notes
	return out, err
}

// cpuUtilization returns the target that v1 has a field for, or nil for other metrics.
func cpuUtilization(m *autoscalingv2.MetricSpec) *int32 {
	if m.Type != autoscalingv2.ResourceMetricSourceType || m.Resource == nil || m.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return m.Resource.Target.AverageUtilization
}

// read decodes an annotation and reports whether it was there and readable.
func read(annotations map[string]string, key string, into any) bool {
	text, ok := annotations[key]
	return ok && json.Unmarshal([]byte(text), into) == nil
}

// checkAnnotations refuses annotations with fields of v2 that cost too much: those that are longer than all annotations of an object may
// be, because they could take a hundred times as much memory, and quantities with long exponents.
func checkAnnotations(annotations map[string]string) error {
	size := 0
	for _, key := range ours {
		size += len(annotations[key])
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		return fmt.Errorf("the annotations autoscaling.alpha.kubernetes.io/* have %d bytes, more than the limit of %d", size, apivalidation.TotalAnnotationSizeLimitB)
	}
	for _, key := range ours {
		if err := quantities.CheckAny([]byte(annotations[key])); err != nil {
			return fmt.Errorf("the annotation %s: %w", key, err)
		}
	}
	return nil
}

// ours are the annotations of v1 that hold fields of v2.
var ours = [...]string{metricsAnnotation, statusesAnnotation, conditionsAnnotation, behaviorAnnotation}

func carriesOurs(annotations map[string]string) bool {
	for _, key := range ours {
		if _, ok := annotations[key]; ok {
			return true
		}
	}
	return false
}

func withoutOurs(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	for _, key := range ours {
		delete(out, key)
	}
	return out
}

func (r *tolerantRules) plain() *scalingRules {
	if r == nil {
		return nil
	}
	return &r.scalingRules
}

func (r *tolerantRules) toV2() *autoscalingv2.HPAScalingRules {
	if r == nil {
		return nil
	}
	out := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy(p))
	}
	return out
}

func rulesFromV2(r *autoscalingv2.HPAScalingRules) *tolerantRules {
	if r == nil {
		return nil
	}
	out := &tolerantRules{scalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy}, r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, scalingPolicy(p))
	}
	return out
}
