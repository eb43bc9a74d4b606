package v2beta1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
)

// DeepCopyObject copies all of h that is stored.
func (h *HorizontalPodAutoscaler) DeepCopyObject() runtime.Object {
	out := &HorizontalPodAutoscaler{TypeMeta: h.TypeMeta}
	copyMessage(out, h)
	return out
}

// DeepCopyObject copies all of h that is stored.
func (h *HorizontalPodAutoscalerList) DeepCopyObject() runtime.Object {
	out := &HorizontalPodAutoscalerList{TypeMeta: h.TypeMeta}
	copyMessage(out, h)
	return out
}

// copyMessage reads into out, which is empty, what a message of m has.
func copyMessage(out, m any) {
	data, err := tagged.Append(nil, m)
	if err == nil {
		err = tagged.Unmarshal(data, out)
	}
	if err != nil {
		panic(err) // a message that was just written
	}
}
