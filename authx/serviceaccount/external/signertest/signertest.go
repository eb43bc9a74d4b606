// Package signertest is a signer of service account tokens for tests: it holds keys,
// implements ExternalJWTSigner on a unix socket, and can be made to return wrong answers and to fail.
//
// Goroutines: those of its gRPC server, which end with the test that started it.
package signertest

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/externaljwt/apis/v1alpha1"
)

// Behavior configures the behaviour of a signer. The zero Behavior is correct.
type Behavior struct {
	Err     error           // all that is answered
	Stalls  <-chan struct{} // keys are named once it is closed
	Header  map[string]any  // fields of the header of tokens, in place of its own
	Naked   bool            // tokens have no signature
	Keys    *v1alpha1.Key   // additional header fields
	Hint    int64           // after how many seconds its keys are fetched again; 0: an hour
	Longest int64           // seconds that its tokens may live; 0: a day
	Hidden  map[string]bool // keys that are not for discovery
}

// Signer is a signer. The last of its keys signs.
type Signer struct {
	path   string
	server *grpc.Server

	mu     sync.Mutex
	manner Behavior
	ids    []string
	keys   map[string]crypto.Signer
	calls  map[string]int
}

// New returns a signer with a key of this id.
func New(t testing.TB, id string) *Signer {
	t.Helper()
	s := &Signer{keys: map[string]crypto.Signer{}, calls: map[string]int{}}
	s.Rotate(t, id)
	return s
}

// Rotate makes a key, which signs from now on.
func (s *Signer) Rotate(t testing.TB, id string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids, s.keys[id] = append(s.ids, id), key
}

// Retire forgets a key, which no longer verifies tokens.
func (s *Signer) Retire(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = slices.DeleteFunc(s.ids, func(other string) bool { return other == id })
	delete(s.keys, id)
}

// SetBehavior changes its behaviour.
func (s *Signer) SetBehavior(m Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manner = m
}

// Calls returns how often a method was called.
func (s *Signer) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Serve listens until the test ends, and returns the path of the socket.
func (s *Signer) Serve(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "jwt") // a test's own may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s.path = filepath.Join(dir, "s")
	t.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	s.Start(t)
	return s.path
}

// Start listens again after Stop.
func (s *Signer) Start(t testing.TB) {
	t.Helper()
	_ = os.Remove(s.path)
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	s.server = grpc.NewServer()
	v1alpha1.RegisterExternalJWTSignerServer(s.server, answers{s: s})
	go func(server *grpc.Server) { _ = server.Serve(listener) }(s.server)
}

// Stop goes away.
func (s *Signer) Stop() { s.server.Stop() }

// called counts a call, and returns how to behave.
func (s *Signer) called(method string) (Behavior, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
	return s.manner, s.manner.Err
}

type answers struct {
	v1alpha1.UnsafeExternalJWTSignerServer
	s *Signer
}

func (a answers) Metadata(context.Context, *v1alpha1.MetadataRequest) (*v1alpha1.MetadataResponse, error) {
	m, err := a.s.called("Metadata")
	m.Longest = cmp.Or(m.Longest, 24*3600)
	return &v1alpha1.MetadataResponse{MaxTokenExpirationSeconds: m.Longest}, err
}

func (a answers) FetchKeys(ctx context.Context, _ *v1alpha1.FetchKeysRequest) (*v1alpha1.FetchKeysResponse, error) {
	m, err := a.s.called("FetchKeys")
	if err != nil {
		return nil, err
	}
	if m.Stalls != nil {
		select {
		case <-m.Stalls:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	m.Hint = cmp.Or(m.Hint, 3600)
	response := &v1alpha1.FetchKeysResponse{DataTimestamp: timestamppb.Now(), RefreshHintSeconds: m.Hint}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	for _, id := range a.s.ids {
		der, err := x509.MarshalPKIXPublicKey(a.s.keys[id].Public())
		if err != nil {
			return nil, err
		}
		response.Keys = append(response.Keys, &v1alpha1.Key{KeyId: id, Key: der, ExcludeFromOidcDiscovery: m.Hidden[id]})
	}
	if m.Keys != nil {
		response.Keys = append(response.Keys, m.Keys)
	}
	return response, nil
}

func (a answers) Sign(_ context.Context, req *v1alpha1.SignJWTRequest) (*v1alpha1.SignJWTResponse, error) {
	m, err := a.s.called("Sign")
	if err != nil {
		return nil, err
	}
	a.s.mu.Lock()
	id := a.s.ids[len(a.s.ids)-1]
	key := a.s.keys[id]
	a.s.mu.Unlock()
	header := map[string]any{"alg": "ES256", "kid": id, "typ": "JWT"}
	for name, value := range m.Header {
		header[name] = value
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	response := &v1alpha1.SignJWTResponse{Header: base64.RawURLEncoding.EncodeToString(text)}
	if m.Naked {
		return response, nil
	}
	signature, err := sign(key, response.Header+"."+req.Claims)
	response.Signature = base64.RawURLEncoding.EncodeToString(signature)
	return response, err
}

// sign returns a signature of ES256.
func sign(key crypto.Signer, text string) ([]byte, error) {
	digest := crypto.SHA256.New()
	digest.Write([]byte(text))
	r, v, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest.Sum(nil))
	if err != nil {
		return nil, err
	}
	both := make([]byte, 64)
	r.FillBytes(both[:32])
	v.FillBytes(both[32:])
	return both, nil
}
