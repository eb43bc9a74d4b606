package verbs

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// view is how one request sees items: in a served version and a wire form.
type view struct {
	ctx  context.Context // of the request that is shown something: conversions end with it
	h    *Handler
	r    *kinds.Resource
	form codecs.Form
	lead []byte // `{"kind":...,"apiVersion":...,` of a converted object
}

func (h *Handler) view(ctx context.Context, r *kinds.Resource, form codecs.Form) *view {
	v := &view{ctx: ctx, h: h, r: r, form: form}
	if r.FromStorage != nil && !r.Custom {
		v.lead = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, r.Kind, r.APIVersion())
	}
	return v
}

// partial says that only metadata is shown.
func (v *view) partial() bool { return v.form.IsPartial() || v.form.IsPartialList() }

// typeMeta is the API version and kind of what is shown of one object.
func (v *view) typeMeta() (apiVersion, kind string) {
	if v.partial() {
		return v.form.As.GroupVersion().String(), "PartialObjectMetadata"
	}
	return v.r.APIVersion(), v.r.Kind
}

// json is an item as JSON in the served version. The bytes are shared.
func (v *view) json(it *cache.Item) ([]byte, error) { return v.h.Objects.JSON(v.ctx, v.r, it) }

// message is an item as a Protobuf message without envelope. The bytes are shared.
func (v *view) message(it *cache.Item) ([]byte, error) {
	if it.Corrupt != nil {
		return nil, v.corrupt(it)
	}
	if v.r.Custom {
		data, err := v.json(it)
		if err != nil {
			return nil, err
		}
		return protobuf.PartialFromJSON(data)
	}
	raw, err := it.Bytes(cache.FormKey{Form: cache.FormProtobuf, For: v.r}, func(it *cache.Item) ([]byte, error) {
		data, err := v.json(it)
		if err != nil {
			return nil, err
		}
		return protobuf.FromJSON(func() runtime.Object { return v.r.New() }, data)
	})
	if err == nil && v.partial() {
		raw = protobuf.Partial(raw)
	}
	return raw, err
}

// appendJSON appends an item as a JSON value; in a list of built-in kinds its kind
// and apiVersion are left out.
func (v *view) appendJSON(dst []byte, it *cache.Item, inList bool) ([]byte, error) {
	if v.partial() {
		if it.Corrupt != nil {
			return dst, v.corrupt(it)
		}
		return v.appendPartial(dst, it)
	}
	data, err := v.json(it)
	switch {
	case err != nil:
		return dst, err
	case !inList || v.r.Custom:
		return append(dst, data...), nil
	case v.lead == nil:
		return append(append(dst, '{'), it.Body()...), nil
	case bytes.HasPrefix(data, v.lead):
		return append(append(dst, '{'), data[len(v.lead):]...), nil
	}
	return append(dst, data...), nil
}

// appendPartial appends an item's PartialObjectMetadata in the version of the form.
func (v *view) appendPartial(dst []byte, it *cache.Item) ([]byte, error) {
	if !objects.Clean(v.r, it) {
		// A conversion may keep what does not fit in annotations.
		data, err := v.json(it)
		if err != nil {
			return dst, err
		}
		return jsoncodec.AppendPartial(dst, v.form.As.Version, data), nil
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, v.form.As.Version...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, it.Metadata()...)
	return append(dst, '}'), nil
}

// object is an item as the body of an answer, without a final newline.
func (v *view) object(it *cache.Item) ([]byte, error) {
	if v.form.IsPartialList() {
		return nil, codecs.NotAcceptableTransform(v.form.As, false, codecs.GoType(v.r.GVK(), v.r.Custom, false))
	}
	if v.form.Type == codecs.Protobuf {
		raw, err := v.message(it)
		if err != nil {
			return nil, err
		}
		apiVersion, kind := v.typeMeta()
		return protobuf.AppendEnvelope(nil, apiVersion, kind, raw), nil
	}
	if v.form.Type == codecs.CBOR {
		raw, err := v.cbor(it)
		if err != nil {
			return nil, err
		}
		apiVersion, kind := v.cborTypeMeta()
		return cbor.AppendObject(nil, apiVersion, kind, raw), nil
	}
	if !v.partial() {
		data, err := v.json(it)
		return v.fromJSON(data, err)
	}
	return v.fromJSON(v.appendJSON(nil, it, false))
}

// corrupt is the refusal of an object that cannot be read.
func (v *view) corrupt(it *cache.Item) error { return objects.Corrupt(v.r, it) }

// corruptList is the refusal of a list with objects that cannot be read.
func (v *view) corruptList(items []*cache.Item) error {
	return objects.CorruptList(v.r, items, v.h.Enabled("AllowUnsafeMalformedObjectDeletion"))
}
