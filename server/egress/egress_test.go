package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/server/egress"
)

const head = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"

func load(t *testing.T, text string) (*egress.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "egress.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return egress.Load(path)
}

func TestLoad(t *testing.T) {
	one := func(name, connection string) string {
		return head + "- {name: " + name + ", connection: " + connection + "}\n"
	}
	uds := "{proxyProtocol: HTTPConnect, transport: {uds: {udsName: /run/x}}}"
	for _, c := range []struct{ text, err string }{
		{one("cluster", "{proxyProtocol: Direct}"), ""},
		{one("master", uds), ""},
		{strings.Replace(one("Cluster", uds), "v1beta1", "v1alpha1", 1), ""},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a:1'}}}"), ""},
		{one("cluster", "{proxyProtocol: GRPC, transport: {uds: {udsName: /run/x}}}"), ""},
		{one("pods", uds), `service.connection: Unsupported value: "pods": supported values: "cluster", "controlplane", "etcd"`},
		{one("cluster", uds) + "- {name: CLUSTER, connection: " + uds + "}\n", `service.connection[1]: Duplicate value: "cluster"`},
		{one("cluster", "{proxyProtocol: SOCKS}"), `service.connection.protocol: Unsupported value: "SOCKS"`},
		{one("cluster", "{proxyProtocol: Direct, transport: {}}"), `service.connection.transport: Invalid value: "direct": Transport config should be absent for direct connect`},
		{one("cluster", "{proxyProtocol: HTTPConnect}"), "service.connection.transport: Required value: transport must be set for HTTPConnect"},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {}}"), "service.connection.tcp: Required value: One of TCP or UDS must be set"},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {uds: {udsName: a}, tcp: {url: 'http://a'}}}"), "TCP and UDS cannot both be set"},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {uds: {}}}"), `service.connection.udsName: Invalid value: "nil": UDSName should be present for UDS connections`},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'ftp://a'}}}"), `service.connection.url: Invalid value: "ftp://a": supported connection protocols are http:// and https://`},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a'}}}"), "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS"},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a', tlsConfig: {}}}}"), "TLSConfig config should not be present when using HTTP"},
		{one("cluster", "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {clientKey: /none}}}}"), "service.connection.tlsConfig.clientCert: Invalid value: \"nil\": Using TLS requires clientCert"},
		{one("cluster", "{proxyProtocol: GRPC, transport: {tcp: {url: 'http://a'}}}"), "service.connection.uds: Required value: UDS must be set with GRPC"},
		{one("cluster", "{protocol: Direct}"), `unknown field "egressSelections[0].connection.protocol"`},
		{strings.Replace(one("cluster", uds), "apiserver.k8s.io", "apiserver.config.k8s.io", 1), `no kind "EgressSelectorConfiguration" is registered for version "apiserver.config.k8s.io/v1beta1"`},
	} {
		_, err := load(t, c.text)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s\n%v, want %s", c.text, err, c.err)
		}
	}
}

// proxy answers CONNECT, and records the requests. It sends answer
// instead of connecting, unless that is "".
type proxy struct {
	net.Listener
	answer string
	mu     sync.Mutex
	asked  []string
}

func (p *proxy) serve() {
	for {
		conn, err := p.Accept()
		if err != nil {
			return
		}
		go p.handle(conn)
	}
}

