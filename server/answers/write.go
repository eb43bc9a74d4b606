package answers

import (
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/objects"
)

// Chunk is how many bytes of a list are put together before they are written.
const Chunk = 128 << 10

// buffers lends the memory that answers are put together in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the largest buffer that goes back to the pool.
const maxKept = 4 * Chunk

func getBuffer() *[]byte { return buffers.Get().(*[]byte) }

func putBuffer(b *[]byte) {
	if cap(*b) <= maxKept {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// list answers with the items of a page, in bounded pieces. Nothing fails once the answer
// has begun, but that the client goes.
func (a *Answers) list(q *Request, v *View, p *objects.Page) error {
	v.pace = a.Pace(q)
	size, err := v.form.Prepare(p)
	if err != nil {
		return err
	}
	buf := getBuffer()
	defer putBuffer(buf)
	if *buf, err = v.form.ListHead((*buf)[:0], p); err != nil {
		return err
	}
	if a.packs(q, v, p, size) {
		a.sendPacked(q, v, p, *buf)
		return nil
	}
	if size >= 0 {
		q.W.Header().Set("Content-Length", strconv.Itoa(size)) // compression takes it back
	}
	a.stream(q, v.as, http.StatusOK, func(w io.Writer) error {
		*buf, err = v.writeItems(w, *buf, p)
		return err
	})
	return nil
}

// writeItems writes a list after its head, which is in dst still.
func (v *View) writeItems(w io.Writer, dst []byte, p *objects.Page) (_ []byte, err error) {
	first := true
	for part := range p.Parts() {
		for _, it := range part {
			if dst, err = v.form.Item(dst, it, first); err != nil {
				return dst, err
			}
			first = false
			if len(dst) < Chunk {
				continue
			}
			if _, err := w.Write(dst); err != nil {
				return dst, err
			}
			dst = dst[:0]
		}
	}
	dst = v.form.ListTail(dst, p)
	_, err = w.Write(dst)
	return dst, err
}

// body answers with a whole body, indented where that is asked for.
func (a *Answers) body(q *Request, as codecs.Form, code int, data []byte) error {
	if as.Type != codecs.JSON || !as.Pretty {
		return a.write(q, as.Type, code, data)
	}
	a.streamBytes(q, as, code, data)
	return nil
}

// streamBytes is stream for a body that has been made.
func (a *Answers) streamBytes(q *Request, as codecs.Form, code int, data []byte) {
	a.stream(q, as, code, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// write puts a whole body on the wire, compressed if it is large and the client can read
// that.
func (a *Answers) write(q *Request, mediaType string, code int, data []byte) error {
	q.Done()
	header := q.W.Header()
	header.Set("Content-Type", mediaType)
	if len(data) > framing.CompressFrom && a.Compress && framing.AcceptsGzip(q.R) {
		body := framing.NewBody(q.W, q.R, code, true)
		_, _ = body.Write(data)
		_ = body.Close()
		return nil
	}
	header.Set("Content-Length", strconv.Itoa(len(data)))
	q.W.WriteHeader(code)
	_, _ = q.W.Write(data) // an error means that the client has gone
	return nil
}

// stream answers with what fill writes: compressed where that pays, indented where that
// is asked for, and in turns with the long answers of other users. An answer that ends before it
// is whole is broken off: in some forms a part of it looks like all of it.
func (a *Answers) stream(q *Request, as codecs.Form, code int, fill func(io.Writer) error) {
	q.Done()
	q.W.Header().Set("Content-Type", as.Type)
	body := framing.NewBody(q.W, q.R, code, a.Compress)
	w := &paced{Writer: body, Pace: a.Pace(q)}
	defer w.End()
	var err error
	if as.Type == codecs.JSON && as.Pretty {
		err = indented(w, fill)
	} else {
		err = fill(w)
	}
	switch {
	case err == nil || w.gone:
		_ = body.Close()
	case q.R.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	default:
		panic(err) // which is logged
	}
}

// indented writes the pretty form of the JSON that fill writes. It is made as it goes:
// what is indented can be many times as large.
func indented(w io.Writer, fill func(io.Writer) error) error {
	in := jsoncodec.NewIndenter(w)
	if err := fill(in); err != nil {
		return err
	}
	return in.Close()
}
