// Package egress makes connections through proxies, for servers outside the network of their nodes, webhooks
// and aggregated API servers.
//
// Dialling succeeds or fails within dialTimeout; it reads no more than maxAnswer bytes of a proxy's answer;
// it refuses a host name that could be read as anything but an address, since host names come from objects
// that clients write.
package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/tracing"
)

const (
	dialTimeout = 30 * time.Second
	maxAnswer   = 16 << 10 // bytes of a proxy's answer before the connection is established
	maxStatus   = 256      // bytes of it in an error
)

// Dial makes a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Selector holds the proxies of networks. The nil Selector has none.
type Selector struct {
	dials map[string]Dial

	metrics  *metricset.Set
	starts   *prometheus.CounterVec
	times    *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

// New makes the dialers of a configuration.
func New(c *Config) (*Selector, error) {
	labels, m := []string{"protocol", "transport"}, metricset.New("apiserver_egress_dialer_")
	s := &Selector{
		dials: map[string]Dial{}, metrics: m,
		starts:   m.Counters("dial_start_total", "Connections that were begun through a proxy.", labels...),
		times:    m.Histograms("dial_duration_seconds", "How long connections took to stand that were made through a proxy.", []float64{0.005, 0.025, 0.1, 0.5, 2.5, 12.5}, labels...),
		failures: m.Counters("dial_failure_count", "Connections that failed, at the proxy (connect) or behind it (proxy).", append(labels, "stage")...),
	}
	for i := range c.EgressSelections {
		one := &c.EgressSelections[i]
		name := strings.ToLower(one.Name)
		if one.Connection.ProxyProtocol == direct {
			continue
		}
		p, err := proxyOf(&one.Connection)
		if err != nil {
			return nil, fmt.Errorf("failed to setup egress selector: failed to create dialer for egressSelection %q: %w", name, err)
		}
		s.dials[name] = s.through(p)
	}
	return s, nil
}

// To returns how connections to a network are made; nil: directly.
func (s *Selector) To(network string) Dial {
	if s == nil {
		return nil
	}
	return s.dials[network]
}

// Collectors returns the metrics.
func (s *Selector) Collectors() []prometheus.Collector {
	if s == nil {
		return nil
	}
	return s.metrics.Collectors()
}

// proxy is one egress proxy.
type proxy struct {
	protocol, transport string // as metrics call them
	connect             func(ctx context.Context) (tunnel, error)
}

// tunnel is a connection to a proxy that becomes a connection to an address behind it. If that fails, it is
// closed.
type tunnel interface {
	to(ctx context.Context, address string) (net.Conn, error)
}

func (s *Selector) through(p *proxy) Dial {
	started := s.starts.WithLabelValues(p.protocol, p.transport)
	took := s.times.WithLabelValues(p.protocol, p.transport)
	failed := func(stage string) { s.failures.WithLabelValues(p.protocol, p.transport, stage).Inc() }
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		if err := checkAddress(address); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		ctx, span := tracing.Start(ctx, "Proxy via "+p.protocol+" protocol over "+p.transport)
		defer span.End()
		span.Text("address", address)
		began := time.Now()
		started.Inc()
		t, err := p.connect(ctx)
		if err != nil {
			failed("connect")
			span.Fail()
			return nil, err
		}
		conn, err := t.to(ctx, address)
		if err != nil {
			failed("proxy")
			span.Fail()
			return nil, err
		}
		took.Observe(time.Since(began).Seconds())
		return conn, nil
	}
}

// within does something with a connection that has to end when ctx does.
func within(ctx context.Context, conn net.Conn, do func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a closed connection needs no close message
	err := do()
	if !stop() && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// proxyOf returns the proxy that a valid connection describes.
func proxyOf(c *connection) (*proxy, error) {
	if c.ProxyProtocol == grpcProxy {
		return askGRPC(c.Transport.UDS.UDSName), nil
	}
	if uds := c.Transport.UDS; uds != nil {
		return overHTTP("uds", "unix", uds.UDSName, (&net.Dialer{}).DialContext), nil
	}
	u, err := url.Parse(c.Transport.TCP.URL)
	if err != nil {
		return nil, fmt.Errorf("invalid proxy server url %q: %w", c.Transport.TCP.URL, err)
	}
	connect, host := (&net.Dialer{}).DialContext, u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	}
	if t := c.Transport.TCP.TLSConfig; t != nil {
		conf, err := t.build()
		if err != nil {
			return nil, err
		}
		connect = (&tls.Dialer{Config: conf}).DialContext
	}
	return overHTTP("tcp", "tcp", host, connect), nil
}

func overHTTP(transport, network, address string, dial Dial) *proxy {
	return &proxy{"http_connect", transport, func(ctx context.Context) (tunnel, error) {
		conn, err := dial(ctx, network, address)
		return &httpTunnel{conn, address}, err
	}}
}

type httpTunnel struct {
	net.Conn
	proxy string
}

func (t *httpTunnel) to(ctx context.Context, address string) (net.Conn, error) {
	if err := within(ctx, t.Conn, func() error { return askHTTP(t.Conn, t.proxy, address) }); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t.Conn, nil
}

// build loads the certificates, once.
func (t *tlsConfig) build() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.ClientCert, t.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("failed to read key pair %s & %s, got %w", t.ClientCert, t.ClientKey, err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if t.CABundle == "" {
		return conf, nil
	}
	text, err := os.ReadFile(t.CABundle)
	if err != nil {
		return nil, fmt.Errorf("failed to read cert file %s, got %w", t.CABundle, err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("failed to append CA cert to the cert pool")
	}
	return conf, nil
}

// askHTTP opens a tunnel with the method CONNECT.
func askHTTP(conn net.Conn, proxy, address string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return fmt.Errorf("asking proxy %s for %s: %w", proxy, address, err)
	}
	answer := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	resp, err := http.ReadResponse(answer, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("reading HTTP response from CONNECT to %s via proxy %s failed: %w", address, proxy, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("proxy error from %s while dialing %s, code %d: %s", proxy, address, resp.StatusCode, resp.Status[:min(len(resp.Status), maxStatus)])
	}
	// Servers behind the proxy do not send first: earlier bytes are from the proxy.
	if n := answer.Buffered(); n > 0 {
		return fmt.Errorf("unexpected %d bytes of buffered data from CONNECT proxy %q", n, proxy)
	}
	return nil
}

// checkAddress refuses addresses that a proxy could parse differently.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._:%", r)
	}
	if err != nil || number == 0 || host == "" || len(host) > 255 || strings.ContainsFunc(host, func(r rune) bool { return !plain(r) }) {
		return fmt.Errorf("%q is not an address that a proxy could connect to", address)
	}
	return nil
}
