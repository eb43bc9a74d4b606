package verbs

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/objects"
)

// chunk is how many bytes of a list are put together before they are written.
const chunk = 128 << 10

// listMeta is the API version and kind of a list of what is shown.
func (v *view) listMeta() (apiVersion, kind string) {
	if v.partial() {
		return v.form.As.GroupVersion().String(), "PartialObjectMetadataList"
	}
	return v.r.APIVersion(), v.r.ListKind
}

// appendListHead starts a JSON list, in the order of members of a stock server.
func (v *view) appendListHead(dst []byte, p *objects.Page) []byte {
	apiVersion, kind := v.listMeta()
	if v.r.Custom && !v.partial() {
		dst = append(dst, `{"apiVersion":"`...)
		dst = append(dst, apiVersion...)
		return append(dst, `","items":[`...)
	}
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","apiVersion":"`...)
	dst = append(dst, apiVersion...)
	dst = append(dst, `","metadata":{"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, p.Revision, 10)
	dst = append(dst, '"')
	if p.Continue != "" {
		dst = append(dst, `,"continue":"`...)
		dst = append(dst, p.Continue...)
		dst = append(dst, '"')
	}
	dst = appendRemaining(dst, p)
	return append(dst, `},"items":[`...)
}

func appendRemaining(dst []byte, p *objects.Page) []byte {
	if p.Remaining < 0 {
		return dst
	}
	dst = append(dst, `,"remainingItemCount":`...)
	return strconv.AppendInt(dst, p.Remaining, 10)
}

// appendListTail ends a JSON list.
func (v *view) appendListTail(dst []byte, p *objects.Page) []byte {
	if !v.r.Custom || v.partial() {
		return append(dst, ']', '}')
	}
	dst = append(dst, `],"kind":"`...)
	dst = append(dst, v.r.ListKind...)
	dst = append(dst, `","metadata":{"continue":"`...)
	dst = append(dst, p.Continue...)
	dst = append(dst, '"')
	dst = appendRemaining(dst, p)
	dst = append(dst, `,"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, p.Revision, 10)
	return append(dst, `"}}`...)
}

// sizeJSON is how many bytes streamJSON will write, -1 where that is not known
// without writing them. A length saves a frame of its own for every piece.
func (v *view) sizeJSON(p *objects.Page) int {
	if v.form.Type != codecs.JSON || v.form.Pretty || v.partial() {
		return -1
	}
	buf := getBuffer()
	defer putBuffer(buf)
	size := len(v.appendListTail(v.appendListHead((*buf)[:0], p), p)) + max(0, len(p.Items)-1) + 1
	for _, it := range p.Items {
		data, err := v.json(it)
		switch {
		case err != nil:
			return -1
		case v.r.Custom:
			size += len(data)
		case v.lead == nil:
			size += 1 + len(it.Body())
		case bytes.HasPrefix(data, v.lead):
			size += 1 + len(data) - len(v.lead)
		default:
			size += len(data)
		}
	}
	return size
}

// streamJSON writes a list as JSON in bounded pieces.
func (v *view) streamJSON(w io.Writer, p *objects.Page) error {
	buf := getBuffer()
	defer putBuffer(buf)
	dst := v.appendListHead((*buf)[:0], p)
	var err error
	if v.partial() && len(p.Items) == 0 {
		// A stock server makes this list without allocating its items.
		dst = append(dst[:len(dst)-1], "null}"...)
		dst = append(dst, '\n')
		_, err = w.Write(dst)
		return err
	}
	for i, it := range p.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = v.appendJSON(dst, it, true); err != nil {
			return err
		}
		if len(dst) >= chunk {
			if _, err := w.Write(dst); err != nil {
				return err
			}
			dst = dst[:0]
		}
	}
	dst = v.appendListTail(dst, p)
	if v.form.Type == codecs.JSON && !v.form.Pretty {
		dst = append(dst, '\n')
	}
	_, err = w.Write(dst)
	*buf = dst
	return err
}

// streamProtobuf writes a list as one enveloped message in bounded pieces. The
// sizes of all items come before them, so each is made first, and kept.
func (v *view) streamProtobuf(w io.Writer, header http.Header, p *objects.Page) error {
	size := 0
	partials := make([][]byte, 0, len(p.Items))
	for _, it := range p.Items {
		raw, err := v.message(it)
		if err != nil {
			return err
		}
		if v.r.Custom {
			partials = append(partials, raw)
		}
		size += protobuf.ItemSize(len(raw))
	}
	buf := getBuffer()
	defer putBuffer(buf)
	apiVersion, kind := v.listMeta()
	dst, err := protobuf.AppendListHead((*buf)[:0], apiVersion, kind, p.Meta(), size)
	if err != nil {
		return err
	}
	// Nothing has been written: the header can still be set.
	header.Set("Content-Length", strconv.Itoa(len(protobuf.AppendTail(dst))+size))
	for i, it := range p.Items {
		var raw []byte
		if v.r.Custom {
			raw = partials[i]
		} else if raw, err = v.message(it); err != nil {
			return err
		}
		dst = protobuf.AppendItem(dst, raw)
		if len(dst) >= chunk {
			if _, err := w.Write(dst); err != nil {
				return err
			}
			dst = dst[:0]
		}
	}
	dst = protobuf.AppendTail(dst)
	_, err = w.Write(dst)
	*buf = dst
	return err
}
