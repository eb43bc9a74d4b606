package answers

import (
	"context"
	"encoding/base64"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Annotations of the bookmark that ends the initial events.
const (
	initialEventsEnd = metav1.InitialEventsAnnotationKey
	blueprintKey     = "kubernetes.io/initial-events-list-blueprint"
)

// Bookmark is the frame of a bookmark: the zero object of the kind at a revision. The one
// that ends the initial events says so. first is that of Event.
func (v *View) Bookmark(revision int64, end, first bool) ([]byte, error) {
	value, err := v.zero(end)
	if err != nil {
		return nil, err
	}
	it := cache.NewOwnItem(&sqlstore.Row{Revision: revision, Value: value}, nil)
	// The zero object is in the served version already.
	r := *v.r
	r.FromStorage, r.Schema = nil, asIs{}
	return v.of(&r).Event("BOOKMARK", it, first)
}

// zero is the JSON of the kind's zero object.
func (v *View) zero(end bool) ([]byte, error) {
	r, codec := v.r, v.answers.Forms.JSON
	annotations := map[string]string(nil)
	if end {
		blueprint, err := v.blueprint()
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
		return codec.Append(nil, map[string]any{"apiVersion": r.APIVersion(), "kind": r.Kind, "metadata": metadata})
	}
	obj := r.New()
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.SetAnnotations(annotations)
	if r.Zero != nil {
		r.Zero(obj)
	}
	return codec.Append(nil, obj)
}

// blueprint is a list of the kind without items or metadata, in the form of the view.
func (v *View) blueprint() ([]byte, error) {
	l, s := v.emptyList(), v.answers.Forms.Streamer(v.as.Type)
	l.NoItems = !l.Custom
	out, err := s.AppendListHead(nil, l)
	if err != nil {
		return nil, err
	}
	out = s.AppendListTail(out, l)
	if v.as.Type == codecs.JSON {
		out = append(out, '\n')
	}
	return out, nil
}

// asIs is the schema of objects that are made in the version they are shown in.
type asIs struct{}

func (asIs) Coerce(kinds.Object) ([]string, error) { return nil, nil }
func (asIs) Clean(int64) bool                      { return true }
func (asIs) Asks() bool                            { return false }
func (asIs) FromStore(_ context.Context, objs ...kinds.Object) ([]kinds.Object, error) {
	return objs, nil
}
func (asIs) ToStore(_ context.Context, obj kinds.Object) (kinds.Object, error) { return obj, nil }
