package follow

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Flags of a row.
const (
	flagDeleted = 1 << iota
	flagExpires
	flagDamaged
)

// errDamagedRow is the damage of rows that were damaged when the follower read them.
var errDamagedRow = &sqlstore.DamageError{Reason: "it was damaged when it was backed up"}

// appendRow writes a row behind its length. Its revision follows from its place.
func appendRow(b []byte, c *sqlstore.Change) []byte {
	var flags byte
	if c.Deleted {
		flags |= flagDeleted
	}
	if !c.ExpiresAt.IsZero() {
		flags |= flagExpires
	}
	if c.Damaged != nil {
		flags |= flagDamaged
	}
	var head [64]byte
	h := append(head[:0], flags)
	h = binary.AppendUvarint(h, uint64(c.Created))
	h = binary.AppendUvarint(h, uint64(c.PrevRevision))
	h = binary.AppendVarint(h, c.WrittenAt.UnixMicro())
	if flags&flagExpires != 0 {
		h = binary.AppendVarint(h, c.ExpiresAt.UnixMicro())
	}
	names := 0
	for _, s := range []string{c.Key.Resource, c.Key.Namespace, c.Key.Name} {
		names += sizeOf(len(s)) + len(s)
	}
	b = binary.AppendUvarint(b, uint64(len(h)+names+len(c.Value)))
	b = append(b, h...)
	for _, s := range []string{c.Key.Resource, c.Key.Namespace, c.Key.Name} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return append(b, c.Value...)
}

// sizeOf returns the number of bytes of an encoded length.
func sizeOf(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// rowReader reads rows from the unpacked content of a frame. The values that it returns
// are parts of that.
type rowReader struct {
	data     []byte
	revision int64 // of the next row
	bad      bool
}

func (r *rowReader) uvarint() int64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > math.MaxInt64 {
		r.bad = true
		return 0
	}
	r.data = r.data[n:]
	return int64(v)
}

func (r *rowReader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *rowReader) bytes(n int64) []byte {
	if n > int64(len(r.data)) || r.bad {
		r.bad = true
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

// next reads one row. Errors: ErrDamaged.
func (r *rowReader) next() (c sqlstore.Change, err error) {
	body := rowReader{data: r.bytes(r.uvarint()), bad: r.bad}
	var flags byte
	if f := body.bytes(1); len(f) == 1 {
		flags = f[0]
	}
	c.Revision = r.revision
	c.Deleted = flags&flagDeleted != 0
	c.Created, c.PrevRevision = body.uvarint(), body.uvarint()
	c.WrittenAt = time.UnixMicro(body.varint()).UTC()
	if flags&flagExpires != 0 {
		c.ExpiresAt = time.UnixMicro(body.varint()).UTC()
	}
	c.Key.Resource = string(body.bytes(body.uvarint()))
	c.Key.Namespace = string(body.bytes(body.uvarint()))
	c.Key.Name = string(body.bytes(body.uvarint()))
	c.Value = body.data
	if c.Deleted {
		c.Superseded = c.Revision
	}
	if flags&flagDamaged != 0 { // restoring it does not repair it
		c.Damaged = errDamagedRow
	}
	if r.bad || body.bad || c.Key.Resource == "" || c.Key.Name == "" || c.Created <= 0 || c.Created > c.Revision || c.PrevRevision >= c.Revision || flags > flagDeleted|flagExpires|flagDamaged {
		return c, fmt.Errorf("%w: the record of revision %d is invalid", ErrDamaged, r.revision)
	}
	r.revision++
	return c, nil
}
