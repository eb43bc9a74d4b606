package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const busyPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, users: [ghost, "system:apiserver"]}
- {level: None, nonResourceURLs: ["/readyz", "/metrics"]}
- {level: Metadata, resources: [{resources: [secrets, serviceaccounts/token]}, {group: authentication.k8s.io}]}
- {level: Request, verbs: [patch], omitStages: [RequestReceived]}
- {level: RequestResponse, resources: [{resources: [configmaps]}], omitStages: [RequestReceived]}
- {level: Metadata}
`

// auditEvent has the fields that tests check.
type auditEvent struct {
	Level, Stage, Verb, RequestURI, AuditID string
	User                                    struct {
		Username string
		Extra    map[string][]string
	}
	ImpersonatedUser              *struct{ Username string }
	ObjectRef                     *struct{ Resource, Subresource, Name string }
	ResponseStatus                *struct{ Code int }
	RequestObject, ResponseObject json.RawMessage
	Annotations                   map[string]string
}

// auditHook is a backend that can stall.
type auditHook struct {
	*httptest.Server
	mu     sync.Mutex
	gate   chan struct{} // closed: answers
	events []auditEvent
	most   int // bytes of an event
}

func (h *auditHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var list struct{ Items []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	gate := h.gate
	h.mu.Unlock()
	select {
	case <-gate:
	case <-r.Context().Done():
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, raw := range list.Items {
		var e auditEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.events, h.most = append(h.events, e), max(h.most, len(raw))
	}
}

// find returns the event of a request at a stage.
func (h *auditHook) find(id, stage string) *auditEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return findEvent(h.events, id, stage)
}

func findEvent(events []auditEvent, id, stage string) *auditEvent {
	for i := range events {
		if events[i].AuditID == id && events[i].Stage == stage {
			return &events[i]
		}
	}
	return nil
}

// readAudit reads a log, but for a line that is being written.
func readAudit(t *testing.T, path string) (events []auditEvent, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e auditEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%.200s: %v", line, err)
		}
		events = append(events, e)
	}
	return events, string(data)
}

// TestAudit records requests to a file, and to a server that does not answer for a
// while.
func TestAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "logs", "audit.log")
	if err := os.WriteFile(policy, []byte(busyPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	close(open)
	h := &auditHook{gate: open}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	a := &access{dir: dir, clients: map[*certificate]*http.Client{}}
	a.s = harness.StartT(t, harness.Options{Args: []string{
		"--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-maxsize", "1", "--audit-log-maxbackup", "2",
		"--audit-webhook-config-file", webhookKubeconfig(t, dir, h.Server), "--audit-webhook-initial-backoff", "20ms",
		"--audit-webhook-batch-buffer-size", "50", "--audit-webhook-batch-max-size", "5", "--audit-webhook-batch-max-wait", "5ms", "--audit-webhook-batch-throttle-enable=false",
		"--audit-webhook-truncate-enabled", "--audit-webhook-truncate-max-event-size", "20000", "--audit-webhook-truncate-max-batch-size", "60000",
	}})
	a.roots, _ = a.s.CA()
	a.auditContents(t, h, log)
	a.auditStalls(t, h)
	a.auditRotates(t, log)
}

// ask makes a request under a name of its own.
func (a *access) ask(t *testing.T, id string, c call) int {
	t.Helper()
	if c.headers == nil {
		c.headers = http.Header{}
	}
	c.headers.Set("Audit-Id", id)
	if c.token == "" {
		c.token = harness.AdminToken
	}
	code, _ := a.do(t, c)
	return code
}

// auditContents: what events hold, and what they must not.
func (a *access) auditContents(t *testing.T, h *auditHook, log string) {
	const maps, hidden = "/api/v1/namespaces/default/configmaps", "dW5zcGVha2FibGU="
	long := strings.Repeat("x", 30000)
	a.namespace(t, "audited")
	a.admin(t, "POST", "/api/v1/namespaces/audited/serviceaccounts", `{"metadata":{"name":"app"}}`)
	token := a.tokenOf(t, "audited", "app", "{}")
	watch := call{path: maps + "?watch=1&timeoutSeconds=1"}
	for _, r := range []struct {
		id   string
		call call
		code int
	}{
		{"secret", call{method: "POST", path: "/api/v1/namespaces/audited/secrets", body: `{"metadata":{"name":"s"},"data":{"k":"` + hidden + `"}}`}, 201},
		{"secrets", call{path: "/api/v1/namespaces/audited/secrets"}, 200},
		{"review", call{method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", body: `{"spec":{"token":"` + token + `"}}`}, 201},
		{"made", call{method: "POST", path: maps, body: `{"metadata":{"name":"c"},"data":{"k":"v"}}`}, 201},
		{"patched", call{method: "PATCH", path: maps + "/c", contentType: "application/merge-patch+json", body: `{"data":{"k":"w"}}`}, 200},
		{"long", call{method: "POST", path: maps, body: `{"metadata":{"name":"long"},"data":{"k":"` + long + `"}}`}, 201},
		{"masked", call{path: maps + "/c", headers: http.Header{"Impersonate-User": {"eve"}}}, 403},
		{"refused", call{path: maps + "/c", token: "wrong"}, 401},
		{"ghost", call{path: maps + "/c", headers: http.Header{"Impersonate-User": {"ghost"}}}, 403},
		{"old", call{path: "/api/v1/componentstatuses"}, 200},
		{"watch", watch, 200},
		{"app", call{path: maps, token: token}, 403},
	} {
		if code := a.ask(t, r.id, r.call); code != r.code {
			t.Errorf("%s: %d, want %d", r.id, code, r.code)
		}
	}
	var events []auditEvent
	var text string
	// The end of an answer is recorded when there is one: its client may have seen it before.
	eventually(t, "the last requests in the log", func() bool {
		events, text = readAudit(t, log)
		return findEvent(events, "watch", "ResponseComplete") != nil && findEvent(events, "app", "ResponseComplete") != nil
	})
	for _, secret := range []string{hidden, "unspeakable", token, strings.Split(token, ".")[2], harness.AdminToken, "wrong"} {
		if strings.Contains(text, secret) {
			t.Errorf("%.30s is in the log", secret)
		}
	}
	for _, want := range []struct {
		id, stage, level  string
		code              int
		request, response string // texts in bodies; "" for none
		annotations       map[string]string
	}{
		{"secret", "RequestReceived", "Metadata", 0, "", "", nil},
		{"secret", "ResponseComplete", "Metadata", 201, "", "", map[string]string{"authorization.k8s.io/decision": "allow"}},
		{"secrets", "ResponseComplete", "Metadata", 200, "", "", nil},
		{"review", "ResponseComplete", "Metadata", 201, "", "", nil},
		{"made", "ResponseComplete", "RequestResponse", 201, `"data":{"k":"v"}`, `"data":{"k":"v"}`, nil},
		{"patched", "ResponseComplete", "Request", 200, `{"data":{"k":"w"}}`, "", nil},
		{"long", "ResponseComplete", "RequestResponse", 201, long, long, nil},
		{"masked", "ResponseComplete", "RequestResponse", 403, "", `"reason":"Forbidden"`, map[string]string{"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}},
		{"refused", "ResponseStarted", "RequestResponse", 401, "", "", nil},
		{"old", "ResponseComplete", "Metadata", 200, "", "", map[string]string{"k8s.io/deprecated": "true"}},
		{"watch", "ResponseStarted", "RequestResponse", 200, "", "", nil},
		{"watch", "ResponseComplete", "RequestResponse", 200, "", "", nil},
		{"app", "ResponseComplete", "RequestResponse", 403, "", "", nil},
	} {
		e := findEvent(events, want.id, want.stage)
		if e == nil {
			t.Errorf("%s: no event at %s", want.id, want.stage)
			continue
		}
		code := 0
		if e.ResponseStatus != nil {
			code = e.ResponseStatus.Code
		}
		if e.Level != want.level || code != want.code || !holdsBody(e.RequestObject, want.request) || want.code < 400 && !holdsBody(e.ResponseObject, want.response) {
			t.Errorf("%s at %s: %s %d %.200s %.200s", want.id, want.stage, e.Level, code, e.RequestObject, e.ResponseObject)
		}
		if strings.Contains(string(e.ResponseObject), "managedFields") {
			t.Errorf("%s: managed fields are there", want.id)
		}
		for k, v := range want.annotations {
			if got, ok := e.Annotations[k]; !ok || got != v {
				t.Errorf("%s: %v, want %s=%s", want.id, e.Annotations, k, v)
			}
		}
	}
	if e := findEvent(events, "masked", "ResponseComplete"); e == nil || e.User.Username != "admin" || e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != "eve" {
		t.Errorf("both identities: %+v", e)
	}
	if e := findEvent(events, "app", "ResponseComplete"); e == nil || !strings.HasPrefix(strings.Join(e.User.Extra["authentication.kubernetes.io/credential-id"], ""), "JTI=") {
		t.Errorf("the token is not named: %+v", e)
	}
	if e := findEvent(events, "made", "RequestReceived"); e != nil {
		t.Error("a stage that the rule omits is there")
	}
	// The other backend has the same events, except for those that are too large.
	eventually(t, "events at the webhook", func() bool { return h.find("app", "ResponseComplete") != nil })
	e := h.find("long", "ResponseComplete")
	if e == nil || len(e.RequestObject)+len(e.ResponseObject) > 0 || e.Annotations["audit.k8s.io/truncated"] != "true" || h.most > 20000 {
		t.Errorf("an event that is too large: %+v, the largest has %d bytes", e, h.most)
	}
}

func holdsBody(body json.RawMessage, text string) bool {
	return (len(body) > 0) == (text != "") && strings.Contains(string(body), text)
}

var droppedMetric = regexp.MustCompile(`apiserver_audit_error_total{plugin="buffered"} (\d+)`)

// counted returns the figure that a pattern finds in a server's metrics; 0 where it is not
// there yet.
func counted(t *testing.T, pattern *regexp.Regexp, metrics string) int {
	t.Helper()
	m := pattern.FindStringSubmatch(metrics)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// auditStalls: no request waits for a backend that does not answer. The server drops and counts
// the events that do not fit into the buffer, and sends the others later.
func (a *access) auditStalls(t *testing.T, h *auditHook) {
	gate, before := make(chan struct{}), counted(t, droppedMetric, a.admin(t, "GET", "/metrics", "")) // the start may have been too busy
	h.mu.Lock()
	h.gate = gate
	h.mu.Unlock()
	start := time.Now()
	for i := range 100 { // two events each
		a.ask(t, fmt.Sprintf("stall-%d", i), call{path: "/api/v1/namespaces/audited/secrets/s"})
	}
	if took := time.Since(start); took > patience {
		t.Errorf("requests wait for the backend: %s", took)
	}
	metrics := a.admin(t, "GET", "/metrics", "")
	if want := `apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("no %s", want)
	}
	dropped := counted(t, droppedMetric, metrics) - before
	if dropped < 100 || dropped > 200 {
		t.Errorf("%d events are counted as lost", dropped)
	}
	close(gate)
	eventually(t, "what was kept arrives", func() bool { return h.find("stall-0", "ResponseComplete") != nil })
	eventually(t, "new events arrive", func() bool {
		a.ask(t, "after", call{path: "/api/v1/namespaces/audited/secrets/s"})
		return h.find("after", "ResponseComplete") != nil
	})
}

// auditRotates: a log of a megabyte is rotated, and so many old ones are kept.
func (a *access) auditRotates(t *testing.T, log string) {
	body := fmt.Sprintf(`{"data":{"k":%q}}`, strings.Repeat("y", 500<<10))
	for i := range 8 {
		a.ask(t, fmt.Sprintf("rotate-%d", i), call{method: "PATCH", path: "/api/v1/namespaces/default/configmaps/c?dryRun=All", contentType: "application/merge-patch+json", body: body})
	}
	eventually(t, "old logs are dropped", func() bool {
		files, err := os.ReadDir(filepath.Dir(log))
		if err != nil {
			t.Fatal(err)
		}
		return len(files) == 3
	})
	eventually(t, "the last event in the log", func() bool {
		events, _ := readAudit(t, log)
		return findEvent(events, "rotate-7", "ResponseComplete") != nil
	})
	info, err := os.Stat(log)
	if err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
