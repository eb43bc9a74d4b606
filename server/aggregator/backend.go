package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/webhook"
)

// Limits of a connection to an aggregated server.
const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	idlePerHost      = 32
	maxHeaders       = 64 << 10 // bytes of the headers of an answer
	streamBuffer     = 128 << 10
	pingAfter        = 30 * time.Second // of silence on a connection of HTTP/2
	pingTimeout      = 15 * time.Second
)

// ResolveError reports that the Service of an APIService leads nowhere.
type ResolveError struct{ Err error }

func (e *ResolveError) Error() string { return e.Err.Error() }
func (e *ResolveError) Unwrap() error { return e.Err }

// ConfigError reports that an APIService does not describe a server that could be called.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// sourceless is an error of a connection without the address of this server, which its text lacks.
type sourceless struct {
	error
	text string
}

func (e *sourceless) Error() string { return e.text }
func (e *sourceless) Unwrap() error { return e.error }

// withoutSource takes this server's own address out of the text of an error. Clients that read the text need not know it, and its port
// differs each time: a condition with it would be written after each check.
func withoutSource(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Source == nil {
		return err
	}
	return &sourceless{err, strings.Replace(err.Error(), op.Source.String()+"->", "", 1)}
}

// backendKey distinguishes connections that must not be shared.
type backendKey struct {
	namespace, name, bundle string
	insecure                bool
}

func keyOf(s *apiregistrationv1.APIService) backendKey {
	return backendKey{s.Spec.Service.Namespace, s.Spec.Service.Name, string(s.Spec.CABundle), s.Spec.InsecureSkipTLSVerify}
}

// unchecked returns the TLS configuration of availability checks.
func unchecked(s *apiregistrationv1.APIService) backendKey {
	return backendKey{namespace: s.Spec.Service.Namespace, name: s.Spec.Service.Name, insecure: true}
}

// backend keeps the connections to a Service.
type backend struct {
	roots    *x509.CertPool
	insecure bool
	err      error // why there cannot be any

	mu       sync.Mutex
	shown    *tls.Certificate // with which the transports' connections were made
	plain    *http.Transport
	upgrades *http.Transport // HTTP/1.1 alone: its connections can be taken over
}

// RoundTrip sends a request to the server behind an APIService, on behalf of a user.
func (a *Aggregator) RoundTrip(ctx context.Context, s *apiregistrationv1.APIService, who *authx.Identity, r *http.Request) (*http.Response, error) {
	if s.Spec.Service == nil {
		return nil, &ConfigError{fmt.Errorf("APIService %s names no service", s.Name)}
	}
	address, err := a.Address(ctx, s)
	if err != nil {
		return nil, err
	}
	out := r.Clone(ctx)
	if out.Header == nil {
		out.Header = http.Header{}
	}
	return a.send(s, address, who, out)
}

// send sends a request, which it may change, to an address of the server behind an
// APIService.
func (a *Aggregator) send(s *apiregistrationv1.APIService, address string, who *authx.Identity, out *http.Request) (*http.Response, error) {
	b := a.backend(keyOf(s))
	if b.err != nil {
		return nil, &ConfigError{b.err}
	}
	// The path is encoded again, so that what the authorizer saw as a slash is a slash.
	out.URL = &url.URL{Scheme: "https", Host: address, Path: out.URL.Path, RawQuery: out.URL.RawQuery}
	out.RequestURI, out.Host = "", address // a client cannot choose the site of a server
	out.Trailer = nil                      // some servers take trailers for headers
	a.Introduce(out.Header, who)
	if a.cfg.Trace != nil {
		a.cfg.Trace(out.Context(), out.Header)
	}
	resp, err := a.transport(b, s.Spec.Service, relay.Upgrades(out.Header)).RoundTrip(out)
	a.cfg.ObsoleteCertificates.Observe(resp, err)
	return resp, withoutSource(err)
}

func (a *Aggregator) backend(key backendKey) *backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.backends[key]
	if b == nil {
		b = &backend{insecure: key.insecure}
		b.roots, b.err = rootsOf(key.bundle)
		a.backends[key] = b
	}
	return b
}

