package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/e2e/harness"
)

// raw is a connection of HTTP/2 whose frames a test writes by itself.
type raw struct {
	t     *testing.T
	conn  io.ReadWriteCloser
	f     *http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
	next  uint32
}

// openRaw opens one whose client says what it takes.
func openRaw(t *testing.T, s *harness.Server, settings ...http2.Setting) *raw {
	t.Helper()
	c := dial(t, s, "h2")
	r := &raw{t: t, conn: c, f: http2.NewFramer(c, c), next: 1}
	r.enc = hpack.NewEncoder(&r.block)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := r.f.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return r
}

// request begins one, of which a body may follow.
func (r *raw) request(end bool, method, path string, headers ...string) error {
	r.block.Reset()
	list := append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, headers...)
	for i := 0; i+1 < len(list); i += 2 {
		if err := r.enc.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]}); err != nil {
			return err
		}
	}
	id := r.next
	r.next += 2
	return r.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.block.Bytes(), EndHeaders: true, EndStream: end})
}

// asUser returns headers that impersonate a user without the rights of an administrator.
func asUser(name string) []string {
	return []string{"authorization", "Bearer " + harness.AdminToken, "impersonate-user", name, "impersonate-group", "system:authenticated"}
}

// allow gives users the rights of editors.
func allow(t *testing.T, s *harness.Server, users ...string) {
	t.Helper()
	var subjects []string
	for _, u := range users {
		subjects = append(subjects, fmt.Sprintf(`{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}`, u))
	}
	body := `{"metadata":{"name":"limits"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[` + strings.Join(subjects, ",") + `]}`
	if a := asAdmin(t, s, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body); a.code != 201 {
		t.Fatal(a)
	}
}

// sendAs sends a request of a user, and returns the code.
func sendAs(t *testing.T, s *harness.Server, client *http.Client, user, method, path, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for h := asUser(user); len(h) > 0; h = h[2:] {
		r.Header.Set(h[0], h[1])
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// TestPlacesOfOthers: a user whose few connections have closed windows, or send
// bodies a byte at a time, takes no places from other users.
func TestPlacesOfOthers(t *testing.T) {
	t.Parallel()
	const configMaps = "/api/v1/namespaces/default/configmaps"
	s := harness.StartT(t, harness.Options{Args: []string{"--max-requests-inflight=20", "--max-mutating-requests-inflight=8", "--max-slow-requests-per-user=60"}})
	for i := range 4 {
		if a := asAdmin(t, s, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 200<<10))); a.code != 201 {
			t.Fatal(a.code)
		}
	}
	allow(t, s, "mallory", "bob")
	// Until one has been refused because so many wait.
	for round := 0; slowRefusals(t, s) == 0; round++ {
		if round == 100 {
			t.Fatal("nothing waits")
		}
		c := openRaw(t, s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for range 20 {
			if err := c.request(true, "GET", configMaps, asUser("mallory")...); err != nil {
				t.Fatal(err)
			}
		}
		c = openRaw(t, s)
		for range 20 {
			id := c.next
			if err := c.request(false, "POST", configMaps, append(asUser("mallory"), "content-type", "application/json", "content-length", "1000")...); err != nil {
				t.Fatal(err)
			}
			if err := c.f.WriteData(id, false, []byte("{")); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := clientOf(t, s, true)
	for i := range 50 {
		if code := sendAs(t, s, client, "bob", "GET", configMaps, ""); code != 200 {
			t.Errorf("bob's list %d: %d", i, code)
		}
		if code := sendAs(t, s, client, "bob", "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"bob-%d"}}`, i)); code != 201 {
			t.Errorf("bob's ConfigMap %d: %d", i, code)
		}
	}
}

// slowRefusals is how many requests were refused because their user had too many that wait.
func slowRefusals(t *testing.T, s *harness.Server) (n float64) {
	t.Helper()
	for line := range strings.Lines(asAdmin(t, s, "GET", "/metrics", "").body) {
		if text, ok := strings.CutPrefix(line, `rowlock_requests_limited_total{limit="slow-requests-of-user"} `); ok {
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}
