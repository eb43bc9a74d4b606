package answers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

// Items returns stored objects in served versions; objects.Store implements it.
type Items interface {
	// JSON is an item in the version of r. The bytes are shared.
	JSON(ctx context.Context, r *kinds.Resource, it *cache.Item) ([]byte, error)
	// Convert prepares JSON for many items of a custom resource at once.
	Convert(ctx context.Context, r *kinds.Resource, items []*cache.Item) error
	// DecodeForColumns decodes an item in the version from which the columns of r are computed.
	DecodeForColumns(ctx context.Context, r *kinds.Resource, it *cache.Item) (kinds.Object, error)
}

// Answers writes answers. Its fields are set once, before the first request.
type Answers struct {
	Items  Items
	Forms  forms.Forms      // the served forms
	Packed *packed.Store    // compressed pieces of lists; nil: none are cached
	Turns  *TurnScheduler   // orders long answers; nil: none wait
	Large  *fair.Gate       // limits answers with large objects (NewMemoryGate); nil: no limit
	Clock  func() time.Time // nil: time.Now
	Log    *slog.Logger     // nil: slog.Default

	// NoBlueprints omits the empty list from the bookmark that ends the initial events of a watch, so that
	// watches may be of tables.
	NoBlueprints bool

	Compress    bool // compress large answers if the client accepts that: the gate APIResponseCompression
	NameCorrupt bool // name unreadable objects, in a list all of them: the gate AllowUnsafeMalformedObjectDeletion
}

// Request holds the parts of a request on which the answer depends, and its writer.
type Request struct {
	W        http.ResponseWriter
	R        *http.Request
	Scope    *request.Scope
	Resource *kinds.Resource
	Sub      *kinds.Subresource // nil for the object itself

	// Release releases the memory of the request's body; it may be nil. It is called once the answer has been
	// made, because the client may read slowly.
	Release func()

	ctx   context.Context   // made when first needed
	room  *fair.Place       // for large objects; nil: none
	large int64             // bytes of them
	taken *slowClientWriter // W, once it counts
}

// Context returns the request's context, with the values that strategies need.
func (q *Request) Context() context.Context {
	if q.ctx == nil {
		q.ctx = kinds.WithRequested(q.R.Context(), q.Resource)
	}
	return q.ctx
}

// Done calls Release, once.
func (q *Request) Done() {
	if q.Release != nil {
		q.Release()
	}
	q.Release = nil
}

// User returns the user whose turn the request takes.
func (q *Request) User() string {
	if q.Scope.User == nil {
		return ""
	}
	return q.Scope.User.Name
}

// Written answers with the result of a write: the object that it stored or, in a dry run, would have stored; or without one the
// object that an update deleted by removing its last finalizer.
func (a *Answers) Written(q *Request, as codecs.Form, code int, stored *cache.Item, ended kinds.Object) error {
	if stored == nil {
		return a.Ended(q, as, code, ended)
	}
	return a.Item(q, as, code, stored)
}

// Item answers with a stored object.
func (a *Answers) Item(q *Request, as codecs.Form, code int, it *cache.Item) error {
	if err := a.ReserveMemory(q, as, it); err != nil {
		return err
	}
	if q.asStored(as, it) {
		return a.write(q, as.Type, code, it.Line())
	}
	v, err := a.View(q, as)
	if err != nil {
		return err
	}
	if as.IsPartialList() {
		return codecs.NotAcceptableTransform(as.As, false, codecs.GoType(q.Resource.GVK(), !q.Resource.HasGoType(), false))
	}
	data, err := v.form.Object(nil, it)
	if err != nil {
		return err
	}
	if as.IsTable() {
		a.streamBytes(q, as, code, data) // such as a table of many rows, whose length is unknown
		return nil
	}
	return a.body(q, as, code, data)
}

// Page answers with the items of a page.
func (a *Answers) Page(q *Request, as codecs.Form, p *objects.Page) error {
	if err := objects.CorruptList(q.Resource, p.Items, a.NameCorrupt); err != nil {
		return err
	}
	if a.Large != nil {
		q.count() // large objects may come after other parts of the page
		p.OnContention(q.taken.endIfSlow)
	}
	if err := a.ReserveMemory(q, as, p.Items...); err != nil {
		return err
	}
	if err := a.Items.Convert(q.R.Context(), q.Resource, p.Items); err != nil {
		return err
	}
	v, err := a.View(q, as)
	if err != nil {
		return err
	}
	if as.IsPartial() {
		return codecs.NotAcceptableTransform(as.As, true, codecs.GoType(q.Resource.GVK(), !q.Resource.HasGoType(), true))
	}
	return a.list(q, v, p)
}

