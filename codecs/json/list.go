package json

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

var _ codecs.Streamer = Codec{}

// Message implements codecs.Streamer: the whole object, with kind and API version.
func (c Codec) Message(obj runtime.Object) ([]byte, error) { return c.Encode(nil, obj) }

// AppendObject implements codecs.Streamer.
func (Codec) AppendObject(dst []byte, _, _ string, message []byte) []byte {
	return append(dst, message...)
}

// AppendListHead implements codecs.Streamer.
func (Codec) AppendListHead(dst []byte, l *codecs.List) ([]byte, error) {
	if l.Custom {
		dst = append(dst, `{"apiVersion":`...)
		dst = appendString(dst, l.APIVersion)
		return append(dst, `,"items":[`...), nil
	}
	dst = append(dst, `{"kind":`...)
	dst = appendString(dst, l.Kind)
	dst = append(dst, `,"apiVersion":`...)
	dst = appendString(dst, l.APIVersion)
	dst = append(dst, `,"metadata":`...)
	dst = AppendListMeta(dst, l.Meta)
	if l.NoItems {
		return append(dst, `,"items":null`...), nil
	}
	return append(dst, `,"items":[`...), nil
}

// AppendItemHead implements codecs.Streamer. An item of a built-in kind does not repeat its
// kind and API version.
func (Codec) AppendItemHead(dst []byte, first bool, _ int) []byte {
	if first {
		return dst
	}
	return append(dst, ',')
}

// ItemSize implements codecs.Streamer.
func (Codec) ItemSize(size int) int { return size }

// AppendListTail implements codecs.Streamer.
func (Codec) AppendListTail(dst []byte, l *codecs.List) []byte {
	switch {
	case l.NoItems:
		return append(dst, '}')
	case !l.Custom:
		return append(dst, "]}"...)
	}
	dst = append(dst, `],"kind":`...)
	dst = appendString(dst, l.Kind)
	if l.Meta == nil {
		return append(dst, '}')
	}
	dst = append(dst, `,"metadata":{"continue":`...)
	dst = appendString(dst, l.Meta.Continue)
	dst = appendRemaining(dst, l.Meta)
	dst = append(dst, `,"resourceVersion":`...)
	dst = appendString(dst, l.Meta.ResourceVersion)
	return append(appendShard(dst, l.Meta), "}}"...)
}

// AppendListMeta appends the metadata of a list; nil is empty metadata. It omits selfLink, which lists no
// longer have.
func AppendListMeta(dst []byte, meta *metav1.ListMeta) []byte {
	dst = append(dst, '{')
	if meta == nil {
		return append(dst, '}')
	}
	start := len(dst)
	if meta.ResourceVersion != "" {
		dst = append(dst, `,"resourceVersion":`...)
		dst = appendString(dst, meta.ResourceVersion)
	}
	if meta.Continue != "" {
		dst = append(dst, `,"continue":`...)
		dst = appendString(dst, meta.Continue)
	}
	if dst = appendShard(appendRemaining(dst, meta), meta); len(dst) > start {
		dst = append(dst[:start], dst[start+1:]...) // no comma before the first
	}
	return append(dst, '}')
}

func appendShard(dst []byte, meta *metav1.ListMeta) []byte {
	if meta.ShardInfo == nil {
		return dst
	}
	dst = append(dst, `,"shardInfo":{"selector":`...)
	return append(appendString(dst, meta.ShardInfo.Selector), '}')
}

func appendRemaining(dst []byte, meta *metav1.ListMeta) []byte {
	if meta.RemainingItemCount == nil {
		return dst
	}
	dst = append(dst, `,"remainingItemCount":`...)
	return strconv.AppendInt(dst, *meta.RemainingItemCount, 10)
}

// AppendPartial appends the PartialObjectMetadata of an encoded object. version is
// that of meta.k8s.io.
func AppendPartial(dst []byte, version string, object []byte) []byte {
	metadata := scan.Lookup(object, "metadata")
	if metadata == nil {
		metadata = []byte(`{"creationTimestamp":null}`)
	}
	return AppendMetadata(dst, version, metadata)
}

// AppendMetadata is AppendPartial for encoded metadata.
func AppendMetadata(dst []byte, version string, metadata []byte) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, metadata...)
	return append(dst, '}')
}

// AppendEvent implements codecs.Streamer: an event and its line end.
func (Codec) AppendEvent(dst []byte, eventType, _, _ string, message []byte) []byte {
	return append(append(appendEventHead(dst, eventType), message...), eventTail...)
}

// AroundEvent returns what an event has before and behind the object.
func (Codec) AroundEvent(eventType string) (before, behind []byte) {
	return appendEventHead(nil, eventType), []byte(eventTail)
}

const eventTail = "}\n"

func appendEventHead(dst []byte, eventType string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	return append(dst, `","object":`...)
}
