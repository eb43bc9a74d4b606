package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/admission"
)

// HostAntiAffinity lets pods keep others off their host, but off nothing wider.
type HostAntiAffinity struct{ admission.CreatesAndUpdates }

var _ admission.Validator = HostAntiAffinity{}

// Name implements admission.Plugin.
func (HostAntiAffinity) Name() string { return "LimitPodHardAntiAffinityTopology" }

// Validate implements admission.Validator.
func (HostAntiAffinity) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") || pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, t := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if t.TopologyKey != corev1.LabelHostname {
			return apierrors.NewForbidden(a.Resource.GroupResource(), pod.Name,
				fmt.Errorf("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed", t.TopologyKey, corev1.LabelHostname))
		}
	}
	return nil
}
