package egress_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// tlsListener asks clients for a certificate of the same authority.
func tlsListener(t *testing.T, a *harness.Authority, l net.Listener) net.Listener {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM)
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*a.Server(t)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
}
