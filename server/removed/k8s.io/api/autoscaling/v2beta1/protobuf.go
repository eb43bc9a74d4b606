package v2beta1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/wire"
)

func (h *HorizontalPodAutoscaler) fields() []wire.Field {
	return []wire.Field{
		wire.Part(1, &h.ObjectMeta),
		wire.Part(2, &h.Spec),
		wire.Part(3, &h.Status),
	}
}

// Size is the length of h as Protobuf.
func (h *HorizontalPodAutoscaler) Size() int { return wire.Size(h.fields()) }

// Marshal is h as Protobuf.
func (h *HorizontalPodAutoscaler) Marshal() ([]byte, error) { return wire.Whole(h) }

// DeepCopyObject copies all of h that is stored.
func (h *HorizontalPodAutoscaler) DeepCopyObject() runtime.Object {
	out := &HorizontalPodAutoscaler{TypeMeta: h.TypeMeta}
	return wire.Copy(out, h)
}

// MarshalToSizedBuffer writes h to the end of data.
func (h *HorizontalPodAutoscaler) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, h.fields())
}

// Unmarshal reads h from data.
func (h *HorizontalPodAutoscaler) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "HorizontalPodAutoscaler", h.fields())
}

func (h *HorizontalPodAutoscalerList) fields() []wire.Field {
	return []wire.Field{
		wire.Part(1, &h.ListMeta),
		wire.Parts(2, &h.Items),
	}
}

// Size is the length of h as Protobuf.
func (h *HorizontalPodAutoscalerList) Size() int { return wire.Size(h.fields()) }

// Marshal is h as Protobuf.
func (h *HorizontalPodAutoscalerList) Marshal() ([]byte, error) { return wire.Whole(h) }

// DeepCopyObject copies all of h that is stored.
func (h *HorizontalPodAutoscalerList) DeepCopyObject() runtime.Object {
	out := &HorizontalPodAutoscalerList{TypeMeta: h.TypeMeta}
	return wire.Copy(out, h)
}

// MarshalToSizedBuffer writes h to the end of data.
func (h *HorizontalPodAutoscalerList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, h.fields())
}

// Unmarshal reads h from data.
func (h *HorizontalPodAutoscalerList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "HorizontalPodAutoscalerList", h.fields())
}

func (h *HorizontalPodAutoscalerSpec) fields() []wire.Field {
	return []wire.Field{
		wire.Part(1, &h.ScaleTargetRef),
		wire.OptionalInt(2, &h.MinReplicas),
		wire.Int(3, &h.MaxReplicas),
		wire.Parts(4, &h.Metrics),
	}
}

// Size is the length of h as Protobuf.
func (h *HorizontalPodAutoscalerSpec) Size() int { return wire.Size(h.fields()) }

// MarshalToSizedBuffer writes h to the end of data.
func (h *HorizontalPodAutoscalerSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, h.fields())
}

// Unmarshal reads h from data.
func (h *HorizontalPodAutoscalerSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "HorizontalPodAutoscalerSpec", h.fields())
}

func (h *HorizontalPodAutoscalerStatus) fields() []wire.Field {
	return []wire.Field{
		wire.OptionalInt(1, &h.ObservedGeneration),
		wire.OptionalPart(2, &h.LastScaleTime),
		wire.Int(3, &h.CurrentReplicas),
		wire.Int(4, &h.DesiredReplicas),
		wire.Parts(5, &h.CurrentMetrics),
		wire.Parts(6, &h.Conditions),
	}
}

// Size is the length of h as Protobuf.
func (h *HorizontalPodAutoscalerStatus) Size() int { return wire.Size(h.fields()) }

// MarshalToSizedBuffer writes h to the end of data.
func (h *HorizontalPodAutoscalerStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, h.fields())
}

// Unmarshal reads h from data.
func (h *HorizontalPodAutoscalerStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "HorizontalPodAutoscalerStatus", h.fields())
}

func (h *HorizontalPodAutoscalerCondition) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &h.Type),
		wire.String(2, &h.Status),
		wire.Part(3, &h.LastTransitionTime),
		wire.String(4, &h.Reason),
		wire.String(5, &h.Message),
	}
}

