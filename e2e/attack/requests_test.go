package attack

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// inside is a server that only this machine can reach, and that counts its clients.
type inside struct {
	*httptest.Server
	port string

	mu   sync.Mutex
	seen []http.Header
}

// newInside starts one. It answers with a redirect if to is not empty.
func newInside(t *testing.T, to string, cert *tls.Certificate) *inside {
	t.Helper()
	in := &inside{}
	in.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.mu.Lock()
		in.seen = append(in.seen, r.Header.Clone())
		in.mu.Unlock()
		if to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, "unspeakable")
	}))
	if cert != nil {
		in.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	}
	in.StartTLS()
	t.Cleanup(in.Close)
	_, in.port, _ = net.SplitHostPort(in.Listener.Addr().String())
	return in
}

// headers returns the headers of the requests that arrived since the last call.
func (in *inside) headers() []http.Header {
	in.mu.Lock()
	defer in.mu.Unlock()
	seen := in.seen
	in.seen = nil
	return seen
}

// TestRequestsOfTheServer: clients do not lead the server to addresses that only it reaches, nor from one server to another, and
// neither receives the clients' credentials.
func TestRequestsOfTheServer(t *testing.T) {
	t.Parallel()
	a := open(t)
	goal := newInside(t, "", nil)
	t.Run("proxies", func(t *testing.T) { proxiesToInside(t, a, goal) })
	t.Run("aggregated servers", func(t *testing.T) { aggregatedInside(t, a, goal) })
	t.Run("redirects of agents", func(t *testing.T) { redirectsOfAgents(t, a, goal) })
	t.Run("redirects of webhooks", func(t *testing.T) { redirectsOfWebhooks(t, a, goal) })
	if log := a.Log(); strings.Contains(log, "panic") {
		t.Error(log)
	}
}

// proxiesToInside: nodes, pods and Services with addresses of the server itself, of its link, and of metadata services of clouds.
func proxiesToInside(t *testing.T, a *arena, goal *inside) {
	hosts := []string{
		"127.0.0.1", "localhost", "localhost.", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "::1", "::ffff:127.0.0.1", "0:0:0:0:0:ffff:7f00:1", "0.0.0.0", "::",
		"169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "224.0.0.1", "255.255.255.255", "127.0.0.1@10.0.0.1", "127.0.0.1/", "127.0.0.1#", "127.0.0.1:" + goal.port,
	}
	for i, host := range hosts {
		name := fmt.Sprintf("n%d", i)
		node := fmt.Sprintf(`{"metadata":{"name":%q},"status":{"addresses":[{"type":"Hostname","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`, name, host, goal.port)
		if code, answer := a.send(t, call{method: "POST", path: "/api/v1/nodes", body: node, token: harness.AdminToken}); code != 201 {
			t.Fatalf("%s: %d %s", host, code, answer)
		}
		pod := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`, name)
		a.admin(t, "POST", "/api/v1/namespaces/mallory/pods", pod)
		// Some are no addresses, and refused here.
		a.send(t, call{method: "PATCH", path: "/api/v1/namespaces/mallory/pods/" + name + "/status", contentType: asMerge, token: harness.AdminToken,
			body: fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, host, host)})
		a.admin(t, "POST", "/api/v1/namespaces/mallory/services", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"ports":[{"port":443}]}}`, name))
		a.send(t, call{method: "POST", path: endpoints, token: harness.AdminToken,
			body: fmt.Sprintf(`{"metadata":{"name":%q},"subsets":[{"ports":[{"port":%s}],"addresses":[{"ip":%q,"targetRef":{"kind":"Pod","namespace":"mallory","name":%q}}]}]}`, name, goal.port, host, name)})
		for _, path := range []string{
			"/api/v1/nodes/%s/proxy/x", "/api/v1/nodes/https:%s:PORT/proxy/x", "/api/v1/nodes/%s:PORT/proxy/x",
			"/api/v1/namespaces/mallory/pods/https:%s:PORT/proxy/x", "/api/v1/namespaces/mallory/pods/%s:PORT/proxy/x",
			"/api/v1/namespaces/mallory/services/https:%s:443/proxy/x", "/api/v1/namespaces/mallory/services/https:%s:/proxy/x",
		} {
			path = strings.ReplaceAll(fmt.Sprintf(path, name), "PORT", goal.port)
			code, answer := a.send(t, call{method: "GET", path: path, token: harness.AdminToken})
			if seen := goal.headers(); len(seen) > 0 || code < 400 {
				t.Errorf("%s: %s is answered with %d %.200s and reached %d times", host, path, code, answer, len(seen))
			}
		}
	}
	for _, port := range []string{"80@127.0.0.1", "80#", "0x50", "-1", "65536", "80%2f"} {
		if code, answer := a.send(t, call{method: "GET", path: "/api/v1/namespaces/mallory/pods/n0:" + port + "/proxy/", token: harness.AdminToken}); code < 400 {
			t.Errorf("port %s: %d %s", port, code, answer)
		}
	}
}

