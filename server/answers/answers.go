package answers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

// Items tells what stored objects look like in a version; objects.Store implements it.
type Items interface {
	// JSON is an item in the version of r. The bytes are shared.
	JSON(ctx context.Context, r *kinds.Resource, it *cache.Item) ([]byte, error)
	// Convert makes what JSON gives of many items of a custom resource at once.
	Convert(ctx context.Context, r *kinds.Resource, items []*cache.Item) error
	// DecodeForColumns decodes an item in the version that the columns of r are made from.
	DecodeForColumns(ctx context.Context, r *kinds.Resource, it *cache.Item) (kinds.Object, error)
}

// Answers writes answers. Its fields are set once, before the first request.
type Answers struct {
	Items  Items
	Forms  forms.Forms      // what is served
	Packed *packed.Store    // compressed pieces of lists; nil: none are kept
	Line   *Line            // puts long answers in order; nil: nobody waits
	Clock  func() time.Time // nil: time.Now
	Log    *slog.Logger     // nil: slog.Default

	Compress    bool // large answers, for clients that take it: the gate APIResponseCompression
	NameCorrupt bool // objects that cannot be read are named, in a list all of them: the gate AllowUnsafeMalformedObjectDeletion
}

// Request is what an answer depends on of its request, and where it goes.
type Request struct {
	W        http.ResponseWriter
	R        *http.Request
	Scope    *request.Scope
	Resource *kinds.Resource
	Sub      *kinds.Subresource // nil for the object itself

	// Release gives back what the body of the request took of memory; nil for nothing. It
	// is called once the answer has been made: a client may take its time to read it.
	Release func()

	ctx context.Context // made when first asked for
}

// Context is the request's context, with what strategies may ask of it.
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

// User is whose turn the request takes.
func (q *Request) User() string {
	if q.Scope.User == nil {
		return ""
	}
	return q.Scope.User.Name
}

// goType is what a stock server calls the type of an object or of a list in a refusal.
func (q *Request) goType(list bool) string {
	return codecs.GoType(q.Resource.GVK(), !q.Resource.HasGoType(), list)
}

// include is what a table is to have of each object.
func (q *Request) include() (table.Include, error) {
	return table.ParseInclude(q.Scope.Info.Query.Get("includeObject"))
}

// Item answers with a stored object.
func (a *Answers) Item(q *Request, as codecs.Form, code int, it *cache.Item) error {
	if as.Type == codecs.JSON && as.As.Kind == "" && !as.Pretty && it.Corrupt == nil && objects.Clean(q.Resource, it) {
		return a.write(q, as.Type, code, it.Line())
	}
	v, err := a.View(q, as)
	if err != nil {
		return err
	}
	if as.IsPartialList() {
		return codecs.NotAcceptableTransform(as.As, false, q.goType(false))
	}
	data, err := v.form.Object(nil, it)
	if err != nil {
		return err
	}
	if as.IsTable() {
		a.streamBytes(q, as, code, data) // as a table of many rows, of which nobody knows the length
		return nil
	}
	return a.body(q, as, code, data)
}

// Page answers with the items of a page.
func (a *Answers) Page(q *Request, as codecs.Form, p *objects.Page) error {
	if err := objects.CorruptList(q.Resource, p.Items, a.NameCorrupt); err != nil {
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
		return codecs.NotAcceptableTransform(as.As, true, q.goType(true))
	}
	return a.list(q, v, p)
}

// Fail answers with an error. What is unknown is logged, and not told.
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

func (a *Answers) log() *slog.Logger {
	if a.Log == nil {
		return slog.Default()
	}
	return a.Log
}