func (p *proxy) handle(conn net.Conn) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r.RequestURI)
	p.mu.Unlock()
	if p.answer != "" {
		fmt.Fprint(conn, p.answer)
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	there, err := net.Dial("tcp", r.RequestURI)
	if err != nil {
		fmt.Fprint(conn, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	defer there.Close()
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(there, conn) }()
	_, _ = io.Copy(conn, there)
}

func startProxy(t *testing.T, l net.Listener, answer string) *proxy {
	p := &proxy{Listener: l, answer: answer}
	go p.serve()
	t.Cleanup(func() { l.Close() })
	return p
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// echo sends back what it receives.
func echo(t *testing.T) string {
	l := listen(t, "tcp", "127.0.0.1:0")
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return l.Addr().String()
}

func selector(t *testing.T, transport string) *egress.Selector {
	t.Helper()
	c, err := load(t, head+"- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: "+transport+"}}\n- {name: controlplane, connection: {proxyProtocol: Direct}}\n")
	if err != nil {
		t.Fatal(err)
	}
	s, err := egress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func metrics(t *testing.T, s *egress.Selector, name string) int {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		if f.GetName() == name {
			n += len(f.Metric)
		}
	}
	return n
}

func try(t *testing.T, s *egress.Selector, to string) {
	t.Helper()
	conn, err := s.To(egress.Cluster)(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestThroughTCP(t *testing.T) {
	p, to := startProxy(t, listen(t, "tcp", "127.0.0.1:0"), ""), echo(t)
	s := selector(t, "{tcp: {url: 'http://"+p.Addr().String()+"'}}")
	try(t, s, to)
	if len(p.asked) != 1 || p.asked[0] != to {
		t.Errorf("the proxy was asked for %q", p.asked)
	}
	if s.To(egress.ControlPlane) != nil || (*egress.Selector)(nil).To(egress.Cluster) != nil {
		t.Error("what is to be reached directly has a proxy")
	}
	if metrics(t, s, "apiserver_egress_dialer_dial_duration_seconds") != 1 || metrics(t, s, "apiserver_egress_dialer_dial_start_total") != 1 {
		t.Error("nothing is measured")
	}
}

func TestThroughUDS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	startProxy(t, listen(t, "unix", path), "")
	try(t, selector(t, "{uds: {udsName: "+path+"}}"), echo(t))
}

func TestThroughTLS(t *testing.T) {
	dir, authority := t.TempDir(), harness.NewAuthority(t, "proxies")
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := harness.Files(t, authority.Client(t, "apiserver"))
	conf := fmt.Sprintf("tlsConfig: {caBundle: %s, clientCert: %s, clientKey: %s}", write("ca", authority.PEM), write("cert", cert), write("key", key))
	plain := listen(t, "tcp", "127.0.0.1:0")
	startProxy(t, tlsListener(t, authority, plain), "")
	try(t, selector(t, "{tcp: {url: 'https://"+plain.Addr().String()+"', "+conf+"}}"), echo(t))
}

// TestBadProxies: a proxy that refuses, closes or sends without end fails the connection, at the cost of
// a bounded number of bytes; one that sends nothing ends with the context.
func TestBadProxies(t *testing.T) {
	for _, c := range []struct{ answer, err string }{
		{"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "code 403: 403 Forbidden"},
		{"HTTP/1.1 200 OK\r\n\r\nmore", "unexpected 4 bytes of buffered data from CONNECT proxy"},
		{"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20), "reading HTTP response from CONNECT to 10.0.0.1:443 via proxy"},
		{"nonsense\r\n\r\n", "reading HTTP response from CONNECT"},
	} {
		p := startProxy(t, listen(t, "tcp", "127.0.0.1:0"), c.answer)
		s := selector(t, "{tcp: {url: 'http://"+p.Addr().String()+"'}}")
		if _, err := s.To(egress.Cluster)(t.Context(), "tcp", "10.0.0.1:443"); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.40q: %v, want %s", c.answer, err, c.err)
		}
		if metrics(t, s, "apiserver_egress_dialer_dial_failure_count") != 1 {
			t.Error("the failure is not counted")
		}
	}
	silent := listen(t, "tcp", "127.0.0.1:0")
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := silent.Accept(); err == nil {
			_, _ = bufio.NewReader(conn).ReadString('\n') // it has been asked
			cancel()
		}
	}()
	if _, err := selector(t, "{tcp: {url: 'http://"+silent.Addr().String()+"'}}").To(egress.Cluster)(ctx, "tcp", "10.0.0.1:443"); err == nil {
		t.Error("a proxy that does not answer gives a connection")
	}
}

// An address that is more than one never reaches a proxy: nodes name their hosts themselves.
func TestAddresses(t *testing.T) {
	p := startProxy(t, listen(t, "tcp", "127.0.0.1:0"), "HTTP/1.1 200 OK\r\n\r\n")
	s := selector(t, "{tcp: {url: 'http://"+p.Addr().String()+"'}}")
	for _, bad := range []string{"a b:1", "a\r\nX: y:1", "[a\r\nb]:1", ":1", "a:0", "a:x", "a:99999", "a", strings.Repeat("a", 300) + ":1"} {
		if _, err := s.To(egress.Cluster)(t.Context(), "tcp", bad); err == nil {
			t.Errorf("%q is taken for an address", bad)
		}
	}
	if len(p.asked) != 0 {
		t.Errorf("the proxy was asked for %q", p.asked)
	}
}
