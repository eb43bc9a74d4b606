package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

// without returns a strategy that first removes a field whose gates are all off, unless the old
// object has it. drop gets the old object, or an empty one.
func without[T kinds.Object](c Config, s kinds.Strategy, empty T, drop func(obj, old T), gates ...string) kinds.Strategy {
	for _, gate := range gates {
		if c.Feature(gate) {
			return s
		}
	}
	create, update := s.PrepareForCreate, s.PrepareForUpdate
	s.PrepareForCreate = func(ctx context.Context, obj kinds.Object) {
		drop(obj.(T), empty)
		if create != nil {
			create(ctx, obj)
		}
	}
	s.PrepareForUpdate = func(ctx context.Context, obj, old kinds.Object) {
		drop(obj.(T), old.(T))
		if update != nil {
			update(ctx, obj, old)
		}
	}
	return s
}

func dropTrafficDistribution(s, old *corev1.Service) {
	if old.Spec.TrafficDistribution == nil {
		s.Spec.TrafficDistribution = nil
	}
}

func dropSELinuxMount(d, old *storagev1.CSIDriver) {
	if old.Spec.SELinuxMount == nil {
		d.Spec.SELinuxMount = nil
	}
}

// dropHints removes the zones that endpoints are meant for.
func dropHints(s, old *discoveryv1.EndpointSlice) {
	for i := range old.Endpoints {
		if old.Endpoints[i].Hints != nil {
			return
		}
	}
	for i := range s.Endpoints {
		s.Endpoints[i].Hints = nil
	}
}

func dropNodeFeatures(n, old *corev1.Node) {
	if old.Status.Features == nil {
		n.Status.Features = nil
	}
}