// forgetUnused gives up connections that no APIService leads to any more.
func (a *Aggregator) forgetUnused(s *Services) {
	used, leading := map[backendKey]bool{}, map[webhook.Service]bool{}
	for _, one := range s.remote {
		used[keyOf(one)], used[unchecked(one)], leading[serviceOf(one)] = true, true, true
	}
	a.mu.Lock()
	var unused []*backend
	for key, b := range a.backends {
		if !used[key] {
			unused = append(unused, b)
			delete(a.backends, key)
		}
	}
	maps.DeleteFunc(a.routes, func(to webhook.Service, _ *route) bool { return !leading[to] })
	a.mu.Unlock()
	for _, b := range unused {
		b.close()
	}
}

// Close ends the connections that are not in use.
func (a *Aggregator) Close() { a.forgetUnused(&Services{}) }

func (b *backend) close() {
	b.mu.Lock()
	plain, upgrades := b.plain, b.upgrades
	b.mu.Unlock()
	if plain != nil {
		plain.CloseIdleConnections()
		upgrades.CloseIdleConnections()
	}
}

// rootsOf returns the authorities of a bundle; nil, for those of the system, if it is empty.
func rootsOf(bundle string) (*x509.CertPool, error) {
	if bundle == "" {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if roots.AppendCertsFromPEM([]byte(bundle)) {
		return roots, nil
	}
	return nil, rules.CABundle([]byte(bundle))
}

// transport returns the transport for a request. When the server's certificate changes, new connections are
// made; the old ones end with their requests in flight.
func (a *Aggregator) transport(b *backend, to *apiregistrationv1.ServiceReference, upgrade bool) *http.Transport {
	shown := a.certificate()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.plain != nil && b.shown != shown {
		b.plain.CloseIdleConnections()
		b.upgrades.CloseIdleConnections()
		b.plain = nil
	}
	if b.plain == nil {
		conf := &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: b.roots, InsecureSkipVerify: b.insecure,
			ServerName: to.Name + "." + to.Namespace + ".svc",
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if shown == nil {
					return &tls.Certificate{}, nil
				}
				return shown, nil
			},
		}
		b.shown, b.plain, b.upgrades = shown, a.newTransport(conf, true), a.newTransport(conf, false)
	}
	if upgrade {
		return b.upgrades
	}
	return b.plain
}

func (a *Aggregator) certificate() *tls.Certificate {
	if a.cfg.Certificate == nil {
		return nil
	}
	return a.cfg.Certificate()
}

func (a *Aggregator) newTransport(conf *tls.Config, two bool) *http.Transport {
	dial := a.cfg.Dial
	if dial == nil {
		dial = Dial
	}
	t := &http.Transport{
		DialContext: dial, TLSClientConfig: conf.Clone(), TLSHandshakeTimeout: handshakeTimeout,
		IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: idlePerHost, MaxResponseHeaderBytes: maxHeaders,
		DisableCompression: true, // answers are passed on unchanged
		Protocols:          new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(two)
	if two {
		// A client that reads slowly must not make the server buffer much, and a dead connection must not
		// pass for a quiet one.
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer, SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	}
	return t
}

// Dial connects to an address at which an aggregated server may be. A host that is a name
// is one of a Service of type ExternalName, and may mean this machine.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	_, notIP := netip.ParseAddr(host)
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout, Control: func(_, to string, _ syscall.RawConn) error {
		return mayDial(to, notIP != nil)
	}}
	return d.DialContext(ctx, network, address)
}

// Through connects through a proxy. The same rules apply to a literal address; host names are resolved by the
// proxy only.
func Through(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	if dial == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if _, notIP := netip.ParseAddr(host); notIP == nil {
			if err := mayDial(address, false); err != nil {
				return nil, err
			}
		}
		return dial(ctx, network, address)
	}
}

// mayDial refuses addresses at which only this machine, or its link, answers: cloud
// metadata services are at such.
func mayDial(address string, loopback bool) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := to.Addr().Unmap()
	if ip.IsGlobalUnicast() || loopback && ip.IsLoopback() {
		return nil
	}
	return errors.New("address not allowed")
}
