package podverbs_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// backend returns a site on whose network every address leads to one web server.
func backend(t *testing.T, h http.HandlerFunc) (s *site, dialled *atomic.Value) {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	dialled = &atomic.Value{}
	s = newSite(t, podverbs.Kubelet{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Store(address)
		var d net.Dialer
		return d.DialContext(ctx, network, web.Listener.Addr().String())
	}})
	return s, dialled
}

const services = "/api/v1/namespaces/ns/services"

func TestServiceProxy(t *testing.T) {
	s, dialled := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if strings.HasSuffix(r.URL.Path, ".html") {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<a href="/next">`)
			return
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, r.Header.Get("X-Forwarded-Uri"))
	})
	s.pod("one", `, "nodeName": "n"`)
	s.must("PATCH", pods+"/one/status", `{"status": {"podIP": "10.1.2.3"}}`)
	s.must("POST", services, `{"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 81}, {"name": "far", "port": 82}]}}`)
	var st metav1.Status
	if code, _ := s.send("GET", services+"/web/proxy/", "", &st); code != 404 || st.Message != `services "web" not found` {
		t.Errorf("without endpoints: %d %s", code, st.Message)
	}
	s.must("POST", "/api/v1/namespaces/ns/endpoints", `{"metadata": {"name": "web"}, "subsets": [
		{"ports": [{"name": "http", "port": 8080}, {"name": "admin", "port": 8081}], "addresses": [
			{"ip": "10.9.9.9", "targetRef": {"kind": "Pod", "namespace": "ns", "name": "one"}},
			{"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "namespace": "ns", "name": "one"}},
			{"ip": "10.9.9.8"}]},
		{"ports": [{"name": "far", "port": 1}], "addresses": [{"ip": "10.9.9.8", "targetRef": {"kind": "Pod", "namespace": "other", "name": "one"}}]},
		{"ports": [{"name": "late", "port": 1}], "notReadyAddresses": [{"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "namespace": "ns", "name": "one"}}]}]}`)
	for _, tt := range []struct {
		method, path string
		code         int
		want         string
		dialled      string
	}{
		{"GET", "web:http/proxy/a?b=c", 200, "GET /a?b=c " + services + "/web:http/proxy/a", "10.1.2.3:8080"},
		{"POST", "web:81/proxy/", 200, "POST / " + services + "/web:81/proxy/", "10.1.2.3:8081"},
		{"DELETE", "http:web:admin/proxy/x/", 200, "DELETE /x/ " + services + "/http:web:admin/proxy/x/", "10.1.2.3:8081"},
		{"GET", "web:http/proxy/p.html", 200, `<a href="` + services + `/web:http/proxy/next">`, ""},
		{"GET", "web/proxy/", 503, `no endpoints available for service \"web\"`, ""},
		{"GET", "web:far/proxy/", 503, `no endpoints available for service \"web:far\"`, ""},
		{"GET", "web:late/proxy/", 503, `no endpoints available for service \"web:late\"`, ""},
		{"GET", "web:7/proxy/", 503, `no service port 7 found for service \"web\"`, ""},
		{"GET", "none:7/proxy/", 404, `services \"none\" not found`, ""},
		{"GET", "a:b:c:d/proxy/", 400, `invalid service request \"a:b:c:d\"`, ""},
	} {
		text := ""
		code, header := s.send(tt.method, services+"/"+tt.path, "", &text)
		if code != tt.code || !strings.Contains(text, tt.want) || tt.dialled != "" && dialled.Load() != tt.dialled {
			t.Errorf("%s %s: got %d %s at %v", tt.method, tt.path, code, text, dialled.Load())
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: a pod opens the server to other sites", tt.method, tt.path)
		}
	}
	if code, header := s.send("HEAD", services+"/web:http/proxy", "", nil); code != 301 || header.Get("Location") != services+"/web:http/proxy/" {
		t.Errorf("the root: %d %v", code, header)
	}
}

// fickle returns a resolver for which each name has a public address once, and is then this machine.
func fickle(t *testing.T) *net.Resolver {
	t.Helper()
	var asked atomic.Int32
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() { // ends with the server
		for buf := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			if q.Unpack(buf[:n]) != nil || len(q.Questions) != 1 {
				continue
			}
			q.Response, q.Additionals = true, nil
			if one := q.Questions[0]; one.Type == dnsmessage.TypeA {
				to := [4]byte{127, 0, 0, 1}
				if asked.Add(1) == 1 {
					to = [4]byte{10, 1, 2, 3}
				}
				q.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: one.Name, Class: one.Class}, Body: &dnsmessage.AResource{A: to}}}
			}
			if data, err := q.Pack(); err == nil {
				_, _ = server.WriteTo(data, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// TestNodeNamesAreCheckedWhenDialled: a node whose name has another address as soon as it was checked does not lead the
// proxy to this machine.
func TestNodeNamesAreCheckedWhenDialled(t *testing.T) {
	var reached atomic.Int32
	inside := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	agent, web := httptest.NewTLSServer(inside), httptest.NewServer(inside)
	defer agent.Close()
	defer web.Close()
	_, agentPort, _ := net.SplitHostPort(agent.Listener.Addr().String())
	_, webPort, _ := net.SplitHostPort(web.Listener.Addr().String())
	for _, name := range []string{"n", "n:" + webPort} {
		s := newSite(t, podverbs.Kubelet{Resolver: fickle(t)})
		s.must("POST", "/api/v1/nodes", `{"metadata": {"name": "n"}, "status": {"addresses": [{"type": "Hostname", "address": "node.example."}], "daemonEndpoints": {"kubeletEndpoint": {"Port": `+agentPort+`}}}}`)
		text := ""
		code, _ := s.send("GET", "/api/v1/nodes/"+name+"/proxy/secret", "", &text)
		if n := reached.Load(); n != 0 || code < 400 || !strings.Contains(text, "address not allowed") {
			t.Errorf("%s: %d %s; this machine was reached %d times", name, code, text, n)
		}
	}
}

// TestProxiedAnswersAreNotOurs: a pod neither replaces headers of this server, nor sets policies for this server's
// address, nor answers more than once.
func TestProxiedAnswersAreNotOurs(t *testing.T) {
	s, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		if r.URL.Path == "/long" {
			w.Header().Set("A", strings.Repeat("a", 64<<10))
		}
		for r.URL.Path == "/endless" && r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.WriteHeader(http.StatusEarlyHints)
		for _, name := range []string{"Audit-Id", "Alt-Svc", "Clear-Site-Data", "Strict-Transport-Security", "X-Kubernetes-Pf-Flowschema-Uid"} {
			w.Header().Set(name, "the pod's")
		}
		fmt.Fprint(w, "answer")
	})
	s.pod("one", `, "nodeName": "n"`)
	s.must("PATCH", pods+"/one/status", `{"status": {"podIP": "10.1.2.3"}}`)
	for range 2 {
		text := ""
		code, header := s.send("GET", pods+"/one:80/proxy/", "", &text)
		if code != 200 || text != "answer" {
			t.Errorf("%d %s", code, text)
		}
		if len(header["Audit-Id"]) != 1 || len(header["Cache-Control"]) != 1 {
			t.Errorf("headers of this server are lost: %v", header)
		}
		for name, values := range header {
			if strings.Contains(fmt.Sprint(values), "the pod's") {
				t.Errorf("the pod received %s: %q", name, values)
			}
		}
	}
	for path, want := range map[string]string{"endless": "context canceled", "long": "exceeded 65536 bytes"} {
		var st metav1.Status
		if code, _ := s.send("GET", pods+"/one:80/proxy/"+path, "", &st); code < 500 || !strings.Contains(st.Message, want) {
			t.Errorf("%s: %d %+v", path, code, st)
		}
	}
}

func TestProxyToNobody(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, fmt.Errorf("no way") }})
	s.pod("one", `, "nodeName": "n"`)
	s.must("PATCH", pods+"/one/status", `{"status": {"podIP": "10.1.2.3"}}`)
	s.must("POST", "/api/v1/nodes", `{"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}`)
	s.must("POST", "/api/v1/nodes", `{"metadata": {"name": "lost"}}`)
	s.pod("two", `, "nodeName": "lost"`)
	for path, want := range map[string]string{
		"/one/proxy/": "error trying to reach service: no way",
		"/one/log":    `Get "https://10.0.0.1:10250/containerLogs/ns/one/c": no way`,
		"/two/log":    "no preferred addresses found; known addresses: []",
	} {
		var st metav1.Status
		if s.send("GET", pods+path, "", &st); st.Message != want || st.Code != 503 && st.Reason != "" {
			t.Errorf("%s: %d %s %q, want %q", path, st.Code, st.Reason, st.Message, want)
		}
	}
}

