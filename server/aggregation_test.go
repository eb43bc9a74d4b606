package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// behind is an aggregated server: a test sets its answers to requests below a version.
type behind struct {
	*httptest.Server
	down  atomic.Bool // it refuses discovery
	asked atomic.Int32
	seen  atomic.Pointer[http.Request]
}

func startBehind(t *testing.T, answer http.HandlerFunc) *behind {
	b := &behind{}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Count(r.URL.Path, "/") > 3:
			b.asked.Add(1)
			b.seen.Store(r)
			answer(w, r)
		case b.down.Load():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"g.example/v1","resources":[]}`)
		}
	}))
	b.EnableHTTP2 = true
	b.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

func (b *behind) port() string { return strconv.Itoa(b.Listener.Addr().(*net.TCPAddr).Port) }

// register creates its APIService in a server, and waits until it is available.
func (b *behind) register(t *testing.T, s *servertest.Server) {
	t.Helper()
	s.Must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"behind"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	s.Must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{"metadata":{"name":"v1.g.example"},"spec":{"group":"g.example","version":"v1","groupPriorityMinimum":1000,
		"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"behind","port":%s}}}`, b.port()))
	servertest.Eventually(t, func() bool { return condition(s) == "True Passed: all checks passed" })
}

func condition(s *servertest.Server) string { return conditionOf(s, "v1.g.example") }

func conditionOf(s *servertest.Server, name string) string {
	var service struct {
		Status struct {
			Conditions []struct{ Status, Reason, Message string }
		}
	}
	body := s.Do("GET", "/apis/apiregistration.k8s.io/v1/apiservices/"+name, "").Body.Bytes()
	if err := json.Unmarshal(body, &service); err != nil || len(service.Status.Conditions) != 1 {
		return ""
	}
	c := service.Status.Conditions[0]
	return c.Status + " " + c.Reason + ": " + c.Message
}

// people are users who may do everything, and one who may do nothing.
type people struct{}

func (people) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if a.User.Name == "nobody" {
		return authx.NoOpinion, "", nil
	}
	return authx.Allow, "", nil
}

func withPeople(c *server.Config) {
	known := servertest.Tokens{servertest.Token: servertest.Admin}
	for _, name := range []string{"ann", "bob", "carol", "nobody"} {
		known[name] = &authx.Identity{Name: name, UID: "u-" + name, Groups: []string{authx.GroupAuthenticated}}
	}
	c.Authenticator = authx.Chain{authx.Bearer{Tokens: known}}
	c.Authorizer = people{}
}

