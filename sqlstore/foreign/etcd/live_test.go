package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
)

// member answers as etcd does, from a list of keys in order.
type member struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedLeaseServer
	etcdserverpb.UnimplementedAuthServer
	t          testing.TB
	head       int64
	kvs        []*mvccpb.KeyValue
	calls      atomic.Int64
	compactAt  int64 // call from which on the revision is compacted; 0: never
	busyAt     int64 // call that is one too many; 0: none
	miscounts  int64 // added to the number of keys in its answers
	repeats    bool  // each page begins with the first key again
	password   string
	logins     atomic.Int64
	forgetsAt  int64 // call at which the token is forgotten
	leaseCalls atomic.Int64
}

func (m *member) Range(ctx context.Context, req *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	call := m.calls.Add(1)
	if m.password != "" {
		md, _ := metadata.FromIncomingContext(ctx)
		if token := md.Get("token"); len(token) != 1 || token[0] != fmt.Sprint("token-", m.logins.Load()) || call == m.forgetsAt {
			return nil, rpctypes.ErrGRPCInvalidAuthToken
		}
	}
	answer := &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{Revision: m.head}}
	if req.CountOnly {
		for _, kv := range m.kvs {
			if string(kv.Key) >= string(req.Key) && string(kv.Key) < string(req.RangeEnd) {
				answer.Count++
			}
		}
		answer.Count += m.miscounts
		return answer, nil
	}
	if req.Revision != 500 {
		m.t.Errorf("asked for revision %d", req.Revision)
	}
	if m.compactAt > 0 && call >= m.compactAt {
		return nil, rpctypes.ErrGRPCCompacted
	}
	if call == m.busyAt {
		return nil, rpctypes.ErrGRPCRequestTooManyRequests
	}
	m.head++ // the cluster lives on
	from := sort.Search(len(m.kvs), func(i int) bool { return string(m.kvs[i].Key) >= string(req.Key) })
	if m.repeats {
		from = 0
	}
	for _, kv := range m.kvs[from:] {
		if string(kv.Key) >= string(req.RangeEnd) {
			break
		}
		if int64(len(answer.Kvs)) == req.Limit {
			answer.More = true
			break
		}
		if req.KeysOnly {
			kv = &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Lease: kv.Lease}
		}
		answer.Kvs = append(answer.Kvs, kv)
	}
	return answer, nil
}

func (m *member) LeaseTimeToLive(_ context.Context, req *etcdserverpb.LeaseTimeToLiveRequest) (*etcdserverpb.LeaseTimeToLiveResponse, error) {
	m.leaseCalls.Add(1)
	if req.ID == 404 {
		return &etcdserverpb.LeaseTimeToLiveResponse{ID: 404, TTL: -1}, nil
	}
	return &etcdserverpb.LeaseTimeToLiveResponse{ID: req.ID, TTL: 3600}, nil
}

