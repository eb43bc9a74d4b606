package v1alpha3

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyObject returns a copy of d.
func (d *DeviceClass) DeepCopyObject() runtime.Object { return deepcopy.Object(d) }

// DeepCopyObject returns a copy of d.
func (d *DeviceClassList) DeepCopyObject() runtime.Object { return deepcopy.Object(d) }

// DeepCopyObject returns a copy of r.
func (r *ResourceClaim) DeepCopyObject() runtime.Object { return deepcopy.Object(r) }

// DeepCopyObject returns a copy of r.
func (r *ResourceClaimList) DeepCopyObject() runtime.Object { return deepcopy.Object(r) }

// DeepCopyObject returns a copy of r.
func (r *ResourceClaimTemplate) DeepCopyObject() runtime.Object { return deepcopy.Object(r) }

// DeepCopyObject returns a copy of r.
func (r *ResourceClaimTemplateList) DeepCopyObject() runtime.Object { return deepcopy.Object(r) }

// DeepCopyObject returns a copy of r.
func (r *ResourceSlice) DeepCopyObject() runtime.Object { return deepcopy.Object(r) }

// DeepCopyObject returns a copy of r.
func (r *ResourceSliceList) DeepCopyObject() runtime.Object { return deepcopy.Object(r) }
