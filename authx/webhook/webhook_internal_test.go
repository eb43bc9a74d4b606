package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote/remotetest"
)

// hook answers with a code and a body, and keeps what it was asked.
type hook struct {
	mu    sync.Mutex
	code  int
	body  string
	stall bool
	asked []string
	// arrived, if set, is called when a review arrives.
	arrived func()
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.asked = append(h.asked, string(body))
	code, answer, stall := h.code, h.body, h.stall
	h.mu.Unlock()
	if h.arrived != nil {
		h.arrived()
	}
	if stall {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(code)
	fmt.Fprint(w, answer)
}

func (h *hook) say(status string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.code, h.body = 200, `{"status":`+status+`}`
}

func (h *hook) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

// seen is an Observer that keeps a line of each call.
type seen struct {
	mu    sync.Mutex
	lines []string
}

func (s *seen) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *seen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Join(s.lines, "; ")
	s.lines = nil
	return lines
}

func (s *seen) Evaluated(name, result string, _ time.Duration) { s.add("asked %s %s", name, result) }
func (s *seen) FailedOpen(name, result string)                 { s.add("open %s %s", name, result) }
func (s *seen) Matched(name string, _ time.Duration, excluded bool, err error) {
	s.add("matched %s %v %v", name, excluded, err != nil)
}

