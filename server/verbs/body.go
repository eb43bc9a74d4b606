package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/writes"
)

// Body reads the whole body of a request, within its limit.
func (h *Handler) Body(c *Call) ([]byte, error) {
	limit := cmp.Or(h.MaxBody, budget.DefaultBody)
	if c.R.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if came, ok := c.R.Body.(arrived); ok {
		if body, ok := came.Whole(limit); ok {
			return body, nil
		}
	}
	body, err := readAll(http.MaxBytesReader(c.W, c.R.Body, limit), c.R.ContentLength)
	return body, unread(err)
}

// arrived is a body that is in memory and needs no copy: package h2 waits for short ones before it calls handlers.
type arrived interface {
	Whole(limit int64) (body []byte, ok bool)
}

// unread returns the error for a body that the client did not send as announced.
func unread(err error) error {
	var tooLarge *http.MaxBytesError
	if err == nil || errors.As(err, &tooLarge) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return status.Plain(err.Error())
}

// readAll reads a body of n bytes, or of unknown length.
func readAll(body io.Reader, n int64) ([]byte, error) {
	if n <= 0 {
		return io.ReadAll(body)
	}
	buf := make([]byte, n)
	_, err := io.ReadFull(body, buf)
	return buf, err
}

// ReadPost reads a POST for a Special: its body into obj, a new object of kind gvk, and its options. It warns of or refuses
// unknown and duplicate fields, and refuses forms that the answer cannot have. fill sets the defaults of an object of another
// kind than the resource of the request.
func (h *Handler) ReadPost(c *Call, gvk schema.GroupVersionKind, obj runtime.Object, fill ...func()) (*metav1.CreateOptions, error) {
	if _, err := h.Answers.Negotiate(&c.Request); err != nil {
		return nil, err
	}
	return h.readCreate(c, gvk, obj, fill...)
}

// readCreate reads the parts of a POST, and reports errors in the order of a stock server.
func (h *Handler) readCreate(c *Call, gvk schema.GroupVersionKind, obj runtime.Object, fill ...func()) (*metav1.CreateOptions, error) {
	from, err := h.Answers.BodyCodec(&c.Request)
	if err != nil {
		return nil, err
	}
	body, err := h.Body(c)
	if err != nil {
		return nil, err
	}
	options, err := createOptions(c)
	if err != nil {
		return nil, err
	}
	return options, h.decode(c, from, body, gvk, obj, strictness(options.FieldValidation), fill...)
}

// readUpdate reads the parts of a PUT, and reports errors in the order of a stock server, which differs from that of a POST.
func (h *Handler) readUpdate(c *Call) (codecs.Codec, []byte, *metav1.UpdateOptions, error) {
	body, err := h.Body(c)
	if err != nil {
		return nil, nil, nil, err
	}
	options, err := updateOptions(c)
	if err != nil {
		return nil, nil, nil, err
	}
	from, err := h.Answers.BodyCodec(&c.Request)
	return from, body, options, err
}

func (h *Handler) decode(c *Call, from codecs.Codec, body []byte, gvk schema.GroupVersionKind, obj runtime.Object, s codecs.Strictness, fill ...func()) error {
	anyKind := c.Resource.AnyBody() && gvk == c.Resource.GVK()
	if anyKind {
		from = coerced(from, c.Resource)
	}
	want := codecs.Expected{
		GVK: gvk, AnyKind: anyKind, Known: h.known,
		Weighed: func(weight int64) error { return h.hold(c, h.admissionWeight(c, body, weight)) },
	}
	_, problems, err := codecs.ReadBody(from, body, want, obj, s)
	if err == nil || s != codecs.Strict {
		for _, text := range codecs.Warnings(problems) {
			c.Scope.Warn(text)
		}
	}
	if err != nil {
		return err
	}
	for _, fill := range fill {
		fill()
	}
	if a := c.Scope.Audit; a != nil && c.Info.Verb != "patch" { // whose event has the patch
		a.RequestObject(recorded(c, gvk, obj))
	}
	return nil
}

// recorded returns the object of a client for the audit event: with its defaults, in the version of the request. It is made only if
// the event has it.
func recorded(c *Call, gvk schema.GroupVersionKind, obj runtime.Object) runtime.Object {
	sent, ok := obj.(kinds.Object)
	if !ok || !c.Scope.Audit.WantsRequest() || gvk != c.Resource.GVK() || c.Resource.Storage == nil || c.Resource.Storage.Default == nil {
		return obj
	}
	full, err := writes.Incoming(c.Resource, sent.DeepCopyObject().(kinds.Object))
	if err != nil {
		return obj // the write will fail too
	}
	if full, err = c.Resource.ToServed(full); err != nil {
		return obj
	}
	full.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return full
}

// Send answers with an object that is not stored.
func (h *Handler) Send(c *Call, code int, obj runtime.Object) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	return h.Answers.Object(&c.Request, form, code, obj)
}

// coercing is a codec that drops unknown fields from objects of a custom resource, and reports them.
type coercing struct {
	codecs.Codec
	r *kinds.Resource
}

// coerced returns the codec for bodies of objects of r.
func coerced(from codecs.Codec, r *kinds.Resource) codecs.Codec {
	if r.HasGoType() {
		return from
	}
	return coercing{from, r}
}

// Settle implements the interface of package apply for merge patches.
func (c coercing) Settle(obj runtime.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || !c.r.Settled(u) {
		return false
	}
	unknown, err := c.r.Coerce(u)
	return err == nil && len(unknown) == 0
}

// Decode implements codecs.Codec.
func (c coercing) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	problems, err := c.Codec.Decode(data, obj, s)
	u, ok := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u.GetKind() == "" {
		return problems, err
	}
	unknown, err := c.r.Coerce(u)
	if err != nil || s == codecs.Ignore {
		return problems, err
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	return problems, nil
}
