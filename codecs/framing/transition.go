package framing

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
)

// These go once their callers use codecs.Streamer.

func AppendEvent(dst []byte, mediaType, eventType string, gvk schema.GroupVersionKind, object []byte) ([]byte, error) {
	s := forms.Forms{}.Streamer(mediaType)
	if s == nil {
		return dst, fmt.Errorf("no frames for %s", mediaType)
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return s.AppendEvent(dst, eventType, apiVersion, kind, object), nil
}

func AppendError(dst []byte, mediaType string, status *metav1.Status) ([]byte, error) {
	s := forms.Forms{}.Streamer(mediaType)
	if s == nil {
		return dst, fmt.Errorf("no frames for %s", mediaType)
	}
	return codecs.AppendError(dst, s, status)
}