func start(t *testing.T, h *hook, c Config) *Authorizer {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	c.Name, c.Kubeconfig = "hook", remotetest.Kubeconfig(t, srv, "/authorize")
	if c.Version == "" {
		c.Version = "v1"
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.AuthorizedTTL == 0 {
		c.AuthorizedTTL, c.UnauthorizedTTL = 5*time.Minute, 30*time.Second
	}
	z, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	z.service.Pause = time.Millisecond
	return z
}

func conditions(t *testing.T, texts ...string) Conditions {
	t.Helper()
	var list Conditions
	for _, text := range texts {
		c, err := Compile(text, true)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

var one = &authx.Identity{Name: "one", UID: "u1", Groups: []string{"g", "system:authenticated"}, Extra: map[string][]string{"scopes": {"a"}}}

func pods(verb string) *authx.Attributes {
	return &authx.Attributes{User: one, Verb: verb, Namespace: "default", APIVersion: "v1", Resource: "pods", ResourceRequest: true}
}

func TestQuestions(t *testing.T) {
	selected := pods("list")
	f, err := fields.ParseSelector("spec.nodeName=n1,status.phase!=Running")
	if err != nil {
		t.Fatal(err)
	}
	l, err := labels.Parse("a in (x,y),b notin (z),c,!d,e=f")
	if err != nil {
		t.Fatal(err)
	}
	selected.FieldRequirements = f.Requirements()
	selected.LabelRequirements, _ = l.Requirements()
	unparsable := pods("list")
	unparsable.FieldErr, unparsable.LabelErr = errors.New("no"), errors.New("no")
	const head, tail = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{`, `},"status":{"allowed":false}}`
	const user = `,"user":"one","groups":["g","system:authenticated"],"extra":{"scopes":["a"]},"uid":"u1"`
	const plain = head + `"resourceAttributes":{"namespace":"default","verb":"list","version":"v1","resource":"pods"}` + user + tail
	for _, tc := range []struct {
		name, version string
		asked         *authx.Attributes
		want          string
	}{
		{"resource", "v1", pods("list"), plain},
		{"resource, beta", "v1beta1", pods("list"), strings.Replace(strings.Replace(plain, "io/v1", "io/v1beta1", 1), `"groups"`, `"group"`, 1)},
		{"everything", "v1", &authx.Attributes{User: &authx.Identity{Name: "x"}, Verb: "patch", APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Subresource: "scale", Name: "web", ResourceRequest: true},
			head + `"resourceAttributes":{"verb":"patch","group":"apps","version":"v1","resource":"deployments","subresource":"scale","name":"web"},"user":"x"` + tail},
		{"path", "v1", &authx.Attributes{User: one, Verb: "post", Path: "/metrics"}, head + `"nonResourceAttributes":{"path":"/metrics","verb":"post"}` + user + tail},
		{"nobody", "v1", &authx.Attributes{Verb: "get", Path: "/"}, head + `"nonResourceAttributes":{"path":"/","verb":"get"}` + tail},
		{"selectors that do not parse", "v1", unparsable, plain},
		{"selectors", "v1", selected, strings.Replace(plain, `"resource":"pods"`, `"resource":"pods","fieldSelector":{"requirements":[`+
			`{"key":"spec.nodeName","operator":"In","values":["n1"]},{"key":"status.phase","operator":"NotIn","values":["Running"]}]},`+
			`"labelSelector":{"requirements":[{"key":"a","operator":"In","values":["x","y"]},{"key":"b","operator":"NotIn","values":["z"]},`+
			`{"key":"c","operator":"Exists"},{"key":"d","operator":"DoesNotExist"},{"key":"e","operator":"In","values":["f"]}]}`, 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := &hook{}
			h.say(`{"allowed":true}`)
			z := start(t, h, Config{Version: tc.version})
			if d, _, err := z.Authorize(t.Context(), tc.asked); d != authx.Allow || err != nil {
				t.Fatal(d, err)
			}
			if len(h.asked) != 1 || h.asked[0] != tc.want {
				t.Fatalf("asked %s\nwant  %s", h.asked, tc.want)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		status string
		d      authx.Decision
		reason string
		err    string
	}{
		{`{"allowed":true,"reason":"why"}`, authx.Allow, "why", ""},
		{`{"allowed":false,"reason":"why"}`, authx.NoOpinion, "why", ""},
		{`{}`, authx.NoOpinion, "", ""},
		{`{"denied":true,"reason":"why"}`, authx.Deny, "why", ""},
		{`{"denied":true,"allowed":true,"reason":"why"}`, authx.Deny, "why", "webhook subject access review returned both allow and deny response"},
		{`{"allowed":false,"evaluationError":"hidden"}`, authx.NoOpinion, "", ""},
	} {
		h := &hook{}
		h.say(tc.status)
		z := start(t, h, Config{})
		for range 2 { // the second time from memory
			d, reason, err := z.Authorize(t.Context(), pods("get"))
			if d != tc.d || reason != tc.reason || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("%s: %v %q %v", tc.status, d, reason, err)
			}
		}
		if h.times() != 1 {
			t.Errorf("%s: asked %d times", tc.status, h.times())
		}
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name     string
		hook     *hook
		err      string
		observed string
	}{
		{"broken", &hook{code: 500}, "an error on the server", strings.Repeat("asked hook error; ", 5) + "open hook error"},
		{"gateway timeout", &hook{code: 504}, "", strings.Repeat("asked hook timeout; ", 5) + "open hook timeout"},
		{"garbage", &hook{code: 200, body: "<html>"}, "json parse error", "asked hook error; open hook error"},
		{"another version", &hook{code: 200, body: `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}`}, "unknown conversion", "asked hook error; open hook error"},
		{"stalling", &hook{stall: true}, "context deadline exceeded", "asked hook timeout; open hook timeout"},
	} {
		for policy, want := range map[string]authx.Decision{"NoOpinion": authx.NoOpinion, "Deny": authx.Deny} {
			t.Run(tc.name+"/"+policy, func(t *testing.T) {
				observed, log := &seen{}, &strings.Builder{}
				c := Config{OnError: want, Observer: observed, Log: slog.New(slog.NewTextHandler(log, nil))}
				if tc.hook.stall {
					c.Timeout = 30 * time.Millisecond
				}
				z := start(t, tc.hook, c)
				for range 2 { // failures are not remembered
					d, reason, err := z.Authorize(t.Context(), pods("get"))
					if d != want || reason != "" || err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Fatal(d, reason, err)
					}
					line := tc.observed
					if want == authx.Deny {
						line, _, _ = strings.Cut(line, "; open")
					}
					if got := observed.take(); got != line {
						t.Fatalf("saw %s, want %s", got, line)
					}
				}
				if got := strings.Count(log.String(), "other authorizers decide"); got != map[authx.Decision]int{authx.NoOpinion: 1}[want] {
					t.Fatalf("the log says %s", log)
				}
			})
		}
	}
}

// TestGone: a client that leaves is no failure of the service.
func TestGone(t *testing.T) {
	ctx, gone := context.WithCancel(t.Context())
	observed := &seen{}
	z := start(t, &hook{stall: true, arrived: gone}, Config{Observer: observed})
	if d, _, err := z.Authorize(ctx, pods("get")); d != authx.NoOpinion || err == nil {
		t.Fatal(d, err)
	}
	if got := observed.take(); got != "asked hook canceled" {
		t.Fatal(got)
	}
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestMemory(t *testing.T) {
	for status, ttl := range map[string]time.Duration{
		`{"allowed":true}`:  5 * time.Minute,
		`{"allowed":false}`: 30 * time.Second,
		`{"denied":true}`:   30 * time.Second,
	} {
		h := &hook{}
		h.say(status)
		z := start(t, h, Config{})
		now := &clock{time.Now()}
		z.answers = cache.NewLRUExpireCacheWithClock(remembered, now)
		for i, after := range []time.Duration{0, ttl - time.Second, 2 * time.Second} {
			now.now = now.now.Add(after)
			if _, _, err := z.Authorize(t.Context(), pods("get")); err != nil {
				t.Fatal(err)
			}
			if want := 1 + i/2; h.times() != want {
				t.Fatalf("%s: asked %d times, want %d", status, h.times(), want)
			}
		}
	}
	h := &hook{}
	h.say(`{"allowed":true}`)
	z := start(t, h, Config{})
	// Namespace, verb, version and resource count too.
	const others = len("default") + len("get") + len("v1") + len("pods")
	for _, tc := range []struct{ size, asked int }{{maxGrown - others - 1, 1}, {maxGrown - others, 3}} {
		a := pods("get")
		a.Name = strings.Repeat("x", tc.size)
		for range 2 {
			if _, _, err := z.Authorize(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		if h.times() != tc.asked {
			t.Fatalf("size %d: asked %d times, want %d", tc.size, h.times(), tc.asked)
		}
	}
}

// TestKeys: questions that differ in anything have different keys.
func TestKeys(t *testing.T) {
	f, _ := fields.ParseSelector("a=b")
	g, _ := fields.ParseSelector("a!=b")
	l, _ := labels.Parse("a=b")
	m, _ := labels.Parse("a in (b,c)")
	lr, _ := l.Requirements()
	mr, _ := m.Requirements()
	changes := []func(a *authx.Attributes){
		func(*authx.Attributes) {},
		func(a *authx.Attributes) { a.User = nil },
		func(a *authx.Attributes) { a.User = &authx.Identity{Name: "two"} },
		func(a *authx.Attributes) { a.User = &authx.Identity{Name: "one", UID: "u2"} },
		func(a *authx.Attributes) { a.User = &authx.Identity{Name: "one", Groups: []string{"a", "b"}} },
		func(a *authx.Attributes) { a.User = &authx.Identity{Name: "one", Groups: []string{"ab"}} },
		func(a *authx.Attributes) {
			a.User = &authx.Identity{Name: "one", Extra: map[string][]string{"a": {"b"}}}
		},
		func(a *authx.Attributes) {
			a.User = &authx.Identity{Name: "one", Extra: map[string][]string{"a": {"b", ""}}}
		},
		func(a *authx.Attributes) { a.User = &authx.Identity{Name: "one", Extra: map[string][]string{"ab": {}}} },
		func(a *authx.Attributes) { a.Verb = "list" },
		func(a *authx.Attributes) { a.Namespace = "x" },
		func(a *authx.Attributes) { a.APIGroup = "x" },
		func(a *authx.Attributes) { a.APIVersion = "x" },
		func(a *authx.Attributes) { a.Resource = "x" },
		func(a *authx.Attributes) { a.Subresource = "x" },
		func(a *authx.Attributes) { a.Name = "x" },
		func(a *authx.Attributes) { a.ResourceRequest, a.Path = false, "x" },
		func(a *authx.Attributes) { a.ResourceRequest, a.Path = false, "y" },
		func(a *authx.Attributes) { a.FieldRequirements = f.Requirements() },
		func(a *authx.Attributes) { a.FieldRequirements = g.Requirements() },
		func(a *authx.Attributes) { a.LabelRequirements = lr },
		func(a *authx.Attributes) { a.LabelRequirements = mr },
	}
	keys := map[any]int{}
	for i, change := range changes {
		a := pods("get")
		change(a)
		if before, ok := keys[keyOf(a)]; ok {
			t.Errorf("changes %d and %d have one key", before, i)
		}
		keys[keyOf(a)] = i
		b := pods("get")
		change(b)
		if keyOf(a) != keyOf(b) {
			t.Errorf("change %d has two keys", i)
		}
	}
}

func TestConditions(t *testing.T) {
	selected := pods("list")
	f, _ := fields.ParseSelector("spec.nodeName=n1")
	l, _ := labels.Parse("a,b in (c,d)")
	selected.FieldRequirements = f.Requirements()
	selected.LabelRequirements, _ = l.Requirements()
	path := &authx.Attributes{User: one, Verb: "get", Path: "/x"}
	const broken = "request.resourceAttributes.verb == 'get'"
	for _, tc := range []struct {
		name  string
		texts []string
		asked *authx.Attributes
		want  string // "asked", "skipped", or an error
	}{
		{"all hold", []string{"request.user == 'one'", "'g' in request.groups", "request.uid == 'u1'", "request.extra['scopes'] == ['a']"}, pods("get"), "asked"},
		{"one does not", []string{"request.user == 'one'", "'h' in request.groups"}, pods("get"), "skipped"},
		{"one does not, one fails", []string{broken, "false"}, path, "skipped"},
		{"one fails", []string{"true", broken}, path, "cel evaluation error: expression '" + broken + "' resulted in error: no such key: resourceAttributes"},
		{"two fail", []string{broken, "request.extra['x'] == ['y']"}, path, "[cel evaluation error: expression '" + broken + "' resulted in error: no such key: resourceAttributes, cel evaluation error: expression 'request.extra['x'] == ['y']' resulted in error: no such key: x]"},
		{"empty attributes are there", []string{"request.resourceAttributes.name == '' && request.resourceAttributes.subresource == ''"}, pods("get"), "asked"},
		{"paths", []string{"has(request.nonResourceAttributes) && request.nonResourceAttributes.path == '/x' && !has(request.resourceAttributes)"}, path, "asked"},
		{"groups without any", []string{"request.groups.size() == 0 && request.extra.size() == 0"}, &authx.Attributes{User: &authx.Identity{Name: "x"}, Verb: "get", Path: "/"}, "asked"},
		{"nobody", []string{"request.user == ''"}, &authx.Attributes{Verb: "get", Path: "/"}, "asked"},
		{"no selectors", []string{"has(request.resourceAttributes.fieldSelector) || has(request.resourceAttributes.labelSelector)"}, pods("list"), "skipped"},
		{"field selector", []string{"request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'spec.nodeName' && r.operator == 'In' && r.values == ['n1'])"}, selected, "asked"},
		{"label selector", []string{"request.resourceAttributes.labelSelector.requirements.exists(r, r.operator == 'Exists' && r.values.size() == 0)",
			"request.resourceAttributes.?labelSelector.requirements.orValue([]).exists(r, r.key == 'b' && 'd' in r.values)"}, selected, "asked"},
		{"no raw selector", []string{"has(request.resourceAttributes.labelSelector.rawSelector)"}, selected, "skipped"},
	} {
		for policy, onError := range map[string]authx.Decision{"NoOpinion": authx.NoOpinion, "Deny": authx.Deny} {
			t.Run(tc.name+"/"+policy, func(t *testing.T) {
				h, observed := &hook{}, &seen{}
				h.say(`{"allowed":true}`)
				z := start(t, h, Config{OnError: onError, Conditions: conditions(t, tc.texts...), Observer: observed})
				d, reason, err := z.Authorize(t.Context(), tc.asked)
				var want string
				switch tc.want {
				case "asked":
					want = "matched hook false false; asked hook success"
					if d != authx.Allow || err != nil {
						t.Fatal(d, err)
					}
				case "skipped":
					want = "matched hook true false"
					if d != authx.NoOpinion || err != nil {
						t.Fatal(d, err)
					}
				default:
					want = "matched hook false true"
					if d != onError || err == nil || err.Error() != tc.want {
						t.Fatal(d, err)
					}
				}
				if got := observed.take(); got != want || reason != "" {
					t.Fatalf("saw %s, want %s; %q", got, want, reason)
				}
			})
		}
	}
}

func TestCompile(t *testing.T) {
	for text, want := range map[string]string{
		"1 +":          "compilation failed: ERROR: <input>:1:4: Syntax error",
		"'x'":          "must evaluate to bool but got string",
		"request.nope": "compilation failed: ERROR: <input>:1:8: undefined field 'nope'",
		"nope":         "undeclared reference to 'nope'",
		"request.resourceAttributes.fieldSelector.requirements[0].key == 'x'":        "",
		"ip('10.0.0.1').family() == 4 && quantity('1').isGreaterThan(quantity('0'))": "",
	} {
		_, err := Compile(text, true)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Compile("has(request.resourceAttributes.fieldSelector)", false); err == nil || !strings.Contains(err.Error(), "undefined field 'fieldSelector'") {
		t.Error("selectors without their gate:", err)
	}
}

func TestNew(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := func(url string) string {
		file := filepath.Join(dir, "kubeconfig")
		if err := os.WriteFile(file, []byte(remotetest.Text(url, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, tc := range []struct{ url, version, want string }{
		{"https://hook.example/x", "v1", ""},
		{"hook.example", "v1beta1", ""},
		{"http://hook.example", "v1", "must be an https URL without parameters"},
		{"https://hook.example/?a=b", "v1", "must be an https URL without parameters"},
		{"https://hook.example/x?a=b", "v1", "must be an https URL without parameters"},
		{"https://hook.example", "v3", `unsupported webhook authorizer version "v3", supported versions are "v1", "v1beta1"`},
	} {
		_, err := New(Config{Kubeconfig: kubeconfig(tc.url), Version: tc.version, Timeout: time.Second})
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s %s: %v", tc.url, tc.version, err)
		}
	}
}

func TestRulesFor(t *testing.T) {
	z := start(t, &hook{}, Config{})
	resources, paths, incomplete, err := z.RulesFor(t.Context(), one, "x")
	if resources != nil || paths != nil || !incomplete || !reflect.DeepEqual(err, errors.New("webhook authorizer does not support user rule resolution")) {
		t.Fatal(resources, paths, incomplete, err)
	}
}

func BenchmarkRemembered(b *testing.B) {
	z := &Authorizer{answers: cache.NewLRUExpireCache(remembered)}
	z.c.Conditions = nil
	a := pods("get")
	z.answers.Add(keyOf(a), &answer{decision: authx.Allow}, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if d, _, _ := z.Authorize(b.Context(), a); d != authx.Allow {
			b.Fatal(d)
		}
	}
}

func BenchmarkConditions(b *testing.B) {
	var list Conditions
	for _, text := range []string{"has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'default'", "!('system:nodes' in request.groups)"} {
		c, err := Compile(text, true)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, c)
	}
	a := pods("get")
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := list.hold(b.Context(), a); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("request.user == 'x'")
	f.Add("request.groups.exists(g, g.startsWith('a'))")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Compile(text, true)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = Conditions{c}.hold(ctx, pods("list"))
	})
}