// heads counts the queries for the newest revision.
type heads struct {
	sqlstore.Driver
	count atomic.Int64
}

func (h *heads) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	h.count.Add(1)
	return h.Driver.Bounds(ctx)
}

// TestProxyToMissingPods: a request to a service sends no query for each address of the Endpoints that a client wrote.
func TestProxyToMissingPods(t *testing.T) {
	driver := &heads{Driver: storetest.NewShared().Open()}
	s := newSite(t, podverbs.Kubelet{}, servertest.On(driver, sqlstore.Config{}), servertest.Idle)
	var addresses []string
	for i := range 1000 {
		addresses = append(addresses, fmt.Sprintf(`{"ip": "10.1.%d.%d", "targetRef": {"kind": "Pod", "namespace": "ns", "name": "p%d"}}`, i/250, i%250+1, i))
	}
	s.must("POST", "/api/v1/namespaces/ns/endpoints", fmt.Sprintf(`{"metadata": {"name": "web"}, "subsets": [{"ports": [{"name": "http", "port": 80}], "addresses": [%s]}]}`, strings.Join(addresses, ",")))
	before := driver.count.Load()
	var st metav1.Status
	if s.send("GET", services+"/web:http/proxy/", "", &st); st.Code != http.StatusServiceUnavailable {
		t.Errorf("%+v", st)
	}
	if n := driver.count.Load() - before; n > 100 {
		t.Errorf("%d queries", n)
	}
}

