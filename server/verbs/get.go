package verbs

import (
	"io"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// get answers with one object.
func (h *Handler) get(c *Call) error {
	form, err := h.negotiate(c)
	if err != nil {
		return err
	}
	q := c.Info.Query
	if err := noExport(q); err != nil {
		return err
	}
	version := ""
	if v := q["resourceVersion"]; len(v) > 0 {
		version = v[0]
	}
	it, err := h.Objects.Read(c.R.Context(), c.Scope.Permit, c.place(c.Info.Name), version)
	if err != nil {
		return err
	}
	return h.sendItem(c, form, http.StatusOK, it)
}

// noExport refuses a parameter that is long gone, but was once relied upon.
func noExport(q url.Values) error {
	if b := boolParam(q, "export"); b != nil && *b {
		return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return nil
}

// sendItem answers with a stored object.
func (h *Handler) sendItem(c *Call, form codecs.Form, code int, it *cache.Item) error {
	if form.Type == codecs.JSON && form.As.Kind == "" && !form.Pretty && it.Corrupt == nil && objects.Clean(c.Resource, it) {
		return h.writeBody(c, form.Type, code, it.Line())
	}
	v := h.view(c.Context(), c.Resource, form)
	if form.IsTable() {
		return v.sendTable(c, code, &objects.Page{Revision: it.Revision, Items: []*cache.Item{it}, Remaining: -1})
	}
	data, err := v.object(it)
	if err != nil {
		return err
	}
	switch {
	case form.Type == codecs.JSON && form.Pretty:
		return v.sendStream(c, code, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	case form.Type == codecs.JSON:
		data = append(data[:len(data):len(data)], '\n')
	}
	return h.writeBody(c, form.Type, code, data)
}

// writeBody puts a whole body on the wire, compressed if it is large and the client
// can read that.
func (h *Handler) writeBody(c *Call, mediaType string, code int, data []byte) error {
	c.done()
	header := c.W.Header()
	header.Set("Content-Type", mediaType)
	if len(data) > framing.CompressFrom && h.compresses() && framing.AcceptsGzip(c.R) {
		body := framing.NewBody(c.W, c.R, code, true)
		_, _ = body.Write(data)
		_ = body.Close()
		return nil
	}
	header.Set("Content-Length", strconv.Itoa(len(data)))
	c.W.WriteHeader(code)
	_, _ = c.W.Write(data) // an error means that the client has gone
	return nil
}

func (h *Handler) compresses() bool { return h.Enabled("APIResponseCompression") }
