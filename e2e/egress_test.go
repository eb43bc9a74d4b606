package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// connector is an HTTP CONNECT proxy on a socket. It connects every request to one server, whatever
// name the request has: only this proxy knows those names.
type connector struct {
	net.Listener
	to string

	mu    sync.Mutex
	asked map[string]int
}

func startConnector(t testing.TB, dir, to string) *connector {
	t.Helper()
	path := filepath.Join(dir, "p") // short: the names of sockets have 107 bytes at most
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := &connector{Listener: l, to: to, asked: map[string]int{}}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			open.Go(func() { c.connect(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Wait() // the server that asked has ended
	})
	return c
}

func (c *connector) connect(conn net.Conn) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	c.mu.Lock()
	c.asked[r.RequestURI]++
	c.mu.Unlock()
	there, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer there.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, there) // until either side ends
		conn.Close()
	})
	_, _ = io.Copy(there, conn)
	there.Close()
	back.Wait()
}

// seen returns the addresses that it was asked for.
func (c *connector) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.asked))
}

// farAway is everything that a server calls, in one.
type farAway struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // by the first part of the path
}

func (f *farAway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what, _, _ := strings.Cut(r.URL.Path[1:], "/")
	f.mu.Lock()
	f.asked[what]++
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch what {
	case "token":
		fmt.Fprint(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"far"}}}`)
	case "rights":
		fmt.Fprint(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case "admit":
		var q questioned
		_ = json.NewDecoder(r.Body).Decode(&q) // an invalid question has no UID, and gets no answer
		fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true}}`, q.Request.UID)
	case "apis":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"far.example/v1","resources":[]}`)
	case "containerLogs":
		fmt.Fprint(w, "words from afar")
	}
}

func (f *farAway) reached(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[what] > 0
}

// TestEgress: the binary reaches those that it calls through the proxies that its file names,
// each through that of its network, and by no other way: it could not find them.
func TestEgress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	far := &farAway{asked: map[string]int{}}
	far.Server = httptest.NewTLSServer(far)
	t.Cleanup(far.Close)
	proxies := map[string]*connector{}
	var selections []string
	for _, name := range []string{"cluster", "controlplane"} {
		short, err := os.MkdirTemp("", "e")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(short) })
		proxies[name] = startConnector(t, short, far.Listener.Addr().String())
		selections = append(selections, fmt.Sprintf(`{"name":%q,"connection":{"proxyProtocol":"HTTPConnect","transport":{"uds":{"udsName":%q}}}}`, name, filepath.Join(short, "p")))
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hook := func(name string) string {
		return write(name, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://%s.control.invalid:8443/%s","insecure-skip-tls-verify":true}}],
			"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`, name, name))
	}
	s := harness.StartT(t, harness.Options{Args: []string{
		"--egress-selector-config-file", write("egress", `{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[`+strings.Join(selections, ",")+`]}`),
		"--authentication-token-webhook-config-file", hook("token"), "--authentication-token-webhook-version=v1",
		"--authorization-mode=Node,RBAC,Webhook", "--authorization-webhook-config-file", hook("rights"), "--authorization-webhook-version=v1",
		"--audit-webhook-config-file", hook("audit"), "--audit-webhook-mode=blocking",
		"--audit-policy-file", write("policy", `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata","users":["far"]}]}`),
	}})
	a := newAPI(t, s)
	do := func(method, path, body string) (int, string) {
		t.Helper()
		kind := "application/json"
		if method == http.MethodPatch {
			kind = "application/merge-patch+json"
		}
		code, answer, err := a.do(t.Context(), method, path, kind, body)
		if err != nil {
			t.Fatal(err)
		}
		return code, string(answer)
	}
	must := func(method, path, body string) {
		t.Helper()
		if code, answer := do(method, path, body); code >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}

	// Authentication, authorization, and the audit event.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/namespaces/default/secrets", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer a-token-that-nobody-here-knows")
	resp, err := a.c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a user of the token webhook with rights of the authorization webhook: %s", resp.Status)
	}
	eventually(t, "an audit event", func() bool { return far.reached("audit") })

	must("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `{"metadata":{"name":"h"},"webhooks":[{"name":"h.far.example","admissionReviewVersions":["v1"],
		"sideEffects":"None","failurePolicy":"Ignore","clientConfig":{"url":"https://hook.control.invalid/admit"},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}]}`)
	n := 0
	eventually(t, "the admission webhook is asked", func() bool {
		n++
		must("POST", "/api/v1/namespaces/default/configmaps", fmt.Sprintf(`{"metadata":{"name":"c%d"}}`, n))
		return slices.Contains(proxies["controlplane"].seen(), "hook.control.invalid:443")
	})
	must("POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`)
	must("PATCH", "/api/v1/nodes/n/status", `{"status":{"addresses":[{"type":"InternalIP","address":"10.99.99.99"}]}}`)
	must("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"nodeName":"n","automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`)
	if code, answer := do("GET", "/api/v1/namespaces/default/pods/p/log", ""); code != http.StatusOK || answer != "words from afar" {
		t.Errorf("the log of a pod: %d %s", code, answer)
	}
	must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"behind"},"spec":{"type":"ExternalName","externalName":"aggregated.cluster.invalid"}}`)
	must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{"metadata":{"name":"v1.far.example"},"spec":{"group":"far.example","version":"v1","groupPriorityMinimum":100,"versionPriority":100,
		"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"behind","port":8444}}}`)
	eventually(t, "the aggregated server answers", func() bool {
		code, answer := do("GET", "/apis/far.example/v1", "")
		return code == http.StatusOK && strings.Contains(answer, "APIResourceList")
	})

	for name, want := range map[string][]string{
		"controlplane": {"audit.control.invalid:8443", "hook.control.invalid:443", "rights.control.invalid:8443", "token.control.invalid:8443"},
		"cluster":      {"10.99.99.99:10250", "aggregated.cluster.invalid:8444"},
	} {
		if got := proxies[name].seen(); !slices.Equal(got, want) {
			t.Errorf("through the proxy %s went %q, want %q", name, got, want)
		}
	}
	_, metrics := do("GET", "/metrics", "")
	const starts = `apiserver_egress_dialer_dial_start_total{protocol="http_connect",transport="uds"} `
	if _, rest, ok := strings.Cut(metrics, starts); !ok || strings.HasPrefix(rest, "0\n") {
		t.Errorf("the metrics have no %s above 0", starts)
	}
	// Its connections end with the server, and the proxies with those.
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}
