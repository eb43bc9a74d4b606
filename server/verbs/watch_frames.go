package verbs

import (
	"encoding/base64"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/framing"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// Annotations of the bookmark that ends the initial events.
const (
	initialEventsEnd = metav1.InitialEventsAnnotationKey
	blueprintKey     = "kubernetes.io/initial-events-list-blueprint"
)

// frame is one event in the wire form of the watch.
func (s *stream) frame(t cache.EventType, it *cache.Item) ([]byte, error) {
	return s.event(s.v, t.String(), it)
}

// event is the frame of an event of any type. The bytes are new.
func (s *stream) event(v *view, eventType string, it *cache.Item) ([]byte, error) {
	object, err := s.eventObject(v, it)
	if err != nil {
		return nil, err
	}
	apiVersion, kind := v.typeMeta()
	if v.form.Type == codecs.CBOR {
		apiVersion, kind = v.cborTypeMeta()
	}
	return framing.AppendEvent(nil, v.form.Type, eventType, schema.FromAPIVersionAndKind(apiVersion, kind), object)
}

func (s *stream) eventObject(v *view, it *cache.Item) ([]byte, error) {
	switch {
	case v.form.IsPartialList():
		return nil, errNoList
	case v.form.IsTable():
		return v.tableEvent(it, s.include, !s.shown)
	case v.form.Type == codecs.Protobuf:
		return v.message(it)
	case v.form.Type == codecs.CBOR:
		return v.cbor(it)
	case v.partial():
		return v.appendJSON(nil, it, false)
	}
	return v.json(it)
}

// errorFrame is the event that ends a failed watch.
func (s *stream) errorFrame(st *metav1.Status) ([]byte, error) {
	return framing.AppendError(nil, s.v.form.Type, st)
}

// bookmark sends the zero object of the kind at a revision; the one that ends the
// initial events says so.
func (s *stream) bookmark(out sink, revision int64, end bool) error {
	value, err := s.zero(end)
	if err != nil {
		return err
	}
	it := cache.NewOwnItem(&sqlstore.Row{Revision: revision, Value: value}, nil)
	// The zero object is in the served version already.
	r := *s.v.r
	r.FromStorage, r.Schema = nil, asIs{}
	frame, err := s.event(s.h.view(s.v.ctx, &r, s.v.form), "BOOKMARK", it)
	if err != nil {
		return err
	}
	s.shown = true
	s.sent(len(frame))
	if err := out.send(frame); err != nil {
		return err
	}
	return out.flush()
}

// zero is the JSON of the kind's zero object.
func (s *stream) zero(end bool) ([]byte, error) {
	r := s.v.r
	annotations := map[string]string(nil)
	if end {
		blueprint, err := s.v.emptyList()
		if err != nil {
			return nil, err
		}
		annotations = map[string]string{
			initialEventsEnd: "true",
			blueprintKey:     base64.StdEncoding.EncodeToString(blueprint),
		}
	}
	if r.Custom {
		metadata := map[string]any{}
		if end {
			metadata["annotations"] = annotations
		}
		return jsoncodec.Append(nil, map[string]any{"apiVersion": r.APIVersion(), "kind": r.Kind, "metadata": metadata})
	}
	obj := r.New()
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.SetAnnotations(annotations)
	if r.Zero != nil {
		r.Zero(obj)
	}
	return jsoncodec.Append(nil, obj)
}

// emptyList is a list of the kind without items or metadata, in the form of the view.
func (v *view) emptyList() ([]byte, error) {
	apiVersion, kind := v.listMeta()
	switch {
	case v.form.Type == codecs.Protobuf:
		dst, err := protobuf.AppendListHead(nil, apiVersion, kind, &metav1.ListMeta{}, 0)
		return protobuf.AppendTail(dst), err
	case v.form.Type == codecs.CBOR:
		return cbor.AppendListHead(nil, apiVersion, kind, &metav1.ListMeta{}, 0)
	case v.r.Custom && !v.partial():
		return fmt.Appendf(nil, "{\"apiVersion\":%s,\"items\":[],\"kind\":%s}\n", strconv.Quote(apiVersion), strconv.Quote(kind)), nil
	}
	return fmt.Appendf(nil, "{\"kind\":%s,\"apiVersion\":%s,\"metadata\":{},\"items\":null}\n", strconv.Quote(kind), strconv.Quote(apiVersion)), nil
}
