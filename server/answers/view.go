package answers

import (
	"context"
	"errors"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// ErrNoList is that of an event where lists were asked for: an event is of one object.
// Who watches so is accepted, and cut off at the first event.
var ErrNoList = errors.New("an event is no list")

// View is how one request sees items: in a served version and a wire form. It is for one
// goroutine at a time.
type View struct {
	answers *Answers
	ctx     context.Context // of the request that is shown something: conversions end with it
	r       *kinds.Resource
	as      codecs.Form // what was negotiated
	include table.Include
	form    Form
	pace    Pace         // that of the answer, where it is a list
	around  *codecs.List // what list made of the page that is shown; nil until it is asked
}

// View is how a request sees items in the form that was negotiated for it. The error is
// that of parameters that say what a table has in it.
func (a *Answers) View(q *Request, as codecs.Form) (*View, error) {
	v := &View{answers: a, ctx: q.Context(), r: q.Resource, as: as}
	if as.IsTable() {
		var err error
		if v.include, err = q.include(); err != nil {
			return nil, err
		}
	}
	v.form = formOf(v)
	return v, nil
}

// of is the view of another resource's items in the same form.
func (v *View) of(r *kinds.Resource) *View {
	out := &View{answers: v.answers, ctx: v.ctx, r: r, as: v.as, include: v.include}
	out.form = formOf(out)
	return out
}

// Key tells apart views that show the same event differently. It is comparable, and does
// not keep the view.
type Key struct {
	r       *kinds.Resource
	as      codecs.Form
	include table.Include
	first   bool
	turn    uint8 // of CBOR
}

// turns is how many frames of one event in CBOR there are at most: views that ask alike
// share them by chance, so that two watches need not see the same bytes (docs/design/openapi.md).
const turns = 4

// Key is the key of the view's events. first is that of Event: tables begin with the
// definitions of their columns, and other forms are the same all along.
func (v *View) Key(first bool) Key {
	key := Key{r: v.r, as: v.as, include: v.include, first: first && v.as.IsTable()}
	if v.as.Type == codecs.CBOR {
		key.turn = uint8(rand.N(turns))
	}
	return key
}

// Negotiated is the form that was negotiated.
func (v *View) Negotiated() codecs.Form { return v.as }

// Event is a frame of a watch, in bytes of its own. first says that the watch has sent
// none yet.
func (v *View) Event(eventType string, it *cache.Item, first bool) ([]byte, error) {
	if v.as.IsPartialList() {
		return nil, ErrNoList
	}
	return v.form.Event(nil, eventType, it, first)
}

// Error is the frame that ends a watch which has failed.
func (v *View) Error(st *metav1.Status) ([]byte, error) { return v.form.Error(nil, st) }

// json is an item as JSON in the served version. The bytes are shared.
func (v *View) json(it *cache.Item) ([]byte, error) {
	return v.answers.Items.JSON(v.ctx, v.r, it)
}

// typeMeta is the API version and kind of what is shown of one object.
func (v *View) typeMeta() (apiVersion, kind string) {
	if v.metadataOnly() {
		return v.metadataTypeMeta("")
	}
	return v.r.APIVersion(), v.r.Kind
}

// list is what surrounds the items of the page that is shown. Forms fill in what only they
// know.
func (v *View) list(p *objects.Page) *codecs.List {
	if v.around == nil {
		v.around = v.emptyList()
		v.around.Meta, v.around.Count = p.Meta(), len(p.Items)
	}
	return v.around
}

// emptyList is what surrounds the items of a list without metadata.
func (v *View) emptyList() *codecs.List {
	if v.metadataOnly() {
		apiVersion, kind := v.metadataTypeMeta("List")
		return &codecs.List{APIVersion: apiVersion, Kind: kind}
	}
	return &codecs.List{APIVersion: v.r.APIVersion(), Kind: v.r.ListKind, Custom: v.r.AsMaps()}
}