// Fail answers with an error. It logs an unknown error and does not show it to the client.
func (a *Answers) Fail(q *Request, err error) {
	q.Done()
	gr := schema.GroupResource{}
	if q.Resource != nil {
		gr = q.Resource.GroupResource()
	}
	var unread *objects.Unreadable
	if !a.NameCorrupt && errors.As(err, &unread) {
		err = unread.Plain()
	}
	st, unknown := status.Of(err, gr)
	if unknown {
		a.log().Error("request failed", "method", q.R.Method, "path", q.R.URL.Path, "audit-id", q.Scope.ID, "error", err)
	}
	status.Write(q.W, q.R, st, a.Forms)
}

func (a *Answers) now() time.Time {
	if a.Clock == nil {
		return time.Now()
	}
	return a.Clock()
}

func (a *Answers) log() *slog.Logger { return cmp.Or(a.Log, slog.Default()) }

// virtual reports whether the objects of a request are never stored, and so have no columns: reviews,
// bindings, tokens.
func (q *Request) virtual() bool {
	if q.Sub != nil {
		return q.Sub.Update == nil && q.Sub.Scale == nil
	}
	return q.Resource.Storage == nil && !slices.Contains(q.Resource.Verbs, "list")
}

// offer returns the forms of an answer that the resource of a request can have.
func (a *Answers) offer(q *Request) codecs.Offer {
	o := codecs.Offer{Types: a.Forms.Types(), Transforms: codecs.ResourceTransforms}
	if q.virtual() || q.Sub != nil && q.Sub.NoTable {
		o.Transforms = codecs.PartialTransforms
	}
	if !q.Resource.Protobuf(q.Sub) {
		o.Plain = a.Forms.CustomTypes()
	}
	return o
}

// BodyCodec returns the codec of the Content-Type of a body with an object.
func (a *Answers) BodyCodec(q *Request) (codecs.Codec, error) {
	types := a.Forms.Types()
	if !q.Resource.Protobuf(q.Sub) {
		types = a.Forms.CustomTypes()
	}
	mediaType, err := codecs.BodyType(q.R.Header.Get("Content-Type"), types)
	return a.Forms.Codec(mediaType), err
}

// Negotiate finds the form of the answer to a request.
func (a *Answers) Negotiate(q *Request) (codecs.Form, error) {
	o := a.offer(q)
	if q.Resource.NegotiatesFirst() {
		if err := codecs.Acceptable(q.R, o.Types); err != nil {
			return codecs.Form{}, err
		}
	}
	return codecs.Negotiate(q.R, o)
}

// NegotiateList finds the form of a list. invalid is the error of the parameters, or nil: for built-in kinds,
// a media type that the server does not have takes precedence over it; other errors of the negotiation do
// not.
func (a *Answers) NegotiateList(q *Request, invalid error) (codecs.Form, error) {
	return negotiateList(q, a.Forms.ListTypes(), a.offer(q), invalid, codecs.Negotiate)
}

// NegotiateWatch is NegotiateList for a watch. A watch that marks the end of its initial events cannot be of
// tables.
func (a *Answers) NegotiateWatch(q *Request, tables bool, invalid error) (codecs.Form, error) {
	o := a.offer(q)
	if !tables {
		o.Transforms = codecs.PartialTransforms
	}
	return negotiateList(q, a.Forms.ListTypes(), o, invalid, codecs.NegotiateWatch)
}

func negotiateList(q *Request, types []string, o codecs.Offer, invalid error, negotiate func(*http.Request, codecs.Offer) (codecs.Form, error)) (codecs.Form, error) {
	if q.Resource.NegotiatesFirst() {
		if err := codecs.Acceptable(q.R, types); err != nil {
			return codecs.Form{}, err
		}
	}
	if invalid != nil {
		return codecs.Form{}, invalid
	}
	return negotiate(q.R, o)
}

// ErrNoList is the error of an event if the client negotiated lists: an event has one object. The server
// accepts such a watch, and ends it at the first event.
var ErrNoList = errors.New("an event is no list")

