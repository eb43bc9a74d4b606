// Package kmstest is a KMS plugin for tests. It serves both versions of the protocol on a unix socket, and hangs,
// fails and lies on request.
//
// Goroutines: those of its gRPC servers, which end with the test that started them.
package kmstest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/kms/apis/v1beta1"
	v2 "k8s.io/kms/apis/v2"
)

// Behavior configures the behaviour of a plugin. The zero Behavior is correct.
type Behavior struct {
	Hang        bool    // nothing is answered before the caller goes away
	CallsHang   bool    // only Encrypt and Decrypt hang
	Err         error   // all that is answered
	Refuse      error   // result of Decrypt
	Healthz     *string // instead of "ok"
	Version     *string // instead of "v2", "v1beta1"
	StatusKeyID *string // instead of the key id, in Status alone
	Cipher      []byte  // result of Encrypt
	Plain       []byte  // result of Decrypt
	Naked       bool    // Encrypt returns its input
	Annotations map[string][]byte
}

// Plugin is a KMS plugin. It decrypts only values of its own keys.
type Plugin struct {
	mu       sync.Mutex
	keyID    string
	behavior Behavior
	calls    map[string]int
	waiting  int
	open     int // connections

	path   string
	server *grpc.Server
}

// New returns a plugin whose key is named so.
func New(keyID string) *Plugin { return &Plugin{keyID: keyID, calls: map[string]int{}} }

// Serve listens until the test ends, and returns the endpoint.
func (p *Plugin) Serve(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // a test's own may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	p.path = filepath.Join(dir, "s")
	t.Cleanup(func() {
		p.Stop()
		_ = os.RemoveAll(dir)
	})
	p.Start(t)
	return p.Endpoint()
}

// Endpoint returns where the plugin listens.
func (p *Plugin) Endpoint() string { return "unix://" + p.path }

// V2 answers without a socket.
func (p *Plugin) V2() v2.KeyManagementServiceServer { return two{Plugin: p} }

// Start listens again after Stop.
func (p *Plugin) Start(t testing.TB) {
	t.Helper()
	_ = os.Remove(p.path)
	listener, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	v2.RegisterKeyManagementServiceServer(server, two{Plugin: p})
	v1.RegisterKeyManagementServiceServer(server, one{Plugin: p})
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(counted{listener, p}) }()
}

// counted is a listener that counts its connections.
type counted struct {
	net.Listener
	p *Plugin
}

func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.p.connected(1)
	return &connection{Conn: conn, p: l.p}, nil
}

type connection struct {
	net.Conn
	p    *Plugin
	once sync.Once
}

func (c *connection) Close() error {
	c.once.Do(func() { c.p.connected(-1) })
	return c.Conn.Close()
}

func (p *Plugin) connected(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += n
}

// Connections returns how many there are.
func (p *Plugin) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Stop ends all calls and stops listening, which removes the socket.
func (p *Plugin) Stop() {
	p.mu.Lock()
	server := p.server
	p.server = nil
	p.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// Rotate has the plugin encrypt with another key from now on.
func (p *Plugin) Rotate(keyID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keyID = keyID
}

// SetBehavior changes how the plugin behaves.
func (p *Plugin) SetBehavior(m Behavior) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behavior = m
}

// Calls returns how often a method was called: Status, Encrypt, Decrypt or Version.
func (p *Plugin) Calls(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[method]
}

// Waiting returns how many calls hang.
func (p *Plugin) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

func (p *Plugin) enter(ctx context.Context, method string) (Behavior, string, error) {
	p.mu.Lock()
	p.calls[method]++
	m, keyID := p.behavior, p.keyID
	hang := m.Hang || m.CallsHang && (method == "Encrypt" || method == "Decrypt")
	if hang {
		p.waiting++
	}
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
		return m, keyID, ctx.Err()
	}
	return m, keyID, m.Err
}

func aead(keyID string) cipher.AEAD {
	key := sha256.Sum256([]byte("of " + keyID))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return gcm
}

