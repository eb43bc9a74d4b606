package answers

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"net/http"
	"slices"

	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// maxPacked is the size of the largest list whose compressed pieces are kept: larger
// ones would push all others out, and themselves.
const maxPacked = 128 << 20

// A piece ends with an item whose name says so, one in pieceItems, so that an item
// that comes or goes changes one piece; or with pieceBytes.
const (
	pieceItems = 16
	pieceBytes = 128 << 10
)

var pieceSeed = maphash.MakeSeed()

// packs says whether a list of so many bytes, or of about so many if size is less than zero, is
// put together from compressed pieces.
// The bytes of an item must follow from its revision, which they do not where a schema
// says what they are.
func (a *Answers) packs(q *Request, v *View, p *objects.Page, size int) bool {
	size = max(size, -size)
	return a.Packed != nil && size > framing.CompressFrom && size <= maxPacked && !v.metadataOnly() &&
		a.Compress && framing.AcceptsGzip(q.R) &&
		(v.r.HasGoType() || allClean(v.r, p.Items))
}

// allClean says that the bytes of all items are objects of r's version.
func allClean(r *kinds.Resource, items []*cache.Item) bool {
	return !slices.ContainsFunc(items, func(it *cache.Item) bool { return !objects.Clean(r, it) })
}

// sendPacked answers with a list from compressed pieces, in turns with the long answers of
// other users: whether a piece is kept or has to be made is known when it is. Head and tail go
// out as they are: they are another's for every revision.
func (a *Answers) sendPacked(q *Request, v *View, p *objects.Page, head []byte) {
	q.Done()
	h := q.W.Header()
	h.Set("Content-Type", v.as.Type)
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	h.Del("Content-Length")
	q.W.WriteHeader(http.StatusOK)
	w := packed.NewStream(q.W, a.Packed)
	if w.Plain(head) != nil {
		return // the client has gone
	}
	buf := getBuffer()
	defer putBuffer(buf)
	pace := v.pace
	defer pace.End()
	first := true
	for piece, size := range pieces(p) {
		if pace.Next(size) != nil {
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

// pieces are the items of a page, piece by piece, and about how many bytes each has. It is good until
// the next one is asked for. Where they end does not depend on the parts that the page comes in.
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

// pieceKey names a piece: a revision is that of one object, and never changes.
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
