package metadata

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

// maxOwners limits the bytes of owner references that a packed object stores in addition to its value. With more, they stay in
// the value alone: otherwise a client could make the cache hold them twice.
const maxOwners = 1 << 10

// AppendCommonOwners appends the references to owners in b as packing.Common has them. If they take too much room, ok is
// false and it appends nothing.
func (m *Meta) AppendCommonOwners(dst, b []byte) (kept []byte, ok bool) {
	list := m.owners.of(b)
	if len(list) == 0 {
		return dst, true
	}
	if len(list) > 4*maxOwners {
		return dst, false
	}
	kept = dst
	for _, o := range appendOwners(nil, list, false) {
		kept = packing.AppendOwner(kept, &o)
	}
	if len(kept)-len(dst) > maxOwners {
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
	flagUUID       // the UID is a UUID, of which there are 16 bytes
	flagSeconds    // the creation is a time, of which there are the seconds since 1970
)

// words are frequent values of fields, which take a byte.
var words = [...]string{"", "false", "true", "default", "Always", "OnFailure", "Never", "default-scheduler", "Pending", "Running",
	"Succeeded", "Failed", "Unknown", "Normal", "Warning", "Active", "Terminating", "Opaque"}

// The value of a field begins with a number: that of a word, then that of an earlier field with the same value (two fields of a
// Pod are the name of its node), and then twice the length of a text, or twice the number of a shared value and one.
const (
	sameFrom = len(words)
	maxSame  = 16
	textFrom = sameFrom + maxSame
)

// Shared holds values of fields that many objects have, by number. Their packed forms in memory have the numbers.
type Shared []string

// AppendPacked appends m, without labels and owners, in the form that Unpack reads. manyOwners means that
// AppendCommonOwners did not take the owners.
func (m *Meta) AppendPacked(dst []byte, manyOwners bool) []byte {
	flags := uint64(0)
	for i, is := range [...]bool{m.Deleting, m.Foreground, m.Orphan, manyOwners} {
		if is {
			flags |= 1 << i
		}
	}
	id, err := uuid.Parse(m.UID)
	isUUID := err == nil && id.String() == m.UID
	if isUUID {
		flags |= flagUUID
	}
	created, err := time.Parse(time.RFC3339, m.CreationTimestamp)
	isTime := err == nil && created.Unix() >= 0 && encodedTime(created.Unix()) == m.CreationTimestamp
	if isTime {
		flags |= flagSeconds
	}
	for _, n := range [...]uint64{flags, uint64(m.metadata.from), uint64(m.metadata.to), uint64(len(m.Fields))} {
		dst = binary.AppendUvarint(dst, n)
	}
	if isUUID {
		dst = append(dst, id[:]...)
	} else {
		dst = packing.AppendText(dst, m.UID)
	}
	if isTime {
		dst = binary.AppendUvarint(dst, uint64(created.Unix()))
	} else {
		dst = packing.AppendText(dst, m.CreationTimestamp)
	}
	for i, f := range m.Fields {
		if at := slices.Index(words[:], f); at >= 0 {
			dst = append(dst, byte(at))
		} else if at := slices.Index(m.Fields[:min(i, maxSame)], f); at >= 0 {
			dst = append(dst, byte(sameFrom+at))
		} else {
			dst = appendField(dst, f)
		}
	}
	return dst
}

func appendField(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(2*len(text)+textFrom)), text...)
}

// AppendShared appends a packed form whose values are in Shared. It has the numbers of those values for which number returns
// one; number is called with the index of a field and its text.
func AppendShared(dst, b []byte, in Shared, number func(field int, text string) (n int, ok bool)) []byte {
	r := reader(b)
	flags, _, fields := r.head()
	r.skipIdentity(flags)
	dst = append(dst, b[:len(b)-len(r)]...)
	for i := range fields {
		at := r.number()
		if at < textFrom {
			dst = append(dst, byte(at))
			continue
		}
		text := r.value(at, in)
		if n, ok := number(i, text); ok {
			dst = binary.AppendUvarint(dst, uint64(2*n+1+textFrom))
		} else {
			dst = appendField(dst, text)
		}
	}
	return dst
}

