// Package servertest runs a whole API server inside a test: every filter, every loop and the listener, on a
// store in memory.
//
// It promises: Start returns a server that is ready, and the end of the test waits for everything that the
// server started, and fails the test if any of it ended with an error.
package servertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// Token is the bearer token of user admin in group system:masters.
const Token = "admintoken"

// Server is a running server.
type Server struct {
	*server.Server
	Store  *sqlstore.Store
	URL    string
	Client *http.Client // trusts the server and adds no credentials
	t      testing.TB
}

// Start runs a server for a test. Without options it knows only the bearer of Token, with all permissions,
// and runs the controllers that every server has. Options change its Config before it is made, in their
// order.
func Start(t testing.TB, options ...func(*server.Config)) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// This server also presents the certificate of package httptest.
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(borrowed.Certificate())
	cfg := server.Config{
		Catalogue:     kinds.NewCatalogue(builtin.Resources()),
		Authenticator: authx.Chain{authx.Bearer{Tokens: Tokens{Token: Admin}}},
		Authorizer:    authx.SystemMasters{},
		TLS:           &tls.Config{Certificates: borrowed.TLS.Certificates},
		Listener:      listener,
		Address:       listener.Addr().String(),
	}
	for _, change := range options {
		change(&cfg)
	}
	if cfg.Store == nil {
		cfg.Store = sqlstore.New(storetest.NewShared().Open(), sqlstore.Config{})
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	Eventually(t, s.Ready)
	return &Server{Server: s, Store: cfg.Store, URL: "https://" + listener.Addr().String(), Client: client, t: t}
}

// On returns an option: the server keeps its state in a database of the test's own.
func On(driver sqlstore.Driver, cfg sqlstore.Config) func(*server.Config) {
	return func(c *server.Config) { c.Store = sqlstore.New(driver, cfg) }
}

// Idle is an option: no controller does anything.
func Idle(c *server.Config) { c.Controllers.Runs = func(string) bool { return false } }

// WithoutTLS returns the URL of one more listener of the server's, which serves only HTTP/1.1,
// without TLS.
func (s *Server) WithoutTLS() string {
	front := httptest.NewServer(s.Handler())
	s.t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL
}

// Do makes a request of the admin, in process. Headers are names and values in turn; a
// body is JSON unless they name another type.
func (s *Server) Do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+Token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// Must is Do for requests that prepare a test, and have to succeed.
func (s *Server) Must(method, path, body string, header ...string) []byte {
	s.t.Helper()
	w := s.Do(method, path, body, header...)
	if w.Code >= http.StatusMultipleChoices {
		s.t.Fatalf("%s %s: %d %s\n%s", method, path, w.Code, w.Body, body)
	}
	return w.Body.Bytes()
}

// patience is the time limit on a busy machine.
const patience = 2 * time.Minute

// Eventually waits until something is true.
func Eventually(t testing.TB, what func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !what() {
		select {
		case <-deadline.C:
			t.Fatal("it did not come true")
		case <-tick.C:
		}
	}
}
