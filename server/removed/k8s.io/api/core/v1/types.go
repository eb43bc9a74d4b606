// Package v1 has the types of the core group that k8s.io/api has up to v0.36: the same JSON, the same Protobuf messages.
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// PodStatusResult is the status of a Pod in an object of its own, as node agents once returned it.
type PodStatusResult struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Status            corev1.PodStatus `json:"status,omitempty" protobuf:"bytes,2,opt,name=status"`
}

// DeepCopyObject returns a copy of m.
func (m *PodStatusResult) DeepCopyObject() runtime.Object { return deepcopy.Object(m) }
