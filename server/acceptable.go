package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
)

// What a client may show of itself before anybody knows who it is. Package crypto/tls
// takes no more than 256 KiB of certificates, and parses them all.
const (
	maxChain      = 10       // certificates
	maxChainBytes = 64 << 10 // of all of them together
)

// acceptable gives each handshake a configuration that names the authorities whose
// certificates a client may show, as they are at that moment. There is one for each
// version of the authorities, whatever the number of handshakes.
func acceptable(base *tls.Config, authorities func() *x509.CertPool) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	var last atomic.Pointer[tls.Config]
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool := authorities()
		if c := last.Load(); c != nil && c.ClientCAs == pool {
			return c, nil
		}
		c := base.Clone()
		c.ClientCAs = pool // named alone: who is trusted the authenticators say
		last.Store(c)
		return c, nil
	}
}

// shortChain refuses a handshake in which the client shows more than anybody needs.
func shortChain(raw [][]byte, _ [][]*x509.Certificate) error {
	size := 0
	for _, c := range raw {
		size += len(c)
	}
	if len(raw) > maxChain || size > maxChainBytes {
		return fmt.Errorf("the client shows %d certificates of %d bytes; at most %d of %d are looked at", len(raw), size, maxChain, maxChainBytes)
	}
	return nil
}
