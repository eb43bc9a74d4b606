package verbs

import (
	"encoding/binary"
	"hash/maphash"
	"net/http"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
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

// packs says whether a list of so many bytes is put together from compressed pieces.
// The bytes of an item must follow from its revision.
func (v *view) packs(c *Call, p *objects.Page, size int) bool {
	return v.h.Packed != nil && size > framing.CompressFrom && size <= maxPacked &&
		v.h.Enabled("APIResponseCompression") && framing.AcceptsGzip(c.R) &&
		(!v.r.Custom || v.cleanPage(p))
}

// sendPacked answers with a list of items between head and tail; each appends one.
func (v *view) sendPacked(c *Call, items []*cache.Item, head, tail []byte, each func([]byte, *cache.Item) ([]byte, error)) {
	h := c.W.Header()
	h.Set("Content-Type", v.form.Type)
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	h.Del("Content-Length")
	c.W.WriteHeader(http.StatusOK)
	w := packed.NewStream(c.W, v.h.Packed)
	if w.Plain(head) != nil {
		return // the client has gone
	}
	buf := getBuffer()
	defer putBuffer(buf)
	for len(items) > 0 {
		n := pieceOf(items)
		piece, last := items[:n], n == len(items)
		items = items[n:]
		*buf = v.pieceKey((*buf)[:0], piece, last)
		err := w.Piece(*buf, func(dst []byte) (_ []byte, err error) {
			for i, it := range piece {
				if dst, err = each(dst, it); err != nil {
					return nil, err
				}
				if v.form.Type == codecs.JSON && !(last && i == n-1) {
					dst = append(dst, ',')
				}
			}
			return dst, nil
		})
		if err != nil {
			return
		}
	}
	_ = w.Close(tail)
}

// pieceOf is how many items make the next piece.
func pieceOf(items []*cache.Item) int {
	size := 0
	for i, it := range items {
		size += len(it.JSON)
		if size >= pieceBytes || maphash.String(pieceSeed, it.Name)%pieceItems == 0 {
			return i + 1
		}
	}
	return len(items)
}

// pieceKey names a piece: a revision is that of one object, and never changes.
func (v *view) pieceKey(dst []byte, piece []*cache.Item, last bool) []byte {
	dst = append(dst, v.form.Type...)
	if last {
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

// packJSON answers with a JSON list.
func (v *view) packJSON(c *Call, p *objects.Page) {
	head, tail := v.appendListHead(nil, p), append(v.appendListTail(nil, p), '\n')
	v.sendPacked(c, p.Items, head, tail, func(dst []byte, it *cache.Item) ([]byte, error) { return v.appendJSON(dst, it, true) })
}

// packProtobuf answers with a Protobuf list whose items have so many bytes.
func (v *view) packProtobuf(c *Call, p *objects.Page, size int) error {
	apiVersion, kind := v.listMeta()
	head, err := protobuf.AppendListHead(nil, apiVersion, kind, p.Meta(), size)
	if err != nil {
		return err
	}
	v.sendPacked(c, p.Items, head, protobuf.AppendTail(nil), func(dst []byte, it *cache.Item) ([]byte, error) {
		raw, err := v.message(it)
		if err != nil {
			return nil, err
		}
		return protobuf.AppendItem(dst, raw), nil
	})
	return nil
}

// sizeProtobuf is how many bytes the items of a page have in a Protobuf list; each
// message is made for it, and kept.
func (v *view) sizeProtobuf(p *objects.Page) (size int, err error) {
	for _, it := range p.Items {
		raw, err := v.message(it)
		if err != nil {
			return 0, err
		}
		size += protobuf.ItemSize(len(raw))
	}
	return size, nil
}

// cleanPage says that the bytes of all items of a page are objects of the view's version.
func (v *view) cleanPage(p *objects.Page) bool {
	for _, it := range p.Items {
		if !objects.Clean(v.r, it) {
			return false
		}
	}
	return true
}
