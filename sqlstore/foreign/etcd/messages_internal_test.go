package etcd

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestMessages compares sent and received messages with those of etcd's own package.
func TestMessages(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		return []int64{0, 1, 127, 128, -1, math.MaxInt64, math.MinInt64, r.Int64()}[r.IntN(8)]
	}
	text := func() []byte {
		return []byte([]string{"", "k", "/registry/pods/a/b", strings.Repeat("x", 300), "\x00\xff"}[r.IntN(5)])
	}
	flag := func() bool { return r.IntN(2) == 0 }
	marshal := func(m interface{ Marshal() ([]byte, error) }) []byte {
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(m wire, want interface{ Marshal() ([]byte, error) }) {
		t.Helper()
		got, err := codec{}.Marshal(m)
		if err != nil || !bytes.Equal(got, marshal(want)) {
			t.Fatalf("%+v: %x, %v; want %x", m, got, err, marshal(want))
		}
	}
	stored := func() (*keyValue, *mvccpb.KeyValue) {
		kv := &keyValue{key: text(), created: number(), modified: number(), versions: number(), value: text(), leased: number()}
		return kv, &mvccpb.KeyValue{Key: kv.key, CreateRevision: kv.created, ModRevision: kv.modified, Version: kv.versions, Value: kv.value, Lease: kv.leased}
	}
	equal := func(a, b *keyValue) bool {
		return bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value) && a.created == b.created && a.modified == b.modified && a.versions == b.versions && a.leased == b.leased
	}
	var again keyValue
	for range 300 {
		ours, theirs := stored()
		same(ours, theirs)
		if err := again.read(marshal(theirs)); err != nil || !equal(&again, ours) {
			t.Fatalf("%+v, %v; want %+v", again, err, ours)
		}
		q := &rangeRequest{key: text(), end: text(), limit: number(), revision: number(), keysOnly: flag(), countOnly: flag()}
		same(q, &etcdserverpb.RangeRequest{Key: q.key, RangeEnd: q.end, Limit: q.limit, Revision: q.revision, KeysOnly: q.keysOnly, CountOnly: q.countOnly})
		page := &etcdserverpb.RangeResponse{More: flag(), Count: number()}
		if flag() {
			page.Header = &etcdserverpb.ResponseHeader{ClusterId: r.Uint64(), MemberId: r.Uint64(), Revision: number(), RaftTerm: r.Uint64()}
		}
		var want []*keyValue
		for range r.IntN(4) {
			ours, theirs := stored()
			want, page.Kvs = append(want, ours), append(page.Kvs, theirs)
		}
		got := &rangeAnswer{kvs: []*keyValue{ours}, more: true}
		if err := (codec{}).Unmarshal(marshal(page), got); err != nil || got.headed != (page.Header != nil) || got.revision != page.Header.GetRevision() || got.more != page.More || got.count != page.Count || len(got.kvs) != len(want) {
			t.Fatalf("%+v, %v; want %+v", got, err, page)
		}
		for i := range want {
			if !equal(got.kvs[i], want[i]) {
				t.Fatalf("%+v, want %+v", got.kvs[i], want[i])
			}
		}
		id, seconds, word := number(), number(), string(text())
		same(&leaseRequest{id: id}, &etcdserverpb.LeaseTimeToLiveRequest{ID: id})
		var l leaseAnswer
		if err := l.read(marshal(&etcdserverpb.LeaseTimeToLiveResponse{Header: page.Header, ID: id, TTL: seconds, GrantedTTL: number(), Keys: [][]byte{text()}})); err != nil || l.seconds != seconds {
			t.Fatal(l, err)
		}
		same(&loginRequest{name: word, password: "p"}, &etcdserverpb.AuthenticateRequest{Name: word, Password: "p"})
		var token loginAnswer
		if err := token.read(marshal(&etcdserverpb.AuthenticateResponse{Header: page.Header, Token: word})); err != nil || token.token != word {
			t.Fatal(token, err)
		}
	}
}

// TestBrokenMessages: messages that etcd's package refuses are refused.
func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	for _, b := range []string{"\x0a", "\x0a\x05ab", "\x10\xff", "\x08\x01", "\x12\x01a", "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x00\x01", "\x1d\x01\x02\x03\x04"} {
		if (&mvccpb.KeyValue{}).Unmarshal([]byte(b)) == nil {
			t.Errorf("%x: etcd's own package reads it", b)
		}
		if (&keyValue{}).read([]byte(b)) == nil {
			t.Errorf("%x: it is read as a key", b)
		}
		if (&rangeAnswer{}).read(append([]byte{0x12, byte(len(b))}, b...)) == nil {
			t.Errorf("%x: it is read as a key in an answer", b)
		}
	}
	// Unknown fields are skipped: each type of field, under an unused number.
	if err := (&keyValue{}).read([]byte("\x98\x06\x01\x99\x06\x01\x02\x03\x04\x05\x06\x07\x08\x9a\x06\x01a\x9d\x06\x01\x02\x03\x04")); err != nil {
		t.Error(err)
	}
	if _, err := (codec{}).Marshal(1); err == nil {
		t.Error("a number is sent")
	}
	if (codec{}).Unmarshal(nil, new(int)) == nil {
		t.Error("a number is read")
	}
}

// TestSays: errors are distinguished as in etcd's own package.
func TestSays(t *testing.T) {
	t.Parallel()
	all := map[string]error{messageCompacted: rpctypes.ErrGRPCCompacted, messageNoLease: rpctypes.ErrGRPCLeaseNotFound, messageTooManyRequests: rpctypes.ErrGRPCRequestTooManyRequests}
	for text, err := range all {
		for other, is := range all {
			if got := hasMessage(is, text); got != (other == text) {
				t.Errorf("%v in %q: %v", is, text, got)
			}
		}
		if hasMessage(nil, text) || hasMessage(errors.New("x"), text) || hasMessage(status.Error(codes.Internal, "x"), text) || !hasMessage(err, text) {
			t.Errorf("%q is found where it is not, or not where it is", text)
		}
	}
}
