package autoscaling_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds/autoscaling"
	"github.com/rowlock/rowlock/server/release"
)

func pointer[T any](v T) *T { return &v }

// rich has every source of metrics, a behaviour and a status.
func rich() *autoscalingv2.HorizontalPodAutoscaler {
	value, average := resource.MustParse("10"), resource.MustParse("500Mi")
	described := autoscalingv2.CrossVersionObjectReference{Kind: "Ingress", Name: "main", APIVersion: "networking.k8s.io/v1"}
	h := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{Kind: "HorizontalPodAutoscaler", APIVersion: "autoscaling/v2"},
		ObjectMeta: metav1.ObjectMeta{Name: "h", Annotations: map[string]string{"keep": "me"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "d", APIVersion: "apps/v1"},
			MinReplicas:    pointer[int32](1), MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{
				{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &average}}},
				{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "rps"}, Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &value}}},
				{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{DescribedObject: described, Metric: autoscalingv2.MetricIdentifier{Name: "hits"}, Target: autoscalingv2.MetricTarget{Type: "Value", Value: &value}}},
				{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "queue"}, Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &value}}},
				{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceCPU, Container: "web", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: pointer[int32](70)}}},
				{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: pointer[int32](50)}}},
			},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: pointer[int32](60)}},
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			CurrentReplicas: 2, DesiredReplicas: 3,
			CurrentMetrics: []autoscalingv2.MetricStatus{
				{Type: "Resource", Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: pointer[int32](61), AverageValue: &value}}},
			},
			Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True", Reason: "r", Message: "m"}},
		},
	}
	autoscaling.HorizontalPodAutoscaler(gates.New(release.Default).Enabled).Default(h)
	return h
}

func TestThereAndBack(t *testing.T) {
	v1, err := autoscaling.Conversion{}.ToV1(rich())
	if err != nil {
		t.Fatal(err)
	}
	shown := v1.(*autoscalingv1.HorizontalPodAutoscaler)
	if u := shown.Spec.TargetCPUUtilizationPercentage; u == nil || *u != 50 {
		t.Errorf("target utilization %v, want 50", u)
	}
	if u := shown.Status.CurrentCPUUtilizationPercentage; u == nil || *u != 61 {
		t.Errorf("current utilization %v, want 61", u)
	}
	if got := len(shown.Annotations); got != 5 {
		t.Errorf("%d annotations, want 5: %v", got, shown.Annotations)
	}
	back, err := autoscaling.Conversion{}.ToV2(v1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rich(), back); diff != "" {
		t.Errorf("through v1 and back (-want +got):\n%s", diff)
	}
}

// TestUnreadable drops annotations that cannot be read.
func TestUnreadable(t *testing.T) {
	out, err := autoscaling.Conversion{}.ToV2(&autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"autoscaling.alpha.kubernetes.io/metrics": "{", "keep": "me"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := out.(*autoscalingv2.HorizontalPodAutoscaler)
	if len(h.Spec.Metrics) != 0 || len(h.Annotations) != 1 {
		t.Errorf("metrics %v, annotations %v", h.Spec.Metrics, h.Annotations)
	}
}

// TestLongAnnotations: annotations with fields of v2 that are longer than all annotations may be are refused before they are decoded.
// What that costs is counted in allocated bytes.
func TestLongAnnotations(t *testing.T) {
	const limit = 256 << 10
	for name, length := range map[string]int{"short": limit, "long": limit + 1, "very long": 3 << 20} {
		list := "[" + strings.Repeat("{},", 50_000) + "{}]"
		h := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"autoscaling.alpha.kubernetes.io/metrics": list, "autoscaling.alpha.kubernetes.io/conditions": strings.Repeat(" ", length-len(list)),
		}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := autoscaling.Conversion{}.ToV2(h)
		runtime.ReadMemStats(&after)
		if refused := err != nil && strings.Contains(err.Error(), "more than the limit of 262144"); refused != (length > limit) || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; length > limit && got > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", name, got)
		}
	}
}

// TestQuantitiesInAnnotations: quantities with long exponents are refused in annotations too, whatever the case of the names by which
// the decoder finds them; texts that only look similar are not. What a refusal costs is counted in allocated bytes.
func TestQuantitiesInAnnotations(t *testing.T) {
	const bad = "quantities must have at most 1024 characters and an exponent of at most 4 digits"
	for text, want := range map[string]string{
		`[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"500Mi"}}]`:                             "",
		`[{"type":"Pods","pods":{"metricName":"queue12345","targetAverageValue":"1e3"}}]`:                             "",
		`[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1e-100000"}}]`:                         bad,
		`[{"Type":"Resource","RESOURCE":{"Name":"memory","TARGETAVERAGEVALUE":"1e-100000"}}]`:                         bad,
		`[{"type":"Resource","resource":{"name":"memory","targetAverageValue":1E+100000}}]`:                           bad,
		`[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"` + strings.Repeat("1", 2000) + `"}}]`: bad,
		`{"ScaleUp":{"tolerance":"1e-100000"}}`:                                                                       bad,
	} {
		for _, annotation := range []string{"metrics", "current-metrics", "behavior"} {
			h := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"autoscaling.alpha.kubernetes.io/" + annotation: text}}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := autoscaling.Conversion{}.ToV2(h)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
				t.Errorf("%.80s: %d bytes are allocated", text, got)
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s %.80s: %v", annotation, text, err)
			}
		}
	}
}
