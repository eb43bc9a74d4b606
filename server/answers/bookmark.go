package answers

import (
	"encoding/base64"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// Annotations of the bookmark that ends the initial events.
const (
	initialEventsEnd = metav1.InitialEventsAnnotationKey
	blueprintKey     = "kubernetes.io/initial-events-list-blueprint"
)

// Bookmark returns the frame of a bookmark: an empty object of the kind at a revision. The one that ends the
// initial events is marked. first is as in Event.
func (v *View) Bookmark(revision int64, end, first bool) ([]byte, error) {
	var annotations map[string]string
	if end {
		annotations = map[string]string{initialEventsEnd: "true"}
	}
	if end && !v.answers.NoBlueprints {
		blueprint, err := v.blueprint()
		if err != nil {
			return nil, err
		}
		annotations[blueprintKey] = base64.StdEncoding.EncodeToString(blueprint)
	}
	value, err := v.answers.Forms.JSON.Append(nil, v.r.Blank(annotations))
	if err != nil {
		return nil, err
	}
	it := cache.NewOwnItem(&sqlstore.Row{Revision: revision, Value: value}, nil)
	return v.of(v.r.AsServed()).Event("BOOKMARK", it, first)
}

// blueprint returns a list of the kind without items or metadata, in the form of the view.
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
