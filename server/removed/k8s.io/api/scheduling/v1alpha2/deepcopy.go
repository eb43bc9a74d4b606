package v1alpha2

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyObject returns a copy of p.
func (p *PodGroup) DeepCopyObject() runtime.Object { return deepcopy.Object(p) }

// DeepCopyObject returns a copy of p.
func (p *PodGroupList) DeepCopyObject() runtime.Object { return deepcopy.Object(p) }

// DeepCopyObject returns a copy of w.
func (w *Workload) DeepCopyObject() runtime.Object { return deepcopy.Object(w) }

// DeepCopyObject returns a copy of w.
func (w *WorkloadList) DeepCopyObject() runtime.Object { return deepcopy.Object(w) }
