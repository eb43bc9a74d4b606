package etcd

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// Buckets of etcd's backend, and the keys of its meta bucket.
var (
	keyBucket   = []byte("key")
	metaBucket  = []byte("meta")
	leaseBucket = []byte("lease")

	consistentIndexKey  = []byte("consistent_index")
	termKey             = []byte("term")
	confStateKey        = []byte("confState")
	scheduledCompactKey = []byte("scheduledCompactRev")
	finishedCompactKey  = []byte("finishedCompactRev")
)

// revisionSize is the length of a record's key: main and sub revision, big endian, with '_' between them.
// That of a delete has a 't' after it.
const revisionSize = 17

// place is the revision of a record: sub counts the keys of one transaction.
type place struct {
	main, sub int64
}

// before reports whether a place lies before another.
func (p place) before(q place) bool { return p.main < q.main || p.main == q.main && p.sub < q.sub }

func (p place) bytes() []byte {
	b := make([]byte, 0, revisionSize)
	b = binary.BigEndian.AppendUint64(b, uint64(p.main))
	b = append(b, '_')
	return binary.BigEndian.AppendUint64(b, uint64(p.sub))
}

// readPlace reads the key of a record. ok is false for a key of another form.
func readPlace(b []byte) (p place, deleted, ok bool) {
	switch {
	case len(b) == revisionSize+1 && b[revisionSize] == 't':
		deleted = true
	case len(b) != revisionSize:
		return p, false, false
	}
	p.main, p.sub = int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[9:]))
	return p, deleted, b[8] == '_' && p.main > 0 && p.sub >= 0
}

// record is a decoder of records that uses its memory again.
type record struct {
	kv     keyValue
	unread error // why the value of the last was not read; nil: it was
}

// valueField is the number of the value in a record. maxBesideValue bounds the bytes of all other fields: the
// key, and four numbers.
const (
	valueField     = 5
	maxBesideValue = foreign.MaxKey + 128
)

// read decodes the record at a position; the result is valid until the next call. It omits a value that is
// too long: then unread is set, and the key is returned.
func (r *record) read(at place, value []byte) (*keyValue, error) {
	whole, left := value, 0
	if len(value) > foreign.MaxValue {
		var err error
		if value, left, err = withoutValue(value); err != nil {
			return nil, damaged("the record at revision %d does not decode: %v", at.main, err)
		}
		if len(value) > maxBesideValue {
			return nil, damaged("the record at revision %d has %d bytes besides its value, and at most %d are read", at.main, len(value), maxBesideValue)
		}
		if left <= foreign.MaxValue {
			value, left = whole, 0
		}
	}
	if err := r.kv.read(value); err != nil {
		return nil, damaged("the record at revision %d does not decode: %v", at.main, err)
	}
	key := string(r.kv.key)
	r.unread = foreign.Check(key, int64(left))
	return &r.kv, foreign.Check(key, 0)
}

// withoutValue returns a record without its value, and how many bytes that has.
func withoutValue(record []byte) (rest []byte, left int, err error) {
	for len(record) > 0 {
		field, kind, head := protowire.ConsumeTag(record)
		if head < 0 {
			return nil, 0, protowire.ParseError(head)
		}
		n := protowire.ConsumeFieldValue(field, kind, record[head:])
		if n < 0 {
			return nil, 0, protowire.ParseError(n)
		}
		if field == valueField && kind == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(record[head:])
			left += len(text)
		} else if len(rest) <= maxBesideValue { // a longer one is refused, not collected
			rest = append(rest, record[:min(head+n, maxBesideValue+1)]...)
		}
		record = record[head+n:]
	}
	return rest, left, nil
}

// Fields of a lease as etcd stores it.
const (
	leaseIDField        = 1
	leaseTTLField       = 2
	leaseRemainingField = 3
)

// readLease decodes a stored lease into its ID and how many seconds it lasts from when
// a server takes it up. etcd stores no time at which it ends.
func readLease(b []byte) (id, seconds int64, err error) {
	var remaining int64
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0, 0, damaged("a lease does not decode: %v", protowire.ParseError(n))
		}
		b = b[n:]
		if kind != protowire.VarintType {
			if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
				return 0, 0, damaged("a lease does not decode: %v", protowire.ParseError(n))
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return 0, 0, damaged("a lease does not decode: %v", protowire.ParseError(n))
		}
		b = b[n:]
		switch field {
		case leaseIDField:
			id = int64(v)
		case leaseTTLField:
			seconds = int64(v)
		case leaseRemainingField:
			remaining = int64(v)
		}
	}
	if remaining > 0 {
		seconds = remaining
	}
	if seconds < 0 || seconds > math.MaxInt32 { // etcd grants at most 9,000,000,000 s; none of a cluster is longer than 68 years
		seconds = 0
	}
	return id, seconds, nil
}

// appendLease returns a lease as etcd stores it.
func appendLease(b []byte, id, seconds int64) []byte {
	b = protowire.AppendTag(b, leaseIDField, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(id))
	b = protowire.AppendTag(b, leaseTTLField, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(seconds))
}
