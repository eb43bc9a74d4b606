// Package v2beta1 has the types of autoscaling/v2beta1, which k8s.io/api has up to v0.35. The version is served by no
// release that rowlock can be; the types read what older servers stored. They have the same JSON and the same
// Protobuf messages.
package v2beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and the version of the types.
var SchemeGroupVersion = schema.GroupVersion{Group: "autoscaling", Version: "v2beta1"}

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &HorizontalPodAutoscaler{}, &HorizontalPodAutoscalerList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// HorizontalPodAutoscaler scales a resource by metrics.
type HorizontalPodAutoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Spec              HorizontalPodAutoscalerSpec   `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	Status            HorizontalPodAutoscalerStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// HorizontalPodAutoscalerList is a list of autoscalers.
type HorizontalPodAutoscalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Items           []HorizontalPodAutoscaler `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// HorizontalPodAutoscalerSpec names the target to scale, the bounds of its replicas, and the metrics.
type HorizontalPodAutoscalerSpec struct {
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"bytes,1,opt,name=scaleTargetRef"`
	MinReplicas    *int32                      `json:"minReplicas,omitempty" protobuf:"varint,2,opt,name=minReplicas"`
	MaxReplicas    int32                       `json:"maxReplicas" protobuf:"varint,3,opt,name=maxReplicas"`
	Metrics        []MetricSpec                `json:"metrics,omitempty" protobuf:"bytes,4,rep,name=metrics"`
}

// HorizontalPodAutoscalerStatus is the observed state of the scaling.
type HorizontalPodAutoscalerStatus struct {
	ObservedGeneration *int64                             `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`
	LastScaleTime      *metav1.Time                       `json:"lastScaleTime,omitempty" protobuf:"bytes,2,opt,name=lastScaleTime"`
	CurrentReplicas    int32                              `json:"currentReplicas" protobuf:"varint,3,opt,name=currentReplicas"`
	DesiredReplicas    int32                              `json:"desiredReplicas" protobuf:"varint,4,opt,name=desiredReplicas"`
	CurrentMetrics     []MetricStatus                     `json:"currentMetrics" protobuf:"bytes,5,rep,name=currentMetrics"`
	Conditions         []HorizontalPodAutoscalerCondition `json:"conditions" protobuf:"bytes,6,rep,name=conditions"`
}

// HorizontalPodAutoscalerCondition is a condition of an autoscaler.
type HorizontalPodAutoscalerCondition struct {
	Type               string                 `json:"type" protobuf:"bytes,1,name=type"`
	Status             corev1.ConditionStatus `json:"status" protobuf:"bytes,2,name=status"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty" protobuf:"bytes,3,opt,name=lastTransitionTime"`
	Reason             string                 `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`
	Message            string                 `json:"message,omitempty" protobuf:"bytes,5,opt,name=message"`
}

// CrossVersionObjectReference names an object.
type CrossVersionObjectReference struct {
	Kind       string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	Name       string `json:"name" protobuf:"bytes,2,opt,name=name"`
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,3,opt,name=apiVersion"`
}

// MetricSpec is a metric, and its target.
type MetricSpec struct {
	Type              string                         `json:"type" protobuf:"bytes,1,name=type"`
	Object            *ObjectMetricSource            `json:"object,omitempty" protobuf:"bytes,2,opt,name=object"`
	Pods              *PodsMetricSource              `json:"pods,omitempty" protobuf:"bytes,3,opt,name=pods"`
	Resource          *ResourceMetricSource          `json:"resource,omitempty" protobuf:"bytes,4,opt,name=resource"`
	ContainerResource *ContainerResourceMetricSource `json:"containerResource,omitempty" protobuf:"bytes,7,opt,name=containerResource"`
	External          *ExternalMetricSource          `json:"external,omitempty" protobuf:"bytes,5,opt,name=external"`
}

// ObjectMetricSource is a metric of an object.
type ObjectMetricSource struct {
	Target       CrossVersionObjectReference `json:"target" protobuf:"bytes,1,name=target"`
	MetricName   string                      `json:"metricName" protobuf:"bytes,2,name=metricName"`
	TargetValue  resource.Quantity           `json:"targetValue" protobuf:"bytes,3,name=targetValue"`
	Selector     *metav1.LabelSelector       `json:"selector,omitempty" protobuf:"bytes,4,name=selector"`
	AverageValue *resource.Quantity          `json:"averageValue,omitempty" protobuf:"bytes,5,name=averageValue"`
}

// PodsMetricSource is a metric of each pod.
type PodsMetricSource struct {
	MetricName         string                `json:"metricName" protobuf:"bytes,1,name=metricName"`
	TargetAverageValue resource.Quantity     `json:"targetAverageValue" protobuf:"bytes,2,name=targetAverageValue"`
	Selector           *metav1.LabelSelector `json:"selector,omitempty" protobuf:"bytes,3,name=selector"`
}