func TestNodeProxy(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	agent(t, s, nil)
	var st metav1.Status
	if code, _ := s.send("GET", "/api/v1/nodes/n/proxy/metrics", "", &st); code != 400 || st.Message != "address not allowed" {
		t.Errorf("the server's own network: %d %s", code, st.Message)
	}
	s = newSite(t, podverbs.Kubelet{MayProxy: func(context.Context, string) error { return nil }})
	agent(t, s, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "agent %s %s", r.Method, r.URL) })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "other %s", r.URL) }))
	defer web.Close()
	_, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	for path, want := range map[string]string{
		"n/proxy/metrics?x=y":        "agent GET /metrics?x=y",
		"n/proxy/logs/":              "agent GET /logs/",
		"n:" + port + "/proxy/a":     "other /a",
		"http:n:" + port + "/proxy/": "other /",
		"none/proxy/":                `nodes \"none\" not found`,
	} {
		text := ""
		if s.send("GET", "/api/v1/nodes/"+path, "", &text); !strings.Contains(text, want) {
			t.Errorf("%s: got %s", path, text)
		}
	}
}

// TestWebSockets: the frames of a WebSocket of a pod or an agent pass through unchanged.
func TestWebSockets(t *testing.T) {
	echo := websocket.Server{
		Handshake: func(c *websocket.Config, r *http.Request) error {
			if r.Header.Get("Authorization") != "" {
				return fmt.Errorf("credentials")
			}
			return nil
		},
		Handler: func(ws *websocket.Conn) {
			var in string
			for websocket.Message.Receive(ws, &in) == nil {
				_ = websocket.Message.Send(ws, "echo "+in)
			}
		},
	}
	s, _ := backend(t, echo.ServeHTTP)
	s.pod("one", `, "nodeName": "n"`)
	s.must("PATCH", pods+"/one/status", `{"status": {"podIP": "10.1.2.3"}}`)
	local := newSite(t, podverbs.Kubelet{})
	agent(t, local, echo.ServeHTTP)
	local.pod("one", `, "nodeName": "n"`)
	for name, url := range map[string]string{
		"proxy": s.url + pods + "/one:80/proxy/socket",
		"exec":  local.url + pods + "/one/exec?command=sh&stdin=1",
	} {
		config, err := websocket.NewConfig(strings.Replace(url, "http", "ws", 1), "http://localhost")
		if err != nil {
			t.Fatal(err)
		}
		config.Protocol = []string{"v4.channel.k8s.io"}
		config.Header.Set("Authorization", "Bearer secret")
		ws, err := config.DialContext(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got string
		if err := websocket.Message.Send(ws, "hello"); err != nil {
			t.Error(err)
		}
		if err := websocket.Message.Receive(ws, &got); err != nil || got != "echo hello" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		ws.Close()
	}
}