// Size is the length of h as Protobuf.
func (h *HorizontalPodAutoscalerCondition) Size() int { return wire.Size(h.fields()) }

// MarshalToSizedBuffer writes h to the end of data.
func (h *HorizontalPodAutoscalerCondition) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, h.fields())
}

// Unmarshal reads h from data.
func (h *HorizontalPodAutoscalerCondition) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "HorizontalPodAutoscalerCondition", h.fields())
}

func (c *CrossVersionObjectReference) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &c.Kind),
		wire.String(2, &c.Name),
		wire.String(3, &c.APIVersion),
	}
}

// Size is the length of c as Protobuf.
func (c *CrossVersionObjectReference) Size() int { return wire.Size(c.fields()) }

// MarshalToSizedBuffer writes c to the end of data.
func (c *CrossVersionObjectReference) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, c.fields())
}

// Unmarshal reads c from data.
func (c *CrossVersionObjectReference) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "CrossVersionObjectReference", c.fields())
}

func (m *MetricSpec) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &m.Type),
		wire.OptionalPart(2, &m.Object),
		wire.OptionalPart(3, &m.Pods),
		wire.OptionalPart(4, &m.Resource),
		wire.OptionalPart(5, &m.External),
		wire.OptionalPart(7, &m.ContainerResource),
	}
}

// Size is the length of m as Protobuf.
func (m *MetricSpec) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *MetricSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *MetricSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "MetricSpec", m.fields())
}

func (o *ObjectMetricSource) fields() []wire.Field {
	return []wire.Field{
		wire.Part(1, &o.Target),
		wire.String(2, &o.MetricName),
		wire.Part(3, &o.TargetValue),
		wire.OptionalPart(4, &o.Selector),
		wire.OptionalPart(5, &o.AverageValue),
	}
}

// Size is the length of o as Protobuf.
func (o *ObjectMetricSource) Size() int { return wire.Size(o.fields()) }

// MarshalToSizedBuffer writes o to the end of data.
func (o *ObjectMetricSource) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, o.fields())
}

// Unmarshal reads o from data.
func (o *ObjectMetricSource) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ObjectMetricSource", o.fields())
}

func (p *PodsMetricSource) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &p.MetricName),
		wire.Part(2, &p.TargetAverageValue),
		wire.OptionalPart(3, &p.Selector),
	}
}

// Size is the length of p as Protobuf.
func (p *PodsMetricSource) Size() int { return wire.Size(p.fields()) }

// MarshalToSizedBuffer writes p to the end of data.
func (p *PodsMetricSource) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, p.fields())
}

// Unmarshal reads p from data.
func (p *PodsMetricSource) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodsMetricSource", p.fields())
}

func (r *ResourceMetricSource) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &r.Name),
		wire.OptionalInt(2, &r.TargetAverageUtilization),
		wire.OptionalPart(3, &r.TargetAverageValue),
	}
}

// Size is the length of r as Protobuf.
func (r *ResourceMetricSource) Size() int { return wire.Size(r.fields()) }

// MarshalToSizedBuffer writes r to the end of data.
func (r *ResourceMetricSource) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, r.fields())
}

// Unmarshal reads r from data.
func (r *ResourceMetricSource) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceMetricSource", r.fields())
}

func (c *ContainerResourceMetricSource) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &c.Name),
		wire.OptionalInt(2, &c.TargetAverageUtilization),
		wire.OptionalPart(3, &c.TargetAverageValue),
		wire.String(4, &c.Container),
	}
}

// Size is the length of c as Protobuf.
func (c *ContainerResourceMetricSource) Size() int { return wire.Size(c.fields()) }

// MarshalToSizedBuffer writes c to the end of data.
func (c *ContainerResourceMetricSource) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, c.fields())
}

// Unmarshal reads c from data.
func (c *ContainerResourceMetricSource) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ContainerResourceMetricSource", c.fields())
}

