package answers

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"io"
	"iter"
	"net/http"
	"strconv"
	"sync"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/codecs/yield"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
)

// Chunk is the number of bytes of a list that are collected before they are written.
const Chunk = 128 << 10

// buffers holds the memory in which answers are collected.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the largest buffer that returns to the pool.
const maxKept = 4 * Chunk

func getBuffer() *[]byte { return buffers.Get().(*[]byte) }

func putBuffer(b *[]byte) {
	if cap(*b) <= maxKept {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// list answers with the items of a page, in bounded pieces. Once the answer has begun, only the client's
// disconnection can fail it.
func (a *Answers) list(q *Request, v *View, p *objects.Page) error {
	v.turn = a.Turn(q)
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
		q.W.Header().Set("Content-Length", strconv.Itoa(size)) // compression removes it
	}
	a.stream(q, v.as, http.StatusOK, func(w io.Writer) error {
		*buf, err = v.writeItems(q, w, *buf, p)
		return err
	})
	return nil
}

// writeItems writes a list; dst contains its head.
func (v *View) writeItems(q *Request, w io.Writer, dst []byte, p *objects.Page) (_ []byte, err error) {
	first := true
	for part := range p.Parts() {
		if err = v.answers.ReserveMemory(q, v.as, part...); err != nil {
			return dst, err
		}
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

// body answers with a whole body, indented on request.
func (a *Answers) body(q *Request, as codecs.Form, code int, data []byte) error {
	if as.Type != codecs.JSON || !as.Pretty {
		return a.write(q, as.Type, code, data)
	}
	a.streamBytes(q, as, code, data)
	return nil
}

// streamBytes is stream for a complete body.
func (a *Answers) streamBytes(q *Request, as codecs.Form, code int, data []byte) {
	a.stream(q, as, code, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// write writes a whole body, compressed if it is large and the client accepts that.
func (a *Answers) write(q *Request, mediaType string, code int, data []byte) error {
	q.Done()
	header := q.W.Header()
	header.Set("Content-Type", mediaType)
	var w io.Writer = q.W
	if len(data) > framing.CompressFrom && a.Compress && framing.AcceptsGzip(q.R) {
		body := framing.NewBody(q.W, q.R, code, true)
		defer func() { _ = body.Close() }()
		w = body
	} else {
		header.Set("Content-Length", strconv.Itoa(len(data)))
		q.W.WriteHeader(code)
	}
	for len(data) > maxKept { // in pieces, between which short requests get the processor
		if _, err := w.Write(data[:Chunk]); err != nil {
			return nil // the client has disconnected
		}
		data = data[Chunk:]
		yield.Now()
	}
	_, _ = w.Write(data) // an error means that the client has disconnected
	return nil
}

// stream answers with the output of fill: compressed if that is worthwhile, indented on request, and in turn
// with the long answers of other users. An answer that fails before its end is aborted, because in some forms
// a part of it looks like a complete answer.
func (a *Answers) stream(q *Request, as codecs.Form, code int, fill func(io.Writer) error) {
	q.Done()
	q.W.Header().Set("Content-Type", as.Type)
	w := &turnWriter{Turn: a.Turn(q)}
	body := framing.NewBody(q.W, q.R, code, a.Compress)
	w.Writer = body
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
		panic(err) // logged by the filter Recover
	}
}

// indented writes the output of fill, which is JSON, in the pretty form, piece by piece: the indented form
// can be many times as large.
func indented(w io.Writer, fill func(io.Writer) error) error {
	in := jsoncodec.NewIndenter(w)
	if err := fill(in); err != nil {
		return err
	}
	return in.Close()
}

// maxPacked is the size of the largest list whose compressed pieces are cached: larger ones would evict all
// others, and their own pieces.
const maxPacked = 128 << 20

// A piece ends with an item whose name determines that, one in pieceItems on average, so that adding or
// removing an item changes one piece; or after pieceBytes.
const (
	pieceItems = 16
	pieceBytes = 128 << 10
)

var pieceSeed = maphash.MakeSeed()

// packs reports whether a list of that many bytes, or about that many if size is below zero, consists of
// compressed pieces. The bytes of an item must depend on its revision only, which is not so if they also
// depend on a schema.
func (a *Answers) packs(q *Request, v *View, p *objects.Page, size int) bool {
	size = max(size, -size)
	return a.Packed != nil && size > framing.CompressFrom && size <= maxPacked && !v.metadataOnly() &&
		a.Compress && framing.AcceptsGzip(q.R) &&
		(v.r.HasGoType() || allClean(v.r, p.Items))
}

// allClean reports whether the bytes of all items are objects of r's version.
func allClean(r *kinds.Resource, items []*cache.Item) bool {
	for _, it := range items {
		if !objects.Clean(r, it) {
			return false
		}
	}
	return true
}

// sendPacked answers with a list of compressed pieces, in turn with the long answers of other users. Each
// piece is found in the cache or made when its turn comes. Head and tail are compressed separately, because
// they differ in every revision.
func (a *Answers) sendPacked(q *Request, v *View, p *objects.Page, head []byte) {
	q.Done()
	h := q.W.Header()
	h.Set("Content-Type", v.as.Type)
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	h.Del("Content-Length")
	q.W.WriteHeader(http.StatusOK)
	w := packed.NewStream(q.W, a.Packed)
	if w.Verbatim(head) != nil {
		return // the client has disconnected
	}
	buf := getBuffer()
	defer putBuffer(buf)
	turn := v.turn
	defer turn.End()
	first := true
	for piece, size := range pieces(p) {
		// A list that waits for room has not begun the piece, and its turn ends in the meantime, so it holds up no other list.
		if a.ReserveMemory(q, v.as, piece...) != nil || turn.Next(size) != nil {
			return
		}
		*buf = v.pieceKey((*buf)[:0], piece, first)
		err := w.Piece(*buf, func(dst []byte) (_ []byte, err error) {
			for i, it := range piece {
				if dst, err = v.form.Item(dst, it, first && i == 0); err != nil {
					return nil, err
				}
			}
			return dst, nil
		})
		if err != nil {
			return
		}
		first = false
	}
	_ = w.Close(v.form.ListTail(nil, p))
}

// pieces yields the items of a page in pieces, with the approximate size of each. A piece is valid until the
// iteration continues. The borders of pieces do not depend on the parts of the page.
func pieces(p *objects.Page) iter.Seq2[[]*cache.Item, int] {
	return func(yield func([]*cache.Item, int) bool) {
		var piece []*cache.Item
		size := 0
		for part := range p.Parts() {
			for _, it := range part {
				piece = append(piece, it)
				if size += it.Size(); size < pieceBytes && maphash.String(pieceSeed, it.Name)%pieceItems != 0 {
					continue
				}
				if !yield(piece, size) {
					return
				}
				piece, size = piece[:0], 0
			}
		}
		if len(piece) > 0 {
			yield(piece, size)
		}
	}
}

// pieceKey returns the key of a piece: revisions identify the states of its objects.
func (v *View) pieceKey(dst []byte, piece []*cache.Item, first bool) []byte {
	dst = append(dst, v.as.Type...)
	if first {
		dst = append(dst, '.')
	}
	dst = append(dst, ' ')
	dst = append(dst, v.r.Storage.Key...)
	dst = append(dst, ' ')
	dst = append(dst, v.r.Version...)
	dst = append(dst, ' ')
	for _, it := range piece {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(it.Revision))
	}
	return dst
}

const (
	// freeBytes is the part of an answer that is written without waiting for a turn.
	freeBytes = 1 << 20
	// turnBytes is the largest part written in one turn after that.
	turnBytes = 4 << 20
)

// Turn makes a long answer, or the beginning of a watch, take turns with those of other users. Short answers
// never wait. End must be called.
type Turn struct {
	gate  *fair.Gate // nil: answers do not wait
	ctx   context.Context
	scope *request.Scope
	user  string
	left  int
	place *fair.Place
}

// Turn returns the turn of the answer to a request.
func (a *Answers) Turn(q *Request) Turn {
	var gate *fair.Gate
	if a.Turns != nil {
		gate = a.Turns.gate
	}
	ctx := q.ctx // of a watch, which drops its request
	if q.R != nil {
		ctx = q.R.Context()
	}
	return Turn{gate: gate, ctx: ctx, scope: q.Scope, user: q.User(), left: freeBytes}
}

// Next must be called before n more bytes are made; it waits for a turn if necessary. The error is that of
// the request's context.
func (p *Turn) Next(n int) error {
	if p.left -= n; p.left >= 0 && !p.place.TurnEnded() {
		return nil
	}
	p.End()
	if p.scope != nil {
		p.scope.Long = true
	}
	err := p.scope.Waiting(func() (err error) { // otherwise long answers would keep the seats of short requests
		p.place, err = p.gate.Enter(p.ctx, p.user, 0)
		return err
	})
	if err == nil {
		p.left = turnBytes
	}
	return err
}

// End ends the turn.
func (p *Turn) End() {
	p.place.Leave()
	p.place = nil
}

// turnWriter is a writer that takes turns.
type turnWriter struct {
	io.Writer
	Turn
	gone bool // the client has disconnected
}

func (p *turnWriter) Write(data []byte) (int, error) {
	if err := p.Next(len(data)); err != nil {
		return 0, err
	}
	n, err := p.Writer.Write(data)
	p.gone = err != nil
	return n, err
}