// TestAggregatedServer: the requests and headers that an aggregated server receives.
func TestAggregatedServer(t *testing.T) {
	last := make(chan struct{})
	b := startBehind(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "/apis/g.example/v1/things/elsewhere", http.StatusTemporaryRedirect)
		case strings.HasSuffix(r.URL.Path, "/early"):
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "late")
		case strings.HasSuffix(r.URL.Path, "/broken"):
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case r.URL.Query().Get("watch") != "":
			_, _ = io.WriteString(w, "first\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-last:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, "last\n")
		default:
			w.Header().Set("Audit-Id", "theirs")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.Copy(w, r.Body)
		}
	})
	s := servertest.Start(t, withPeople)
	b.register(t, s)
	do := func(method, path, body string, header ...string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer ann")
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := s.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			got = append(got, " and "+err.Error()...)
		}
		return resp.StatusCode, resp.Header, string(got)
	}
	const thing = "/apis/g.example/v1/namespaces/a/things/x"
	code, header, body := do("PUT", thing+"?b=2&a=1&c;d&labelSelector=x&labelSelector=y", "\xd9\xd9\xf7", "Content-Type", "application/cbor", "X-Remote-User", "admin", "X-Remote-Group", "system:masters",
		"X-Remote-Extra-A", "b", "X-Forwarded-For", "192.0.2.7")
	if code != http.StatusTeapot || body != "\xd9\xd9\xf7" || len(header["Audit-Id"]) != 1 || header.Get("Audit-Id") == "theirs" {
		t.Errorf("%d %v %q", code, header, body)
	}
	r := b.seen.Load()
	for name, want := range map[string]string{
		"X-Remote-User": "ann", "X-Remote-Group": "system:authenticated", "X-Remote-Uid": "", "X-Remote-Extra-A": "", "Authorization": "",
		"X-Forwarded-Uri": thing, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7, 127.0.0.1", "Content-Type": "application/cbor", "Audit-Id": header.Get("Audit-Id"),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.URL.RawQuery != "a=1&b=2&labelSelector=x" || r.URL.Path != thing {
		t.Errorf("asked for %s", r.URL)
	}
	// The part of the path after the authorized one is passed on unchanged.
	if code, _, _ := do("GET", "/apis/g.example/v1/namespaces/a/things/x/proxy//b/c%2Fd/", ""); code != http.StatusTeapot || b.seen.Load().URL.Path != thing+"/proxy//b/c/d/" || b.seen.Load().Header.Get("X-Forwarded-Uri") != thing+"/proxy/b/c/d/" {
		t.Errorf("%d: asked for %s", code, b.seen.Load().URL.Path)
	}
	if code, header, body := do("GET", "/apis/g.example/v1/things/moved", ""); code != http.StatusBadGateway || header.Get("Location") != "" || !strings.Contains(body, "not permitted") {
		t.Errorf("a redirect: %d %v %s", code, header, body)
	}
	if code, _, body := do("GET", "/apis/g.example/v1/things/early", ""); code != http.StatusOK || body != "late" {
		t.Errorf("a word before the answer: %d %s", code, body)
	}
	if _, _, body := do("GET", "/apis/g.example/v1/things/broken", ""); !strings.HasPrefix(body, "half and ") {
		t.Errorf("half of an answer: %s", body)
	}

	// Requests that are not passed on.
	before := b.asked.Load()
	hops := strings.Repeat("192.0.2.1,", 20) + "192.0.2.1"
	for path, want := range map[string]int{
		"/apis/g.example/v1/namespaces/a/things/../../b/things/y": http.StatusNotFound, "/apis/g.example/v1/namespaces/a/things/%2e%2e/y": http.StatusNotFound,
		"/apis/g.example/v1/namespaces/a/things/%2e%2e%2fy": http.StatusNotFound, "/apis/g.example/v1/namespaces/a/things/%252e%252e/y": http.StatusNotFound,
		"/apis/g.example/v1//things/y": http.StatusNotFound, "/apis/g.example//v1/things/y": http.StatusNotFound, "//apis/g.example/v1/things/y": http.StatusNotFound,
		"/apis/g.example/v1/namespaces/a/things//y": http.StatusNotFound, "/apis/g.example/v1/namespaces/a/things/..;x/y": http.StatusNotFound,
		"/apis/g.example/../../api/v1/secrets": http.StatusNotFound,
		"/apis/g.example/v1/./things/y":        http.StatusNotFound, "/apis/g.example/v2/things/y": http.StatusNotFound, "/apis/g.example.org/v1/things/y": http.StatusNotFound,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil) // a client would make another path of it
		r.Header.Set("Authorization", "Bearer ann")
		w := httptest.NewRecorder()
		if s.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if code, _, body := do("GET", thing, "", "X-Forwarded-For", hops); code != http.StatusLoopDetected {
		t.Errorf("a loop: %d %s", code, body)
	}
	if code, _, body := do("GET", thing, "", "Authorization", "Bearer nobody"); code != http.StatusForbidden {
		t.Errorf("without a right: %d %s", code, body)
	}
	if n := b.asked.Load(); n != before {
		t.Errorf("%d of them were passed on", n-before)
	}

	// An event comes before the answer ends.
	watch, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/apis/g.example/v1/things?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch.Header.Set("Authorization", "Bearer ann")
	resp, err := s.Client.Do(watch)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _, metrics := do("GET", "/metrics", "", "Authorization", "Bearer "+servertest.Token)
	if free := `apiserver_flowcontrol_current_executing_requests{flow_schema="global-default",priority_level="global-default"} 0`; !strings.Contains(metrics, free) {
		t.Error("a watch of another server keeps its seat here")
	}
	close(last)
	if line, err := lines.ReadString('\n'); err != nil || line != "last\n" {
		t.Errorf("%q, %v", line, err)
	}

	// While it is not available, no request is passed on.
	b.down.Store(true)
	s.Must("PATCH", "/api/v1/namespaces/default/services/behind", `{"metadata":{"labels":{"look":"again"}}}`, "Content-Type", "application/merge-patch+json")
	servertest.Eventually(t, func() bool {
		return strings.HasPrefix(condition(s), "False FailedDiscoveryCheck: failing or missing response from https://localhost:") && strings.HasSuffix(condition(s), "/apis/g.example/v1: 500")
	})
	before = b.asked.Load()
	if code, _, body := do("GET", thing, ""); code != http.StatusServiceUnavailable || body != "service unavailable\n" {
		t.Errorf("while it is down: %d %q", code, body)
	}
	_, _, metrics = do("GET", "/metrics", "")
	for _, line := range []string{
		`aggregator_unavailable_apiservice{name="v1.g.example"} 1`, `aggregator_unavailable_apiservice{name="v1.apps"} 0`,
		`aggregator_unavailable_apiservice_total{name="v1.g.example",reason="FailedDiscoveryCheck"} 1`,
		`apiserver_request_terminations_total{code="503",component="aggregator",`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	s.Must("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.g.example", "")
	if code, _, body := do("GET", thing, ""); code != http.StatusNotFound || b.asked.Load() != before {
		t.Errorf("after its end: %d %s", code, body)
	}
}

