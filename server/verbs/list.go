package verbs

import (
	"io"
	"net/http"
	"strconv"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/objects"
)

// list answers with a collection, or a page of it.
func (h *Handler) list(c *Call) error {
	if !c.Resource.Custom {
		if err := codecs.Acceptable(c.R, codecs.ListTypes(h.cbor())); err != nil {
			return err
		}
	}
	o, err := parseList(c, false)
	if err != nil {
		return err
	}
	form, err := codecs.Negotiate(c.R, h.offer(c))
	if err != nil {
		return err
	}
	if err := readSelectors(c, o); err != nil {
		return err
	}
	p, err := h.Objects.List(c.Context(), c.Permit(), c.Resource, o)
	if err != nil {
		return err
	}
	return h.sendPage(c, form, p)
}

// sendPage answers with the items of a page.
func (h *Handler) sendPage(c *Call, form codecs.Form, p *objects.Page) error {
	v := h.view(c.Context(), c.Resource, form)
	if err := v.corruptList(p.Items); err != nil {
		return err
	}
	if err := h.Objects.Convert(c.R.Context(), c.Resource, p.Items); err != nil {
		return err
	}
	switch {
	case form.IsTable():
		return v.sendTable(c, http.StatusOK, p)
	case form.IsPartial():
		return codecs.NotAcceptableTransform(form.As, true, codecs.GoType(c.Resource.GVK(), c.Resource.Custom, true))
	case form.Type == codecs.Protobuf:
		size, err := v.sizeProtobuf(p) // nothing can fail once the answer has begun
		if err != nil {
			return err
		}
		if !v.partial() && v.packs(c, p, size) {
			return v.packProtobuf(c, p, size)
		}
		return v.sendStream(c, http.StatusOK, func(w io.Writer) error { return v.streamProtobuf(w, c.W.Header(), p) })
	case form.Type == codecs.CBOR:
		return v.sendCBOR(c, p)
	}
	if v.lead != nil {
		if err := v.converted(p); err != nil {
			return err
		}
	}
	if v.form.Type == codecs.YAML {
		return v.sendYAML(c, http.StatusOK, p)
	}
	n := v.sizeJSON(p)
	if v.packs(c, p, n) {
		v.packJSON(c, p)
		return nil
	}
	if n >= 0 {
		c.W.Header().Set("Content-Length", strconv.Itoa(n))
	}
	return v.sendStream(c, http.StatusOK, func(w io.Writer) error { return v.streamJSON(w, p) })
}

// converted makes the served version of every item, so that nothing can fail once
// the answer has begun.
func (v *view) converted(p *objects.Page) error {
	for _, it := range p.Items {
		if _, err := v.json(it); err != nil {
			return err
		}
	}
	return nil
}

// sendStream answers with what stream writes, indented where that is asked for.
func (v *view) sendStream(c *Call, code int, stream func(io.Writer) error) error {
	c.done()
	c.W.Header().Set("Content-Type", v.form.Type)
	body := framing.NewBody(c.W, c.R, code, v.h.compresses())
	defer body.Close()
	w := &paced{body, v.h.pace(c)}
	defer w.end()
	if v.form.Type == codecs.JSON && v.form.Pretty {
		_ = indented(w, stream)
		return nil
	}
	_ = stream(w) // an error means that the client has gone
	return nil
}

// indented writes the pretty form of the JSON that stream writes. It is made as it goes:
// what is indented can be many times as large.
func indented(w io.Writer, stream func(io.Writer) error) error {
	in := jsoncodec.NewIndenter(w)
	if err := stream(in); err != nil {
		return err
	}
	return in.Close()
}

// fromJSON turns JSON into the form asked for: as it is, or YAML; indenting it is left to whoever writes it.
func (v *view) fromJSON(data []byte, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, err
	case v.form.Type == codecs.YAML:
		return yaml.FromJSON(nil, data)
	}
	return data, nil
}