// ResourceMetricSource is a resource that pods ask for.
type ResourceMetricSource struct {
	Name                     corev1.ResourceName `json:"name" protobuf:"bytes,1,name=name"`
	TargetAverageUtilization *int32              `json:"targetAverageUtilization,omitempty" protobuf:"varint,2,opt,name=targetAverageUtilization"`
	TargetAverageValue       *resource.Quantity  `json:"targetAverageValue,omitempty" protobuf:"bytes,3,opt,name=targetAverageValue"`
}

// ContainerResourceMetricSource is the usage of a resource by one container of each pod.
type ContainerResourceMetricSource struct {
	Name                     corev1.ResourceName `json:"name" protobuf:"bytes,1,name=name"`
	TargetAverageUtilization *int32              `json:"targetAverageUtilization,omitempty" protobuf:"varint,2,opt,name=targetAverageUtilization"`
	TargetAverageValue       *resource.Quantity  `json:"targetAverageValue,omitempty" protobuf:"bytes,3,opt,name=targetAverageValue"`
	Container                string              `json:"container" protobuf:"bytes,4,opt,name=container"`
}

// ExternalMetricSource is a metric of something outside of the cluster.
type ExternalMetricSource struct {
	MetricName         string                `json:"metricName" protobuf:"bytes,1,name=metricName"`
	MetricSelector     *metav1.LabelSelector `json:"metricSelector,omitempty" protobuf:"bytes,2,opt,name=metricSelector"`
	TargetValue        *resource.Quantity    `json:"targetValue,omitempty" protobuf:"bytes,3,opt,name=targetValue"`
	TargetAverageValue *resource.Quantity    `json:"targetAverageValue,omitempty" protobuf:"bytes,4,opt,name=targetAverageValue"`
}

// MetricStatus is a metric, and its last value.
type MetricStatus struct {
	Type              string                         `json:"type" protobuf:"bytes,1,name=type"`
	Object            *ObjectMetricStatus            `json:"object,omitempty" protobuf:"bytes,2,opt,name=object"`
	Pods              *PodsMetricStatus              `json:"pods,omitempty" protobuf:"bytes,3,opt,name=pods"`
	Resource          *ResourceMetricStatus          `json:"resource,omitempty" protobuf:"bytes,4,opt,name=resource"`
	ContainerResource *ContainerResourceMetricStatus `json:"containerResource,omitempty" protobuf:"bytes,7,opt,name=containerResource"`
	External          *ExternalMetricStatus          `json:"external,omitempty" protobuf:"bytes,5,opt,name=external"`
}

// ObjectMetricStatus is the value of a metric of an object.
type ObjectMetricStatus struct {
	Target       CrossVersionObjectReference `json:"target" protobuf:"bytes,1,name=target"`
	MetricName   string                      `json:"metricName" protobuf:"bytes,2,name=metricName"`
	CurrentValue resource.Quantity           `json:"currentValue" protobuf:"bytes,3,name=currentValue"`
	Selector     *metav1.LabelSelector       `json:"selector,omitempty" protobuf:"bytes,4,name=selector"`
	AverageValue *resource.Quantity          `json:"averageValue,omitempty" protobuf:"bytes,5,name=averageValue"`
}

// PodsMetricStatus is the value of a metric of each pod.
type PodsMetricStatus struct {
	MetricName          string                `json:"metricName" protobuf:"bytes,1,name=metricName"`
	CurrentAverageValue resource.Quantity     `json:"currentAverageValue" protobuf:"bytes,2,name=currentAverageValue"`
	Selector            *metav1.LabelSelector `json:"selector,omitempty" protobuf:"bytes,3,name=selector"`
}

// ResourceMetricStatus is how much of a resource is used.
type ResourceMetricStatus struct {
	Name                      corev1.ResourceName `json:"name" protobuf:"bytes,1,name=name"`
	CurrentAverageUtilization *int32              `json:"currentAverageUtilization,omitempty" protobuf:"bytes,2,opt,name=currentAverageUtilization"`
	CurrentAverageValue       resource.Quantity   `json:"currentAverageValue" protobuf:"bytes,3,name=currentAverageValue"`
}

// ContainerResourceMetricStatus is how much of a resource a container uses.
type ContainerResourceMetricStatus struct {
	Name                      corev1.ResourceName `json:"name" protobuf:"bytes,1,name=name"`
	CurrentAverageUtilization *int32              `json:"currentAverageUtilization,omitempty" protobuf:"bytes,2,opt,name=currentAverageUtilization"`
	CurrentAverageValue       resource.Quantity   `json:"currentAverageValue" protobuf:"bytes,3,name=currentAverageValue"`
	Container                 string              `json:"container" protobuf:"bytes,4,opt,name=container"`
}

// ExternalMetricStatus is the value of a metric of something outside of the cluster.
type ExternalMetricStatus struct {
	MetricName          string                `json:"metricName" protobuf:"bytes,1,name=metricName"`
	MetricSelector      *metav1.LabelSelector `json:"metricSelector,omitempty" protobuf:"bytes,2,opt,name=metricSelector"`
	CurrentValue        resource.Quantity     `json:"currentValue" protobuf:"bytes,3,name=currentValue"`
	CurrentAverageValue *resource.Quantity    `json:"currentAverageValue,omitempty" protobuf:"bytes,4,opt,name=currentAverageValue"`
}