func (m *member) Authenticate(_ context.Context, req *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	if req.Name != "reader" || req.Password != m.password {
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	return &etcdserverpb.AuthenticateResponse{Token: fmt.Sprint("token-", m.logins.Add(1))}, nil
}

// serve starts the member and returns its address.
func (m *member) serve(t testing.TB, options ...grpc.ServerOption) string {
	t.Helper()
	m.t = t
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(options, grpc.MaxSendMsgSize(1<<30))...)
	etcdserverpb.RegisterKVServer(s, m)
	etcdserverpb.RegisterLeaseServer(s, m)
	etcdserverpb.RegisterAuthServer(s, m)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// newMember has n keys and one outside the prefix.
func newMember(n, bytesEach int) *member {
	m := &member{head: 500}
	for i := range n {
		one := kv(fmt.Sprintf("/registry/k%05d", i), strings.Repeat("v", bytesEach), int64(i%400+1))
		one.ModRevision = 450
		if i%100 == 0 {
			one.Lease = 7
		}
		m.kvs = append(m.kvs, one)
	}
	m.kvs = append(m.kvs, kv("compact_rev_key", "", 1))
	return m
}

func read(t testing.TB, c etcd.Config) (list []foreign.Entry, revision int64, err error) {
	t.Helper()
	l, err := etcd.Open(t.Context(), c)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for e, err := range l.Entries(t.Context()) {
		if err != nil {
			return list, 0, err
		}
		list = append(list, e)
	}
	return list, l.Revision(), nil
}

func TestLiveIsReadAtOneRevision(t *testing.T) {
	for _, size := range []int{10, 300_000} {
		m := newMember(1000, size)
		const dead = "127.0.0.1:1" // an unused port
		got, at, err := read(t, etcd.Config{Endpoints: []string{dead, "http://" + m.serve(t)}})
		if err != nil || at != 500 || len(got) != 1000 {
			t.Fatalf("%d keys at %d: %v", len(got), at, err)
		}
		for i, e := range got {
			if want := m.kvs[i]; e.Key != string(want.Key) || len(e.Value) != size || e.ModRevision != 450 || e.CreateRevision != want.CreateRevision || e.Unread != nil {
				t.Fatalf("key %d is %q", i, e.Key)
			}
			if left := time.Until(e.ExpiresAt); e.ExpiresAt.IsZero() != (i%100 != 0) || i%100 == 0 && (left < 50*time.Minute || left > time.Hour) {
				t.Errorf("%s ends in %s", e.Key, left)
			}
		}
		if m.leaseCalls.Load() != 1 {
			t.Errorf("a lease was asked for %d times", m.leaseCalls.Load())
		}
		if n := m.calls.Load(); size == 10 && n > 8 || size > 10 && n < 10 {
			t.Errorf("%d calls for keys of %d bytes", n, size)
		}
	}
}

func TestLiveRefusesWhatIsWrong(t *testing.T) {
	compacted := newMember(5000, 10)
	compacted.compactAt = 3
	if got, _, err := read(t, etcd.Config{Endpoints: []string{compacted.serve(t)}}); !errors.Is(err, etcd.ErrCompacted) || len(got) == 0 {
		t.Errorf("%d keys, %v", len(got), err)
	}
	repeats := newMember(5000, 10)
	repeats.repeats = true
	if _, _, err := read(t, etcd.Config{Endpoints: []string{repeats.serve(t)}}); err == nil || !strings.Contains(err.Error(), "not asked for") {
		t.Errorf("keys again and again: %v", err)
	}
	for miscounts, message := range map[int64]string{-1: "more than the 4999 keys", 1: "5000 keys, and said that there are 5001"} {
		other := newMember(5000, 10)
		other.miscounts = miscounts
		if _, _, err := read(t, etcd.Config{Endpoints: []string{other.serve(t)}}); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%d keys more than it sends: %v", miscounts, err)
		}
	}
	huge := newMember(3, 10)
	huge.kvs[1].Value = make([]byte, foreign.MaxValue+1)
	got, _, err := read(t, etcd.Config{Endpoints: []string{huge.serve(t)}})
	if err != nil || len(got) != 3 || got[1].Unread == nil || got[1].Value != nil {
		t.Errorf("%d keys, %v", len(got), err)
	}
	ended := newMember(1, 10)
	ended.kvs[0].Lease = 404
	if got, _, err := read(t, etcd.Config{Endpoints: []string{ended.serve(t)}}); err != nil || len(got) != 1 || time.Until(got[0].ExpiresAt) > 0 || got[0].ExpiresAt.IsZero() {
		t.Errorf("a lease that ended: %v, %v", got, err)
	}
}

