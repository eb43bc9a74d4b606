package etcd

import (
	"fmt"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// The requests and answers of etcd: only the fields that are used here, with etcd's numbers. Its own package
// contains a hundred more messages, whose tables are made at each start. Tests compare these with that
// package.

// The methods that are called.
const (
	rangeMethod  = "/etcdserverpb.KV/Range"
	leaseMethod  = "/etcdserverpb.Lease/LeaseTimeToLive"
	authenticate = "/etcdserverpb.Auth/Authenticate"
)

// Texts of etcd's errors, which identify them.
const (
	messageCompacted       = "etcdserver: mvcc: required revision has been compacted"
	messageNoLease         = "etcdserver: requested lease not found"
	messageTooManyRequests = "etcdserver: too many requests"
)

// hasMessage reports whether an error comes from etcd with a message.
func hasMessage(err error, text string) bool {
	s, ok := status.FromError(err)
	return err != nil && ok && s.Message() == text
}

// wire is a message.
type wire interface{ append(b []byte) []byte }

// answer is a message to decode. It owns its content.
type answer interface{ read(b []byte) error }

// codec is the form of messages for gRPC.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(wire)
	if !ok {
		return nil, fmt.Errorf("%T is no message that is sent to etcd", v)
	}
	return m.append(nil), nil
}

func (codec) Unmarshal(b []byte, v any) error {
	m, ok := v.(answer)
	if !ok {
		return fmt.Errorf("%T is no message that comes from etcd", v)
	}
	return m.read(b)
}

// keyValue is a key of etcd, in answers as in its file.
type keyValue struct {
	key                                 []byte
	created, modified, versions, leased int64
	value                               []byte
}

func (kv *keyValue) append(b []byte) []byte {
	b = appendBytes(b, 1, kv.key)
	b = appendNumber(b, 2, kv.created)
	b = appendNumber(b, 3, kv.modified)
	b = appendNumber(b, 4, kv.versions)
	b = appendBytes(b, valueField, kv.value)
	return appendNumber(b, 6, kv.leased)
}

// read uses the memory of the key and the value again.
func (kv *keyValue) read(b []byte) error {
	*kv = keyValue{key: kv.key[:0], value: kv.value[:0]}
	return fields(b, func(f field) {
		switch f.number {
		case 1:
			kv.key = append(kv.key[:0], f.bytes()...)
		case 2:
			kv.created = f.int()
		case 3:
			kv.modified = f.int()
		case 4:
			kv.versions = f.int()
		case valueField:
			kv.value = append(kv.value[:0], f.bytes()...)
		case 6:
			kv.leased = f.int()
		}
	})
}

// rangeRequest asks for keys of one revision in their order; revision 0 is the newest.
type rangeRequest struct {
	key, end            []byte
	limit, revision     int64
	keysOnly, countOnly bool
}

func (r *rangeRequest) append(b []byte) []byte {
	b = appendBytes(b, 1, r.key)
	b = appendBytes(b, 2, r.end)
	b = appendNumber(b, 3, r.limit)
	b = appendNumber(b, 4, r.revision)
	b = appendNumber(b, 8, int64(protowire.EncodeBool(r.keysOnly)))
	return appendNumber(b, 9, int64(protowire.EncodeBool(r.countOnly)))
}

// rangeAnswer is a page of keys.
type rangeAnswer struct {
	headed   bool  // the answer has the revision of etcd
	revision int64 // that
	kvs      []*keyValue
	more     bool
	count    int64 // of all pages
}

func (a *rangeAnswer) read(b []byte) error {
	*a = rangeAnswer{}
	var wrong error
	note := func(err error) {
		if wrong == nil {
			wrong = err
		}
	}
	err := fields(b, func(f field) {
		switch f.number {
		case 1:
			a.headed = true
			note(fields(f.bytes(), func(f field) {
				if f.number == 3 {
					a.revision = f.int()
				}
			}))
		case 2:
			kv := &keyValue{}
			note(kv.read(f.bytes()))
			a.kvs = append(a.kvs, kv)
		case 3:
			a.more = f.int() != 0
		case 4:
			a.count = f.int()
		}
	})
	if err == nil {
		err = wrong
	}
	return err
}

// leaseRequest asks how long a lease lasts.
type leaseRequest struct{ id int64 }

func (r *leaseRequest) append(b []byte) []byte { return appendNumber(b, 1, r.id) }

// leaseAnswer is the answer.
type leaseAnswer struct{ seconds int64 }

func (a *leaseAnswer) read(b []byte) error {
	return fields(b, func(f field) {
		if f.number == 3 {
			a.seconds = f.int()
		}
	})
}

// loginRequest asks for a token.
type loginRequest struct{ name, password string }

func (r *loginRequest) append(b []byte) []byte {
	return appendBytes(appendBytes(b, 1, []byte(r.name)), 2, []byte(r.password))
}

// loginAnswer is the token.
type loginAnswer struct{ token string }

func (a *loginAnswer) read(b []byte) error {
	return fields(b, func(f field) {
		if f.number == 2 {
			a.token = string(f.bytes())
		}
	})
}