func (e *ExternalMetricSource) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &e.MetricName),
		wire.OptionalPart(2, &e.MetricSelector),
		wire.OptionalPart(3, &e.TargetValue),
		wire.OptionalPart(4, &e.TargetAverageValue),
	}
}

// Size is the length of e as Protobuf.
func (e *ExternalMetricSource) Size() int { return wire.Size(e.fields()) }

// MarshalToSizedBuffer writes e to the end of data.
func (e *ExternalMetricSource) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, e.fields())
}

// Unmarshal reads e from data.
func (e *ExternalMetricSource) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ExternalMetricSource", e.fields())
}

func (m *MetricStatus) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &m.Type),
		wire.OptionalPart(2, &m.Object),
		wire.OptionalPart(3, &m.Pods),
		wire.OptionalPart(4, &m.Resource),
		wire.OptionalPart(5, &m.External),
		wire.OptionalPart(7, &m.ContainerResource),
	}
}

// Size is the length of m as Protobuf.
func (m *MetricStatus) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *MetricStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *MetricStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "MetricStatus", m.fields())
}

func (o *ObjectMetricStatus) fields() []wire.Field {
	return []wire.Field{
		wire.Part(1, &o.Target),
		wire.String(2, &o.MetricName),
		wire.Part(3, &o.CurrentValue),
		wire.OptionalPart(4, &o.Selector),
		wire.OptionalPart(5, &o.AverageValue),
	}
}

// Size is the length of o as Protobuf.
func (o *ObjectMetricStatus) Size() int { return wire.Size(o.fields()) }

// MarshalToSizedBuffer writes o to the end of data.
func (o *ObjectMetricStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, o.fields())
}

// Unmarshal reads o from data.
func (o *ObjectMetricStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ObjectMetricStatus", o.fields())
}

func (p *PodsMetricStatus) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &p.MetricName),
		wire.Part(2, &p.CurrentAverageValue),
		wire.OptionalPart(3, &p.Selector),
	}
}

// Size is the length of p as Protobuf.
func (p *PodsMetricStatus) Size() int { return wire.Size(p.fields()) }

// MarshalToSizedBuffer writes p to the end of data.
func (p *PodsMetricStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, p.fields())
}

// Unmarshal reads p from data.
func (p *PodsMetricStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodsMetricStatus", p.fields())
}

func (r *ResourceMetricStatus) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &r.Name),
		wire.OptionalInt(2, &r.CurrentAverageUtilization),
		wire.Part(3, &r.CurrentAverageValue),
	}
}

// Size is the length of r as Protobuf.
func (r *ResourceMetricStatus) Size() int { return wire.Size(r.fields()) }

// MarshalToSizedBuffer writes r to the end of data.
func (r *ResourceMetricStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, r.fields())
}

// Unmarshal reads r from data.
func (r *ResourceMetricStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceMetricStatus", r.fields())
}

func (c *ContainerResourceMetricStatus) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &c.Name),
		wire.OptionalInt(2, &c.CurrentAverageUtilization),
		wire.Part(3, &c.CurrentAverageValue),
		wire.String(4, &c.Container),
	}
}

// Size is the length of c as Protobuf.
func (c *ContainerResourceMetricStatus) Size() int { return wire.Size(c.fields()) }

// MarshalToSizedBuffer writes c to the end of data.
func (c *ContainerResourceMetricStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, c.fields())
}

// Unmarshal reads c from data.
func (c *ContainerResourceMetricStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ContainerResourceMetricStatus", c.fields())
}

func (e *ExternalMetricStatus) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &e.MetricName),
		wire.OptionalPart(2, &e.MetricSelector),
		wire.Part(3, &e.CurrentValue),
		wire.OptionalPart(4, &e.CurrentAverageValue),
	}
}

// Size is the length of e as Protobuf.
func (e *ExternalMetricStatus) Size() int { return wire.Size(e.fields()) }

// MarshalToSizedBuffer writes e to the end of data.
func (e *ExternalMetricStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, e.fields())
}

// Unmarshal reads e from data.
func (e *ExternalMetricStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ExternalMetricStatus", e.fields())
}
