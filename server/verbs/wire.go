package verbs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// codec finds the wire form of a media type.
func codec(mediaType string) codecs.Codec {
	switch mediaType {
	case codecs.YAML:
		return yaml.Codec{}
	case codecs.Protobuf:
		return protobuf.Codec{}
	case codecs.CBOR:
		return cbor.Codec{}
	}
	return jsoncodec.Codec{}
}

// offer is what the resource of a call can be answered as.
func (h *Handler) offer(c *Call) codecs.Offer {
	o := codecs.Offer{Types: codecs.Types(h.cbor()), Transforms: codecs.ResourceTransforms}
	if c.virtual() || c.Sub != nil && c.Sub.NoTable {
		o.Transforms = codecs.PartialTransforms
	}
	if c.Resource.Custom && (c.Sub == nil || c.Sub.Update != nil) {
		o.Plain = codecs.CustomTypes(h.cbor())
	}
	return o
}

// negotiate finds the form of a call's answer.
func (h *Handler) negotiate(c *Call) (codecs.Form, error) {
	o := h.offer(c)
	if !c.Resource.Custom {
		if err := codecs.Acceptable(c.R, o.Types); err != nil {
			return codecs.Form{}, err
		}
	}
	return codecs.Negotiate(c.R, o)
}

// Body reads the whole body of a request, within its limit.
func (h *Handler) Body(c *Call) ([]byte, error) {
	limit := h.MaxBody
	if limit == 0 {
		limit = 3 << 20
	}
	if c.R.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	body, err := readAll(http.MaxBytesReader(c.W, c.R.Body, limit), c.R.ContentLength)
	return body, unread(err)
}

// unread is what a client is told of a body that it did not send as it had said.
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

// ReadPost reads a POST for a Special: its body into obj, a new object of kind gvk, and its options. It
// warns of or refuses unknown and duplicate fields, and whatever the answer cannot be
// given in.
func (h *Handler) ReadPost(c *Call, gvk schema.GroupVersionKind, obj runtime.Object) (*metav1.CreateOptions, error) {
	if _, err := h.negotiate(c); err != nil {
		return nil, err
	}
	return h.readCreate(c, gvk, obj)
}

// readCreate looks at what a POST consists of, in the order in which a stock server
// finds fault with it.
func (h *Handler) readCreate(c *Call, gvk schema.GroupVersionKind, obj runtime.Object) (*metav1.CreateOptions, error) {
	from, err := h.bodyCodec(c)
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
	return options, h.decode(c, from, body, gvk, obj, strictness(options.FieldValidation))
}

// readUpdate reads what a PUT consists of, in the order in which a stock server finds
// fault with it, which is another one than that of a POST.
func (h *Handler) readUpdate(c *Call) (codecs.Codec, []byte, *metav1.UpdateOptions, error) {
	body, err := h.Body(c)
	if err != nil {
		return nil, nil, nil, err
	}
	options, err := updateOptions(c)
	if err != nil {
		return nil, nil, nil, err
	}
	from, err := h.bodyCodec(c)
	return from, body, options, err
}

// bodyCodec is the form that a body which holds an object says it is in.
func (h *Handler) bodyCodec(c *Call) (codecs.Codec, error) {
	types := codecs.Types(h.cbor())
	if c.Resource.Custom && (c.Sub == nil || c.Sub.Update != nil) {
		types = codecs.CustomTypes(h.cbor())
	}
	mediaType, err := codecs.BodyType(c.R.Header.Get("Content-Type"), types)
	return codec(mediaType), err
}

func (h *Handler) decode(c *Call, from codecs.Codec, body []byte, gvk schema.GroupVersionKind, obj runtime.Object, s codecs.Strictness) error {
	anyKind := c.Resource.Custom && gvk == c.Resource.GVK()
	if anyKind {
		from = coerced(from, c.Resource)
	}
	want := codecs.Expected{
		GVK: gvk, AnyKind: anyKind, Known: h.known,
		Weighed: func(weight int64) error { return h.hold(c, weight) },
	}
	_, problems, err := codecs.ReadBody(from, body, want, obj, s)
	if err != nil {
		return err
	}
	h.warn(c, problems)
	if a := c.Scope.Audit; a != nil {
		a.RequestObject(obj)
	}
	return nil
}

// known says whether the server has a type for a kind, of whatever use, and makes an
// object of it if that is one that is stored.
func (h *Handler) known(k schema.GroupVersionKind) (runtime.Object, bool) {
	if r := h.Catalogue.LookupKind(k); r != nil && r.New != nil && !r.Custom {
		return r.New(), true
	}
	return nil, h.knows(k)
}

func (h *Handler) knows(k schema.GroupVersionKind) bool {
	if h.Catalogue.LookupKind(k) != nil || kinds.Retired(k) {
		return true
	}
	if single, ok := strings.CutSuffix(k.Kind, "List"); ok {
		if k.Group == "" && k.Version == "v1" && single == "" {
			return true
		}
		return h.Catalogue.LookupKind(k.GroupVersion().WithKind(single)) != nil
	}
	switch k.Kind {
	case "Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList":
		return k.Group == "" && k.Version == "v1"
	case "WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions":
		return slices.Contains(h.Catalogue.Versions(k.Group), k.Version)
	}
	return false
}

// warn turns problems of decoding into Warning headers.
func (h *Handler) warn(c *Call, problems []string) {
	if len(problems) == 0 {
		return
	}
	for _, w := range codecs.Warnings(problems) {
		c.Scope.Warn(w)
	}
}

// Send answers with an object that is no stored item.
func (h *Handler) Send(c *Call, code int, obj runtime.Object) error {
	form, err := h.negotiate(c)
	if err != nil {
		return err
	}
	if obj, err = metadataOf(c, form, obj); err != nil {
		return err
	}
	return h.send(c, form, code, obj)
}

func (h *Handler) send(c *Call, form codecs.Form, code int, obj runtime.Object) error {
	if st, ok := obj.(*metav1.Status); ok && c.Scope.Audit != nil {
		c.Scope.Audit.ResponseStatus(st)
	}
	data, err := codec(form.Type).Encode(nil, obj)
	if err != nil {
		return err
	}
	switch {
	case form.Type == codecs.JSON && form.Pretty:
		return h.view(c.Context(), c.Resource, form).sendStream(c, code, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	case form.Type == codecs.JSON:
		data = append(data, '\n')
	}
	return h.writeBody(c, form.Type, code, data)
}

// fail answers with an error.
func (h *Handler) fail(c *Call, err error) {
	c.done()
	gr := schema.GroupResource{}
	if c.Resource != nil {
		gr = c.Resource.GroupResource()
	}
	st, unknown := status.Of(err, gr)
	if unknown {
		h.log().Error("request failed", "method", c.R.Method, "path", c.R.URL.Path, "audit-id", c.Scope.ID, "error", err)
	}
	status.Write(c.W, c.R, st, codecs.Types(h.cbor()))
}

func badRequest(err error) error { return apierrors.NewBadRequest(err.Error()) }