func (p *Plugin) encrypt(ctx context.Context, plain []byte) (sealed []byte, keyID string, m Behavior, err error) {
	m, keyID, err = p.enter(ctx, "Encrypt")
	switch {
	case err != nil:
		return nil, "", m, err
	case m.Naked:
		return plain, keyID, m, nil
	case m.Cipher != nil:
		return m.Cipher, keyID, m, nil
	}
	name := []byte(keyID)
	sealed = append([]byte{byte(len(name))}, name...)
	return append(sealed, aead(keyID).Seal(nil, nil, plain, nil)...), keyID, m, nil
}

func (p *Plugin) decrypt(ctx context.Context, sealed []byte) ([]byte, string, error) {
	m, _, err := p.enter(ctx, "Decrypt")
	switch {
	case err != nil:
		return nil, "", err
	case m.Refuse != nil:
		return nil, "", m.Refuse
	case m.Plain != nil:
		return m.Plain, "", nil
	}
	if len(sealed) == 0 || len(sealed) < 1+int(sealed[0]) {
		return nil, "", status.Error(codes.InvalidArgument, "no ciphertext of mine")
	}
	keyID := string(sealed[1:][:sealed[0]])
	plain, err := aead(keyID).Open(nil, nil, sealed[1+len(keyID):], nil)
	if err != nil {
		return nil, "", status.Error(codes.InvalidArgument, "no ciphertext of mine")
	}
	return plain, keyID, nil
}

func or(set *string, usual string) string {
	if set != nil {
		return *set
	}
	return usual
}

type two struct {
	*Plugin
	v2.UnsafeKeyManagementServiceServer
}

func (p two) Status(ctx context.Context, _ *v2.StatusRequest) (*v2.StatusResponse, error) {
	m, keyID, err := p.enter(ctx, "Status")
	if err != nil {
		return nil, err
	}
	return &v2.StatusResponse{Version: or(m.Version, "v2"), Healthz: or(m.Healthz, "ok"), KeyId: or(m.StatusKeyID, keyID)}, nil
}

func (p two) Encrypt(ctx context.Context, r *v2.EncryptRequest) (*v2.EncryptResponse, error) {
	sealed, keyID, m, err := p.encrypt(ctx, r.Plaintext)
	if err != nil {
		return nil, err
	}
	annotations := map[string][]byte{"of.kms.example.com": []byte(keyID)}
	if m.Annotations != nil {
		annotations = m.Annotations
	}
	return &v2.EncryptResponse{Ciphertext: sealed, KeyId: keyID, Annotations: annotations}, nil
}

func (p two) Decrypt(ctx context.Context, r *v2.DecryptRequest) (*v2.DecryptResponse, error) {
	plain, keyID, err := p.decrypt(ctx, r.Ciphertext)
	if err != nil {
		return nil, err
	}
	if keyID != "" && keyID != r.KeyId {
		return nil, status.Error(codes.InvalidArgument, "encrypted with another key")
	}
	return &v2.DecryptResponse{Plaintext: plain}, nil
}

type one struct {
	*Plugin
	v1.UnsafeKeyManagementServiceServer
}

func (p one) Version(ctx context.Context, _ *v1.VersionRequest) (*v1.VersionResponse, error) {
	m, _, err := p.enter(ctx, "Version")
	if err != nil {
		return nil, err
	}
	return &v1.VersionResponse{Version: or(m.Version, "v1beta1"), RuntimeName: "kmstest", RuntimeVersion: "0.0.1"}, nil
}

func (p one) Encrypt(ctx context.Context, r *v1.EncryptRequest) (*v1.EncryptResponse, error) {
	sealed, _, _, err := p.encrypt(ctx, r.Plain)
	if err != nil {
		return nil, err
	}
	return &v1.EncryptResponse{Cipher: sealed}, nil
}

func (p one) Decrypt(ctx context.Context, r *v1.DecryptRequest) (*v1.DecryptResponse, error) {
	plain, _, err := p.decrypt(ctx, r.Cipher)
	if err != nil {
		return nil, err
	}
	return &v1.DecryptResponse{Plain: plain}, nil
}
