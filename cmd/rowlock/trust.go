package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers"
)

// source is a file and the flag that names it.
type source struct{ flag, path string }

// trusted are certificates of authorities, for those who verify and those who publish.
type trusted struct {
	pool  *x509.CertPool
	certs []*x509.Certificate
}

// authorities reads certificates from files, again when they change. Sources without
// a path do not count.
func authorities(log *slog.Logger, sources ...source) (*freshfile.Value[trusted], error) {
	var paths []string
	for _, s := range sources {
		if s.path != "" {
			paths = append(paths, s.path)
		}
	}
	read := func() (trusted, error) {
		t := trusted{pool: x509.NewCertPool()}
		for _, s := range sources {
			if s.path == "" {
				continue
			}
			certs, err := clientcert.LoadAuthorities(s.path)
			if err != nil {
				return trusted{}, fmt.Errorf("%s: %w", s.flag, err)
			}
			for _, c := range certs {
				t.pool.AddCert(c)
			}
			t.certs = append(t.certs, certs...)
		}
		return t, nil
	}
	return freshfile.New(read, func(err error) { log.Warn("changed authorities cannot be read, the last ones stay", "error", err) }, paths...)
}

// poolOf are the authorities as they are when asked for.
func poolOf(v *freshfile.Value[trusted]) func() *x509.CertPool {
	return func() *x509.CertPool { return v.Get().pool }
}

// trust is the loop that publishes whom this server believes; proxies may be nil.
func (o *authOptions) trust(clients, proxies *freshfile.Value[trusted]) func(*server.Server) server.Loop {
	return func(srv *server.Server) server.Loop {
		cfg := srv.Config()
		t := &controllers.Trust{
			API: srv, Cache: srv.Cache, Log: cfg.Log, Clock: cfg.Clock,
			Clients: func() []*x509.Certificate { return clients.Get().certs },
		}
		if proxies != nil {
			t.Proxy = func() controllers.ProxyTrust {
				return controllers.ProxyTrust{
					Authorities: proxies.Get().certs, User: o.proxy.user, UID: o.proxy.uid, Groups: o.proxy.groups,
					ExtraPrefix: o.proxy.extraPrefix, Names: o.proxy.names,
				}
			}
		}
		return t.Run
	}
}
