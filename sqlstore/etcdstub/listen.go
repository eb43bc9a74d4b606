package etcdstub

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
)

// TLS are the files for https: those of a server, or the certificate and authorities of a client.
type TLS struct {
	CertFile, KeyFile string
	CAFile            string // of a server: clients must show a certificate of it
}

func (t TLS) pool() (*x509.CertPool, error) {
	if t.CAFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: there is no certificate in it", t.CAFile)
	}
	return pool, nil
}

func (t TLS) certificates() ([]tls.Certificate, error) {
	if t.CertFile == "" && t.KeyFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	return []tls.Certificate{pair}, err
}

func (t TLS) server() (*tls.Config, error) {
	certs, err := t.certificates()
	if err != nil {
		return nil, err
	}
	if len(certs) == 0 {
		return nil, errors.New("https needs --cert-file and --key-file")
	}
	pool, err := t.pool()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{Certificates: certs, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if pool != nil {
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

func (t TLS) client() (*tls.Config, error) {
	certs, err := t.certificates()
	if err != nil {
		return nil, err
	}
	pool, err := t.pool()
	return &tls.Config{Certificates: certs, RootCAs: pool, MinVersion: tls.VersionTLS12}, err
}

// listen opens the address of a URL.
func listen(text string, files TLS) (net.Listener, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("want http://HOST:PORT or https://HOST:PORT")
	}
	if u.Port() == "" {
		return nil, errors.New("the port is missing")
	}
	l, err := net.Listen("tcp", u.Host)
	if err != nil || u.Scheme == "http" {
		return l, err
	}
	c, err := files.server()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return tls.NewListener(l, c), nil
}

// limited accepts a connection when there is a place for it.
type limited struct {
	net.Listener
	places chan struct{}
}

func (l limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placed{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = c.Close() // one too many
		}
	}
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
