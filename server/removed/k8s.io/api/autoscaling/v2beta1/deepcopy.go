package v2beta1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyObject returns a copy of h.
func (h *HorizontalPodAutoscaler) DeepCopyObject() runtime.Object { return deepcopy.Object(h) }

// DeepCopyObject returns a copy of h.
func (h *HorizontalPodAutoscalerList) DeepCopyObject() runtime.Object { return deepcopy.Object(h) }