// aggregatedInside: APIServices of Services that lead inside. A name may mean this machine (docs/aggregation.md), an address not.
func aggregatedInside(t *testing.T, a *arena, goal *inside) {
	const services, apis = "/api/v1/namespaces/other/services", "/apis/apiregistration.k8s.io/v1/apiservices"
	for i, host := range []string{"127.0.0.1", "169.254.169.254", "0.0.0.0"} {
		name := fmt.Sprintf("s%d", i)
		// Validation refuses some of these.
		a.send(t, call{method: "POST", path: services, token: harness.AdminToken, body: fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"type":"ExternalName","externalName":%q}}`, name, host)})
		a.admin(t, "POST", apis, fmt.Sprintf(`{"metadata":{"name":"v1.%[1]s.example"},"spec":{"group":"%[1]s.example","version":"v1","groupPriorityMinimum":1,"versionPriority":1,"insecureSkipTLSVerify":true,
			"service":{"namespace":"other","name":%[1]q,"port":%[2]s}}}`, name, goal.port))
		eventually(t, host+" is judged", func() bool {
			return strings.Contains(a.Get(t, apis+"/v1."+name+".example"), `"type":"Available"`)
		})
		code, answer := a.send(t, call{method: "GET", path: "/apis/" + name + ".example/v1/things", token: harness.AdminToken})
		if seen := goal.headers(); len(seen) > 0 || code != 503 {
			t.Errorf("%s: answered with %d %.200s and reached %d times", host, code, answer, len(seen))
		}
	}
}

// redirectsOfAgents: the agent of a node sends the server nowhere, and does not receive the client's credentials or identity.
func redirectsOfAgents(t *testing.T, a *arena, goal *inside) {
	agent := newInside(t, goal.URL+"/x", nil)
	port, err := strconv.Atoi(agent.port)
	if err != nil {
		t.Fatal(err)
	}
	a.admin(t, "POST", "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":"agent"},"status":{"addresses":[{"type":"Hostname","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port))
	a.admin(t, "POST", "/api/v1/namespaces/mallory/pods", `{"metadata":{"name":"placed"},"spec":{"nodeName":"agent","automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`)
	const pod = "/api/v1/namespaces/mallory/pods/placed/"
	upgrade := "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
	for what, text := range map[string]string{
		"log": "GET " + pod + "log HTTP/1.1\r\n", "exec": "POST " + pod + "exec?command=x HTTP/1.1\r\nContent-Length: 0\r\n" + upgrade,
		"attach": "POST " + pod + "attach HTTP/1.1\r\nContent-Length: 0\r\n" + upgrade, "portforward": "POST " + pod + "portforward HTTP/1.1\r\nContent-Length: 0\r\n" + upgrade,
	} {
		_, bodies := a.exchange(t, text+"Host: x\r\nAuthorization: Bearer "+harness.AdminToken+"\r\nCookie: a=b\r\nX-Remote-User: admin\r\nImpersonate-User: system:serviceaccount:mallory:mallory\r\n\r\n", 1)
		seen := agent.headers()
		if len(seen) != 1 || len(goal.headers()) > 0 || strings.Contains(bodies, "unspeakable") {
			t.Errorf("%s: the agent is asked %d times, and answers %.300s", what, len(seen), bodies)
			continue
		}
		for name := range seen[0] {
			if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
				t.Errorf("%s: the agent receives %s: %q", what, name, seen[0][name])
			}
		}
	}
}

// redirectsOfWebhooks: an admission webhook redirects the server, and what it sends, nowhere, and does not receive a client's
// credentials.
func redirectsOfWebhooks(t *testing.T, a *arena, goal *inside) {
	ca := harness.NewAuthority(t, "hooks")
	hook := newInside(t, goal.URL+"/x", ca.Server(t))
	const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	config := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]string{"name": "moved"},
		"webhooks": []any{map[string]any{
			"name": "moved.mallory.example", "admissionReviewVersions": []string{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
			"clientConfig":      map[string]any{"url": hook.URL + "/hook", "caBundle": ca.PEM},
			"namespaceSelector": map[string]any{"matchLabels": map[string]string{"kubernetes.io/metadata.name": "mallory"}},
			"rules":             []any{map[string]any{"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"}, "operations": []string{"CREATE"}}},
		}},
	}
	a.admin(t, "POST", path, encode(t, config))
	asked := func() (n int, answer string) {
		code, answer := a.send(t, call{method: "POST", path: mine + "?dryRun=All", body: `{"metadata":{"name":"hooked"}}`, token: a.mallory, headers: []string{"X-Remote-User", "admin", "Cookie", "a=b"}})
		seen := hook.headers()
		for _, h := range seen {
			for _, name := range []string{"Authorization", "Cookie", "X-Remote-User"} {
				if h[name] != nil {
					t.Errorf("the webhook receives %s: %q", name, h[name])
				}
			}
		}
		if len(seen) > 0 && code < 400 {
			t.Errorf("a redirect is taken for consent: %d %s", code, answer)
		}
		return len(seen), answer
	}
	eventually(t, "the webhook is asked", func() bool { n, _ := asked(); return n > 0 })
	if _, answer := asked(); len(goal.headers()) > 0 || strings.Contains(answer, "unspeakable") {
		t.Errorf("the redirect is followed: %s", answer)
	}
	a.admin(t, "DELETE", path+"/moved", "")
}