// encodedTime returns a time as objects have it.
func encodedTime(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// Unpack reads the packed form of an object of a storage, which has no labels. Its strings may be views of b.
func Unpack(b []byte, st *kinds.Storage, in Shared) *Meta {
	m := UnpackFields(b, st, in)
	r := reader(b)
	flags, _, _ := r.head()
	m.UID = r.uid(flags)
	if flags&flagSeconds != 0 {
		m.CreationTimestamp = encodedTime(int64(r.number()))
	} else {
		m.CreationTimestamp = r.text()
	}
	return m
}

// UnpackFields is Unpack without the UID and the creation.
func UnpackFields(b []byte, st *kinds.Storage, in Shared) *Meta {
	r := reader(b)
	flags, at, fields := r.head()
	m := &Meta{Storage: st, metadata: at}
	m.Deleting = flags&flagDeleting != 0
	r.skipIdentity(flags)
	if st != nil {
		m.Fields = make([]string, fields)
	}
	for i := range m.Fields {
		m.Fields[i] = r.field(m.Fields, in)
	}
	return m
}

// UnpackOwnerInfo reads only the OwnerInfo of the packed form. Its string may be a view of b.
func UnpackOwnerInfo(b []byte) OwnerInfo {
	r := reader(b)
	flags, _, _ := r.head()
	return OwnerInfo{UID: r.uid(flags), Deleting: flags&flagDeleting != 0, Foreground: flags&flagForeground != 0, Orphan: flags&flagOrphan != 0}
}

// HasManyOwners reports whether the owners of a packed object have to be read from its value.
func HasManyOwners(b []byte) bool {
	r := reader(b)
	return r.number()&flagManyOwners != 0
}

// CheckPacked checks the packed form of an object of size bytes before Unpack may read it, and returns the values of the
// fields, in the memory of fields. None may be Shared.
func CheckPacked(b []byte, size int, fields []string) (_ []string, ok bool) {
	c := packing.NewCursor(b)
	flags := c.Number()
	from, to, n := c.Number(), c.Number(), c.Number()
	if flags&flagUUID != 0 {
		c.Next(len(uuid.UUID{}))
	} else {
		c.Bytes()
	}
	if flags&flagSeconds != 0 {
		c.Number()
	} else {
		c.Bytes()
	}
	if fields = fields[:0]; n > uint64(len(b)) {
		return nil, false
	}
	for range n {
		switch at := c.Number(); {
		case at < uint64(sameFrom):
			fields = append(fields, words[at])
		case at >= uint64(textFrom):
			length := at - uint64(textFrom)
			if length%2 != 0 {
				return nil, false
			}
			fields = append(fields, packing.View(c.Next(int(min(length/2, math.MaxInt32)))))
		case at-uint64(sameFrom) < uint64(len(fields)):
			fields = append(fields, fields[at-uint64(sameFrom)])
		default:
			return nil, false
		}
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

func (r *reader) text() string { return r.next(r.number()) }

func (r *reader) next(n int) string {
	s := packing.View((*r)[:n:n])
	*r = (*r)[n:]
	return s
}

// head reads what precedes the UID: flags, where the metadata is, and the number of fields.
func (r *reader) head() (flags int, at part, fields int) {
	flags = r.number()
	at = part{int32(r.number()), int32(r.number())}
	return flags, at, r.number()
}

// skipIdentity skips the UID and the creation.
func (r *reader) skipIdentity(flags int) {
	if flags&flagUUID != 0 {
		r.next(len(uuid.UUID{}))
	} else {
		r.text()
	}
	if n := r.number(); flags&flagSeconds == 0 {
		r.next(n)
	}
}

// field reads the value of a field; earlier has the values of the fields before it.
func (r *reader) field(earlier []string, in Shared) string {
	switch n := r.number(); {
	case n < sameFrom:
		return words[n]
	case n < textFrom:
		return earlier[n-sameFrom]
	default:
		return r.value(n, in)
	}
}

// value reads the value of a field that is neither a word nor that of another field, after its number.
func (r *reader) value(n int, in Shared) string {
	if n -= textFrom; n%2 != 0 {
		return in[n/2]
	}
	return r.next(n / 2)
}

func (r *reader) uid(flags int) string {
	if flags&flagUUID == 0 {
		return r.text()
	}
	var id uuid.UUID
	copy(id[:], r.next(len(id)))
	return id.String()
}