// TestLiveFlood: a value that is longer than an answer may be is skipped and named, and
// the others are read; so long a key ends the reading with an error that has the range.
func TestLiveFlood(t *testing.T) {
	m := newMember(300, 10)
	m.kvs[150].Value = make([]byte, maxAnswer+1)
	got, _, err := read(t, etcd.Config{Endpoints: []string{m.serve(t)}})
	if err != nil || len(got) != 300 {
		t.Fatalf("%d keys, %v", len(got), err)
	}
	for i, e := range got {
		var keyed *foreign.KeyError
		if long := i == 150; errors.As(e.Unread, &keyed) != long || (e.Value == nil) != long || long && keyed.Key != "/registry/k00150" {
			t.Errorf("%s: %d bytes, %v", e.Key, len(e.Value), e.Unread)
		}
	}
	if n := m.calls.Load(); n > 20 {
		t.Errorf("%d calls", n)
	}
	named := newMember(3, 10)
	named.kvs[1].Key = []byte("/registry/k00001" + strings.Repeat("k", maxAnswer))
	got, _, err = read(t, etcd.Config{Endpoints: []string{named.serve(t)}})
	if err == nil || len(got) != 1 || !strings.Contains(err.Error(), `from "/registry/k00000\x00" on`) || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("a key of 64 MiB: %d keys, %v", len(got), err)
	}
	busy := newMember(3, 10)
	busy.busyAt = 2
	if got, _, err := read(t, etcd.Config{Endpoints: []string{busy.serve(t)}}); err == nil || len(got) != 0 || !strings.Contains(err.Error(), "too many requests") {
		t.Errorf("too many requests: %d keys, %v", len(got), err)
	}
}

// maxAnswer bounds the bytes of an answer.
const maxAnswer = 64 << 20

// authority makes a certificate for 127.0.0.1 that signs itself, as files.
func authority(t testing.TB) (cert, key string, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	certPEM, keyPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := errors.Join(os.WriteFile(cert, certPEM, 0o600), os.WriteFile(key, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return cert, key, pair
}

func TestLiveByTLSWithPassword(t *testing.T) {
	cert, key, pair := authority(t)
	pool := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	m := newMember(1000, 10)
	m.password, m.forgetsAt = "hunter2", 3
	address := m.serve(t, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})))
	good := etcd.Config{Endpoints: []string{"https://" + address}, CAFile: cert, CertFile: cert, KeyFile: key, User: "reader", Password: "hunter2"}
	if got, _, err := read(t, good); err != nil || len(got) != 1000 || m.logins.Load() != 2 {
		t.Errorf("%d keys, %d logins, %v", len(got), m.logins.Load(), err)
	}
	for name, c := range map[string]struct {
		change  func(c *etcd.Config)
		message string
	}{
		"no endpoint":       {func(c *etcd.Config) { c.Endpoints = nil }, "etcd endpoints"},
		"a path":            {func(c *etcd.Config) { c.Endpoints = []string{"https://h:1/x"} }, "etcd endpoints"},
		"a secret":          {func(c *etcd.Config) { c.Endpoints = []string{"https://a:hunter2@h:1"} }, "etcd endpoints"},
		"a scheme":          {func(c *etcd.Config) { c.Endpoints = []string{"unix://h:1"} }, "unix"},
		"no port":           {func(c *etcd.Config) { c.Endpoints = []string{"h"} }, "etcd endpoints"},
		"plain, with files": {func(c *etcd.Config) { c.Endpoints = []string{"http://h:1"} }, "no TLS"},
		"no file":           {func(c *etcd.Config) { c.CAFile += "x" }, "--etcd-cafile"},
		"no certificate":    {func(c *etcd.Config) { c.CAFile = key }, "--etcd-cafile"},
		"no key":            {func(c *etcd.Config) { c.KeyFile = "" }, "--etcd-keyfile"},
		"another's key":     {func(c *etcd.Config) { c.KeyFile = cert }, "--etcd-keyfile"},
		"a wrong password":  {func(c *etcd.Config) { c.Password = "hunter3" }, "--etcd-user"},
		"a plain password": {func(c *etcd.Config) {
			*c = etcd.Config{Endpoints: []string{address}, User: "reader", Password: "hunter2"}
		}, "--etcd-user"},
	} {
		config := good
		c.change(&config)
		if _, _, err := read(t, config); err == nil || !strings.Contains(err.Error(), c.message) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v, want %q in it", name, err, c.message)
		}
	}
}