// View shows items to one request: in a served version and a wire form. It is for one goroutine at a time.
type View struct {
	answers *Answers
	ctx     context.Context // of the request; conversions end with it
	r       *kinds.Resource
	as      codecs.Form // the negotiated form
	include table.Include
	form    Form
	turn    Turn         // of a list
	around  *codecs.List // the result of list for the present page; nil until list is called
}

// View returns the view of a request in its negotiated form. The error is that of the parameters of tables.
func (a *Answers) View(q *Request, as codecs.Form) (*View, error) {
	v := &View{answers: a, ctx: q.Context(), r: q.Resource, as: as}
	if as.IsTable() {
		var err error
		if v.include, err = table.ParseInclude(q.Scope.Info.Query.Get("includeObject")); err != nil {
			return nil, err
		}
	}
	v.form = formOf(v)
	return v, nil
}

// of returns the view of another resource's items in the same form.
func (v *View) of(r *kinds.Resource) *View {
	out := &View{answers: v.answers, ctx: v.ctx, r: r, as: v.as, include: v.include}
	out.form = formOf(out)
	return out
}

// Key distinguishes views that encode the same event differently. It is comparable, and does not keep the
// view in memory.
type Key struct {
	r       *kinds.Resource
	as      codecs.Form
	include table.Include
	first   bool
	variant uint8 // of CBOR
}

// cborVariants is the maximum number of frames for one event in CBOR: equal views share them by chance, so two
// watches need not get the same bytes (docs/design/openapi.md).
const cborVariants = 4

// Key returns the key of the view's events. first is as in Event: a first table includes the definitions of its
// columns; other forms do not differ.
func (v *View) Key(first bool) Key {
	key := Key{r: v.r, as: v.as, include: v.include, first: first && v.as.IsTable()}
	if v.as.Type == codecs.CBOR {
		key.variant = uint8(rand.N(cborVariants))
	}
	return key
}

// Negotiated returns the negotiated form.
func (v *View) Negotiated() codecs.Form { return v.as }

// Event returns a frame of a watch, in memory of its own. first means that the watch has sent none yet.
func (v *View) Event(eventType string, it *cache.Item, first bool) ([]byte, error) {
	if v.as.IsPartialList() {
		return nil, ErrNoList
	}
	return v.form.Event(nil, eventType, it, first)
}

// EventParts returns the parts of the result of Event, without a copy of the object, if the cache has the bytes of the object as they are.
func (v *View) EventParts(eventType string, it *cache.Item) (before, object, behind []byte, ok bool) {
	f, whole := v.form.(jsonForm)
	if !whole || v.as.IsPartialList() || !f.stored(it) {
		return nil, nil, nil, false
	}
	if object, ok = it.Unpacked(); ok {
		before, behind = f.codec().AroundEvent(eventType)
	}
	return before, object, behind, ok
}

// Error returns the frame that ends a failed watch.
func (v *View) Error(st *metav1.Status) ([]byte, error) {
	return codecs.AppendError(nil, v.answers.Forms.Streamer(v.as.Type), st)
}

// codec returns the codec of objects as JSON.
func (v *View) codec() jsoncodec.Codec { return v.answers.Forms.JSON }

// json returns an item as JSON in the served version. The bytes are shared.
func (v *View) json(it *cache.Item) ([]byte, error) {
	return v.answers.Items.JSON(v.ctx, v.r, it)
}

// typeMeta returns the API version and kind of an object in the form of the view.
func (v *View) typeMeta() (apiVersion, kind string) {
	if v.metadataOnly() {
		return v.metadataTypeMeta("")
	}
	return v.r.APIVersion(), v.r.Kind
}

// list returns the list around the items of a page, without them. Forms add the fields that only they know.
func (v *View) list(p *objects.Page) *codecs.List {
	if v.around == nil {
		v.around = v.emptyList()
		v.around.Meta, v.around.Count = p.Meta(), len(p.Items)
		if p.Shard != "" && !v.metadataOnly() && !v.r.AsMaps() {
			v.around.Meta.ShardInfo = &metav1.ShardInfo{Selector: p.Shard}
		}
	}
	return v.around
}

// emptyList returns that list without metadata.
func (v *View) emptyList() *codecs.List {
	if v.metadataOnly() {
		apiVersion, kind := v.metadataTypeMeta("List")
		return &codecs.List{APIVersion: apiVersion, Kind: kind}
	}
	return &codecs.List{APIVersion: v.r.APIVersion(), Kind: v.r.ListKind, Custom: v.r.AsMaps()}
}
