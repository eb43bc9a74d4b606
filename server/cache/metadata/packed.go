package metadata

import (
	"encoding/binary"

	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

// mostOwners is how many bytes the references of a packed object may take in addition to its value. An
// object with more keeps them in its value alone: otherwise its writer would make the cache keep them twice.
const mostOwners = 1 << 10

// AppendCommonOwners appends the references to owners in b as packing.Common has them. If they take too much room, ok is
// false and it appends nothing.
func (m *Meta) AppendCommonOwners(dst, b []byte) (kept []byte, ok bool) {
	list := m.owners.of(b)
	if len(list) == 0 {
		return dst, true
	}
	if len(list) > 4*mostOwners {
		return dst, false
	}
	kept = dst
	for _, o := range appendOwners(nil, list, false) {
		kept = packing.AppendOwner(kept, &o)
	}
	if len(kept)-len(dst) > mostOwners {
		return dst, false
	}
	return kept, true
}

// Flags of the packed form.
const (
	flagDeleting = 1 << iota
	flagForeground
	flagOrphan
	flagManyOwners // the owners have to be read from the object
)

// AppendPacked appends m, without labels and owners, in the form that Unpack reads. manyOwners says that
// AppendCommonOwners did not take the owners.
func (m *Meta) AppendPacked(dst []byte, manyOwners bool) []byte {
	flags := uint64(0)
	for i, is := range [...]bool{m.Deleting, m.Foreground, m.Orphan, manyOwners} {
		if is {
			flags |= 1 << i
		}
	}
	for _, n := range [...]uint64{flags, uint64(m.metadata.from), uint64(m.metadata.to), uint64(len(m.Fields))} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = packing.AppendText(packing.AppendText(dst, m.UID), m.CreationTimestamp)
	for _, f := range m.Fields {
		dst = packing.AppendText(dst, f)
	}
	return dst
}

// Unpack reads the packed form of an object of a storage, which has no labels. The strings are views of b.
func Unpack(b []byte, st *kinds.Storage) *Meta {
	r := reader(b)
	m := &Meta{Storage: st}
	m.Deleting = r.number()&flagDeleting != 0
	m.metadata = part{int32(r.number()), int32(r.number())}
	fields := r.number()
	m.UID, m.CreationTimestamp = r.text(), r.text()
	if st != nil {
		m.Fields = make([]string, fields)
	}
	for i := range m.Fields {
		m.Fields[i] = r.text()
	}
	return m
}

// UnpackOwnerInfo reads only the OwnerInfo of the packed form. Its string is a view of b.
func UnpackOwnerInfo(b []byte) OwnerInfo {
	r := reader(b)
	flags := r.number()
	r.number() // where the metadata begins
	r.number() // and ends
	r.number() // number of fields
	return OwnerInfo{UID: r.text(), Deleting: flags&flagDeleting != 0, Foreground: flags&flagForeground != 0, Orphan: flags&flagOrphan != 0}
}

// HasManyOwners says that the owners of a packed object have to be read from its value.
func HasManyOwners(b []byte) bool {
	r := reader(b)
	return r.number()&flagManyOwners != 0
}

// CheckPacked checks the packed form of an object of size bytes before Unpack may read it, and returns the values of the
// fields, in the memory of fields.
func CheckPacked(b []byte, size int, fields []string) (_ []string, ok bool) {
	c := packing.NewCursor(b)
	c.Number() // flags
	from, to, n := c.Number(), c.Number(), c.Number()
	c.Bytes() // UID
	c.Bytes() // creation
	if fields = fields[:0]; n > uint64(len(b)) {
		return nil, false
	}
	for range n {
		fields = append(fields, c.Text())
	}
	return fields, !c.Bad && c.Left() == 0 && from <= to && to <= uint64(size)
}

// reader reads what AppendPacked wrote.
type reader []byte

func (r *reader) number() int {
	n, size := binary.Uvarint(*r)
	*r = (*r)[size:]
	return int(n)
}

func (r *reader) text() string {
	n := r.number()
	s := packing.View((*r)[:n:n])
	*r = (*r)[n:]
	return s
}