// TestStalledServer: an aggregated server that does not answer takes places from those who
// ask it, and leaves others theirs.
func TestStalledServer(t *testing.T) {
	release := make(chan struct{})
	b := startBehind(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := servertest.Start(t, withPeople, func(c *server.Config) {
		c.MaxInFlight, c.RequestTimeout = 16, time.Minute // 8 to aggregated servers, 4 to this one, 2 of a user
		c.Limits.ReadShare = 16
	})
	b.register(t, s)
	answers := make(chan int, 10)
	ask := func(user string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/apis/g.example/v1/things/x", nil)
		r.Header.Set("Authorization", "Bearer "+user)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		answers <- w.Code
	}
	for i, user := range []string{"ann", "ann", "bob", "bob"} {
		go ask(user)
		servertest.Eventually(t, func() bool { return b.asked.Load() == int32(i+1) })
	}
	for _, user := range []string{"ann", "carol"} { // her own two, and all four of the server
		ask(user)
		if code := <-answers; code != http.StatusTooManyRequests {
			t.Errorf("%s: %d", user, code)
		}
	}
	if w := s.Do("GET", "/api/v1/namespaces/default", "", "Authorization", "Bearer carol"); w.Code != http.StatusOK {
		t.Errorf("meanwhile: %d %s", w.Code, w.Body)
	}
	close(release)
	for range 4 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("in the end: %d", code)
		}
	}
}

// TestTakenOverConnections: a connection that is taken over outlives the time of a request,
// which an aggregated server that does not take it over has for its answer.
func TestTakenOverConnections(t *testing.T) {
	const longest = 5 * time.Second // enough for a busy machine to take one over
	b := startBehind(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/never") {
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // not even now: to return would be an answer
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		// Data that the client sent right after the answer may have been read already.
		conn, early, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, early)
	})
	s := servertest.Start(t, withPeople, func(c *server.Config) { c.RequestTimeout = longest })
	b.register(t, s)
	dial := func(path string) (*tls.Conn, *bufio.Reader) {
		t.Helper()
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", path)
		return conn, bufio.NewReader(conn)
	}
	conn, reader := dial("/apis/g.example/v1/namespaces/a/things/x/console")
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	if h := b.seen.Load().Header; h.Get("Authorization") != "" || h.Get("X-Remote-User") != "ann" {
		t.Errorf("it received %v", h)
	}
	_, never := dial("/apis/g.example/v1/namespaces/a/things/x/never")
	for _, before := range []time.Duration{0, longest + longest/10} {
		time.Sleep(before)
		fmt.Fprint(conn, "hello\n")
		if line, err := reader.ReadString('\n'); err != nil || line != "hello\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if resp, err := http.ReadResponse(never, nil); err != nil || resp.StatusCode < 500 {
		t.Errorf("an upgrade that nobody answers: %v, %v", resp, err)
	}
}
