package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/release"
)

const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

func TestBadPolicies(t *testing.T) {
	for body, want := range map[string]string{
		"rules: []":                                 `loaded illegal policy with 0 rules`,
		"rules: [{level: Loud}]":                    `rules[0].level: Unsupported value: "Loud": supported values: "None", "Metadata", "Request", "RequestResponse"`,
		"rules: [{users: [a]}]":                     `rules[0].level: Required value`,
		"omitStages: [Foo]\nrules: [{level: None}]": `omitStages[0]: Invalid value: "Foo": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic`,
		`rules: [{level: None, nonResourceURLs: ["/a"], namespaces: [x]}]`: `rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs`,
		`rules: [{level: None, nonResourceURLs: ["/a*b"]}]`:                `wildcards '*' must be the final character`,
		`rules: [{level: None, resources: [{resourceNames: [a]}]}]`:        `using resourceNames requires at least one resource`,
		"rules: [{level: None}]\nunknown: 1":                               "",
	} {
		_, err := audit.Parse([]byte(head + body))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if _, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v9\nkind: Policy\nrules: [{level: None}]")); err == nil || !strings.Contains(err.Error(), `no kind "Policy" is registered`) {
		t.Errorf("other version: %v", err)
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Load(path, false); err == nil || err.Error() != "loading audit policy file: loaded illegal policy with 0 rules: from file "+path {
		t.Errorf("empty file: %v", err)
	}
}

func policy(t testing.TB, body string) *audit.Policy {
	t.Helper()
	p, err := audit.Parse([]byte(head + body))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRules(t *testing.T) {
	eve := &authx.Identity{Name: "eve", Groups: []string{"devs"}}
	secret := authx.Attributes{User: eve, Verb: "get", Resource: "secrets", Namespace: "a", Name: "s", ResourceRequest: true}
	logs := authx.Attributes{User: eve, Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a", ResourceRequest: true}
	path := authx.Attributes{User: eve, Verb: "get", Path: "/healthz/etcd"}
	for _, c := range []struct {
		rule string
		a    authx.Attributes
		want bool
	}{
		{"users: [eve]", secret, true},
		{"users: [bob]", secret, false},
		{"users: [eve]", authx.Attributes{Verb: "get"}, false},
		{"userGroups: [x, devs]", secret, true},
		{"userGroups: [x]", secret, false},
		{"verbs: [list]", secret, false},
		{"namespaces: [a]", secret, true},
		{`namespaces: [""]`, secret, false},
		{"resources: [{resources: [secrets]}]", secret, true},
		{"resources: [{group: apps, resources: [secrets]}]", secret, false},
		{"resources: [{resources: [secrets], resourceNames: [s]}]", secret, true},
		{"resources: [{resources: [secrets], resourceNames: [t]}]", secret, false},
		{"resources: [{resources: [pods]}]", logs, false},
		{"resources: [{resources: [pods/log]}]", logs, true},
		{"resources: [{resources: [pods/*]}]", logs, true},
		{`resources: [{resources: ["*/log"]}]`, logs, true},
		{`resources: [{resources: ["*"]}]`, logs, true},
		{"resources: [{}]", logs, true},
		{"resources: [{}]", path, false},
		{"nonResourceURLs: [/healthz*]", path, true},
		{"nonResourceURLs: [/healthz]", path, false},
		{`nonResourceURLs: ["*"]`, path, true},
		{`nonResourceURLs: ["*"]`, secret, false},
	} {
		v := policy(t, "rules: [{level: Metadata, "+c.rule+"}]").For(&c.a)
		if (v.Level == audit.Metadata) != c.want {
			t.Errorf("%s: %s", c.rule, v.Level)
		}
	}
}

func TestStagesAndFields(t *testing.T) {
	p := policy(t, "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n- {level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n- {level: None}")
	v := p.For(&authx.Attributes{Verb: "get"})
	if !v.Omits(audit.RequestReceived) || !v.Omits(audit.Panic) || v.Omits(audit.ResponseComplete) || v.OmitManagedFields {
		t.Errorf("%+v", v)
	}
	got := string(audit.WithoutManagedFields([]byte(`{"items":[{"metadata":{"name":"a","managedFields":[]}}],"metadata":{"managedFields":[1]}}`)))
	if strings.Contains(got, "managedFields") || !strings.Contains(got, `"name":"a"`) {
		t.Error(got)
	}
	// Deeper levels of an object are the user's own, and are not walked.
	const deep = `{"items":[{"items":[{"metadata":{"managedFields":[]}}],"metadata":{"managedFields":[]}}]}`
	if got := string(audit.WithoutManagedFields([]byte(deep))); got != `{"items":[{"items":[{"metadata":{"managedFields":[]}}],"metadata":{}}]}` {
		t.Error(got)
	}
	// Revisions of the past hold whole objects; a field with that name elsewhere belongs to the user.
	one := `{"metadata":{"name":"r"},"content":{"kind":"Pod","metadata":{"name":"p","managedFields":[{"manager":"m"}]}}}`
	of := func(version string) string { return `{"apiVersion":"` + version + `","items":[` + one + `]}` }
	for text, kept := range map[string]bool{
		strings.Replace(one, `{`, `{"apiVersion":"`+history.GroupVersion.String()+`",`, 1): false, of(history.GroupVersion.String()): false, of("a.example/v1"): true, one: true,
	} {
		if got := string(audit.WithoutManagedFields([]byte(text))); strings.Contains(got, "managedFields") != kept || !strings.Contains(got, `"name":"p"`) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

type lines []string

func (l *lines) Take(e []byte) error { *l = append(*l, string(e)); return nil }

func record(t *testing.T, level string) string {
	t.Helper()
	var out lines
	clock := func() time.Time { return time.Unix(1, 5000).UTC() }
	a := &audit.Auditor{Policy: policy(t, "rules: [{level: "+level+"}]"), Sinks: []audit.Sink{&out}, Metrics: audit.NewMetrics(), Clock: clock}
	r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/d/secrets?x=1", nil)
	r.Header.Set("User-Agent", "me")
	rec := a.Begin(r, "id", r.RequestURI, &authx.Attributes{
		User: &authx.Identity{Name: "u", Groups: []string{"g"}}, Verb: "create", Resource: "secrets", Namespace: "d", APIVersion: "v1", ResourceRequest: true,
	}, clock())
	rec.RequestObject(&corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": []byte("hidden")}}, codecjson.New(codecjson.Settings{View: release.V132.View()}).Encode)
	rec.ResponseObject([]byte(`{"kind":"Secret","data":{"k":"aGlkZGVu"}}`))
	if err := rec.Reach(audit.ResponseComplete, 201, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

// TestSources: an event holds the addresses that a request names, and the one it came from.
func TestSources(t *testing.T) {
	for _, tc := range []struct{ forwarded, real, want string }{
		{"", "", `["192.0.2.1"]`},
		{"198.51.100.1, 198.51.100.2", "", `["198.51.100.1","198.51.100.2","192.0.2.1"]`},
		{"198.51.100.1, nowhere, 192.0.2.1", "", `["198.51.100.1","192.0.2.1"]`},
		{"198.51.100.1", "198.51.100.3", `["198.51.100.1","198.51.100.3","192.0.2.1"]`},
		{"198.51.100.1", "198.51.100.1", `["198.51.100.1","192.0.2.1"]`},
	} {
		var out lines
		a := &audit.Auditor{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{&out}, Metrics: audit.NewMetrics(), Clock: time.Now}
		r := httptest.NewRequest(http.MethodGet, "/version", nil)
		r.Header.Set("X-Forwarded-For", tc.forwarded)
		r.Header.Set("X-Real-Ip", tc.real)
		if err := a.Begin(r, "id", r.RequestURI, &authx.Attributes{Verb: "get"}, time.Now()).Reach(audit.RequestReceived, 0, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(out, ""); !strings.Contains(got, `"sourceIPs":`+tc.want) {
			t.Errorf("%s and %s: %s, want %s", tc.forwarded, tc.real, got, tc.want)
		}
	}
}

// TestManyProxies: an event has the first hundreds of the addresses in a header of any length, and the one that no client can forge.
func TestManyProxies(t *testing.T) {
	var out lines
	a := &audit.Auditor{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{&out}, Metrics: audit.NewMetrics(), Clock: time.Now}
	r := httptest.NewRequest(http.MethodGet, "/version", nil)
	r.Header.Set("X-Forwarded-For", strings.Repeat("203.0.113.7,", 100_000))
	if err := a.Begin(r, "id", r.RequestURI, &authx.Attributes{Verb: "get"}, time.Now()).Reach(audit.RequestReceived, 0, nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out[0], `"203.0.113.7"`); n < 100 || n > 1000 || !strings.Contains(out[0], `"203.0.113.7","192.0.2.1"]`) {
		t.Errorf("%d addresses of proxies in %d bytes", n, len(out[0]))
	}
}

// TestReceived: the first event has the time of the request's arrival, and the annotations so far.
func TestReceived(t *testing.T) {
	var out lines
	a := &audit.Auditor{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{&out}, Metrics: audit.NewMetrics(), Clock: func() time.Time { return time.Unix(9, 0) }}
	r := httptest.NewRequest(http.MethodGet, "/version", nil)
	rec := a.Begin(r, "id", r.RequestURI, &authx.Attributes{Verb: "get"}, time.Unix(1, 0))
	for _, stage := range []audit.Stage{audit.RequestReceived, audit.ResponseComplete} {
		if err := rec.Reach(stage, 0, map[string]string{"a": "b"}); err != nil {
			t.Fatal(err)
		}
	}
	const received = `"requestReceivedTimestamp":"1970-01-01T00:00:01.000000Z","stageTimestamp":"1970-01-01T00:00:0`
	if len(out) != 2 || !strings.Contains(out[0], received+`1.000000Z","annotations":{"a":"b"}`) || !strings.Contains(out[1], received+`9.000000Z"`) {
		t.Errorf("%s", out)
	}
}

func TestLevels(t *testing.T) {
	const start = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"LEVEL","auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/d/secrets?x=1","verb":"create","user":{"username":"u","groups":["g"]},"sourceIPs":["192.0.2.1"],"userAgent":"me","objectRef":{"resource":"secrets","namespace":"d","name":"s","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},`
	const end = `"requestReceivedTimestamp":"1970-01-01T00:00:01.000005Z","stageTimestamp":"1970-01-01T00:00:01.000005Z","annotations":{"a":"b"}}`
	const request = `"requestObject":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","creationTimestamp":null},"data":{"k":"aGlkZGVu"}},`
	for level, body := range map[string]string{"Metadata": "", "Request": request, "RequestResponse": request + `"responseObject":{"kind":"Secret","data":{"k":"aGlkZGVu"}},`} {
		if got, want := record(t, level), strings.Replace(start, "LEVEL", level, 1)+body+end; got != want {
			t.Errorf("%s:\n%s\n%s", level, got, want)
		}
	}
	if got := record(t, "None"); got != "" {
		t.Error(got)
	}
}

// stuck is a backend that never answers while its request lasts.
type stuck struct{ sent chan int }

func (stuck) Name() string { return "stuck" }
func (s stuck) Send(ctx context.Context, events [][]byte) error {
	s.sent <- len(events)
	<-ctx.Done()
	return ctx.Err()
}

func lost(t *testing.T, m *audit.Metrics) (n float64) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(m.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "apiserver_audit_error_total" {
			for _, c := range f.GetMetric() {
				n += c.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestBatchNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := audit.NewMetrics(), stuck{make(chan int, 10)}
		b := &audit.Batch{Sender: s, Metrics: m, MaxSize: 2, MaxWait: time.Second}
		b.Start(3)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		_ = b.Take([]byte("1"))
		if n := <-s.sent; n != 1 {
			t.Errorf("first batch has %d events", n)
		}
		for range 5 {
			_ = b.Take([]byte("x"))
		}
		if n := lost(t, m); n != 2 {
			t.Errorf("%v events lost, want 2", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := lost(t, m); n != 6 {
			t.Errorf("%v events lost at the end, want all 6", n)
		}
	})
}

// TestBatchBytes: events with large bodies are lost before the memory is, and those that
// are under way count.
func TestBatchBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := audit.NewMetrics(), stuck{make(chan int, 10)}
		b := &audit.Batch{Sender: s, Metrics: m, MaxSize: 2}
		b.Start(1000)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		large := make([]byte, audit.MaxKept/4)
		_ = b.Take(large)
		<-s.sent // it is stuck
		for range 5 {
			_ = b.Take(large)
		}
		if n := lost(t, m); n != 2 {
			t.Errorf("%v events lost, want 2 of 6 that are a quarter each", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = b.Take(large)
		if n := lost(t, m); n != 6 {
			t.Errorf("%v events lost, want all but the one that has room again", n)
		}
	})
}

func TestWebhookTriesAgain(t *testing.T) {
	var bodies []string
	codes := []int{503, 429, 200, 400}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list struct{ Items []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil || len(list.Items) != 2 {
			t.Errorf("body: %v %v", list, err)
		}
		bodies = append(bodies, r.URL.Path)
		w.WriteHeader(codes[len(bodies)-1])
	}))
	defer hook.Close()
	w := &audit.Webhook{URL: hook.URL, Client: hook.Client(), Backoff: time.Nanosecond}
	events := [][]byte{[]byte(`{"a":1}`), []byte(`{"b":2}`)}
	if err := w.Send(t.Context(), events); err != nil || len(bodies) != 3 {
		t.Errorf("%v after %d tries", err, len(bodies))
	}
	if err := w.Send(t.Context(), events); err == nil || len(bodies) != 4 {
		t.Errorf("%v after %d tries", err, len(bodies))
	}
}

type broken struct{}

func (broken) Name() string                         { return "broken" }
func (broken) Send(context.Context, [][]byte) error { return errors.New("full") }

func TestBlocking(t *testing.T) {
	m := audit.NewMetrics()
	for strict, want := range map[bool]bool{true: true, false: false} {
		b := &audit.Blocking{Sender: broken{}, Metrics: m, Strict: strict}
		if err := b.Take([]byte("{}")); (err != nil) != want {
			t.Errorf("strict %v: %v", strict, err)
		}
	}
	if n := lost(t, m); n != 2 {
		t.Errorf("%v lost", n)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(head + "rules: [{level: None}]"))
	f.Add([]byte(head + `rules: [{level: Metadata, nonResourceURLs: ["*"], omitStages: [Panic]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := audit.Parse(data)
		if err != nil {
			return
		}
		if len(p.Rules) == 0 {
			t.Error("a policy without rules")
		}
		p.For(&authx.Attributes{Verb: "get", Resource: "pods", ResourceRequest: true})
	})
}

// TestAllGroups: the group "*" matches all groups in the releases that have it, and is refused in others.
func TestAllGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: Request, resources: [{group: '*', resources: [leases]}]}\n- {level: Metadata}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Load(path, false); err == nil || !strings.Contains(err.Error(), `rules[0].resources.group: Invalid value: "*"`) {
		t.Errorf("%v", err)
	}
	p, err := audit.Load(path, true)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]audit.Level{"leases": audit.Request, "pods": audit.Metadata} {
		for _, group := range []string{"", "coordination.k8s.io"} {
			if got := p.For(&authx.Attributes{ResourceRequest: true, APIGroup: group, Resource: resource}).Level; got != want {
				t.Errorf("%s of %q: %s", resource, group, got)
			}
		}
	}
}
