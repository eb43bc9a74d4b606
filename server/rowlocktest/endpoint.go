package rowlocktest

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint serves a server over a network, with TLS.
type Endpoint struct {
	URL string
	CA  []byte // PEM of the authority that has signed its certificate
	srv *Server
}

// Listen opens a port of 127.0.0.1 until the test ends: for kubectl, for other processes, and for exec,
// port-forward and other connections. Clients authenticate with certificates or tokens.
func (s *Server) Listen() *Endpoint {
	s.t.Helper()
	by, err := newAuthority()
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatalf("rowlocktest: %v", err)
	}
	front := &http.Server{
		Handler: s.plane.Handler(), ReadHeaderTimeout: 30 * time.Second, ErrorLog: stdlog.New(discard{}, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{by.serving}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
	}
	ended := make(chan error, 1)
	go func() { ended <- front.ServeTLS(listener, "", "") }()
	s.t.Cleanup(func() {
		_ = front.Close() // the server waits for requests in flight
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			s.t.Errorf("rowlocktest: listening ended with %v", err)
		}
	})
	return &Endpoint{URL: "https://" + listener.Addr().String(), CA: by.pem, srv: s}
}

type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Config is for clients that may do everything.
func (e *Endpoint) Config() *rest.Config {
	e.srv.t.Helper()
	return e.As("system:admin", "system:masters")
}

// As is for clients that are a user, in groups, by a client certificate.
func (e *Endpoint) As(user string, groups ...string) *rest.Config {
	e.srv.t.Helper()
	by, err := newAuthority()
	if err != nil {
		e.srv.t.Fatal(err)
	}
	cert, key, err := by.issue(&x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		e.srv.t.Fatalf("rowlocktest: a certificate for %s: %v", user, err)
	}
	return &rest.Config{Host: e.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: e.CA, CertData: cert, KeyData: key}}
}

// WithToken is for clients that are a user, in groups, by a bearer token.
func (e *Endpoint) WithToken(user string, groups ...string) *rest.Config {
	return &rest.Config{Host: e.URL, QPS: -1, BearerToken: e.srv.Token(user, groups...), TLSClientConfig: rest.TLSClientConfig{CAData: e.CA}}
}

// Kubeconfig writes the result of Config, As or WithToken to a file for kubectl and other processes, in a
// temporary folder of the test, and returns its path.
func (e *Endpoint) Kubeconfig(cfg *rest.Config) string {
	e.srv.t.Helper()
	const name = "rowlocktest"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: e.URL, CertificateAuthorityData: e.CA}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	text, err := clientcmd.Write(*file)
	path := filepath.Join(e.srv.t.TempDir(), "kubeconfig")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		e.srv.t.Fatalf("rowlocktest: %v", err)
	}
	return path
}
