package authzconfig_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/authzconfig"
	"github.com/rowlock/rowlock/authx/remote/remotetest"
)

// fixed answers alike to everything.
type fixed struct {
	d      authx.Decision
	reason string
}

func (f fixed) Authorize(context.Context, *authx.Attributes) (authx.Decision, string, error) {
	return f.d, f.reason, nil
}

func (f fixed) RulesFor(context.Context, *authx.Identity, string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	return []authx.ResourceRule{{Verbs: []string{f.reason}}}, nil, false, nil
}

func chain(t *testing.T, text string) *authzconfig.Chain {
	t.Helper()
	cfg, err := (authzconfig.Rules{Selectors: true, Caches: true}).Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &authzconfig.Chain{
		Builtin: map[string]authzconfig.Builtin{authzconfig.TypeRBAC: fixed{reason: "rbac"}},
		Metrics: authzconfig.NewMetrics(), Log: slog.New(slog.DiscardHandler), Rules: authzconfig.Rules{Selectors: true, Caches: true},
	}
	if err := c.Start(cfg, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return c
}

// say starts a webhook that gives every request one answer, and returns its kubeconfig.
func say(t *testing.T, code int, status string) string {
	t.Helper()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"status":%s}`, status)
	}))
	t.Cleanup(srv.Close)
	return remotetest.Kubeconfig(t, srv, "/")
}

func webhook(name, kubeconfig string, settings ...string) string {
	return "{type: Webhook, name: " + name + ", webhook: " + hook(kubeconfig, settings...) + "}"
}

const rbac = "{type: RBAC, name: rbac}"

func TestChain(t *testing.T) {
	yes, no, denied := say(t, 200, `{"allowed":true,"reason":"yes"}`), say(t, 200, `{"reason":"no"}`), say(t, 200, `{"denied":true,"reason":"denied"}`)
	broken := say(t, 404, `{}`)
	const skip = "matchConditions: [{expression: \"request.user != 'bob'\"}]"
	for _, tc := range []struct {
		name    string
		list    []string
		d       authx.Decision
		reason  string
		err     string
		metrics string
	}{
		{"allowed", []string{webhook("a", no), webhook("b", yes), webhook("c", denied)}, authx.Allow, "yes", "", "decisions_total decision=allowed,name=b,type=Webhook"},
		{"denied", []string{webhook("a", denied), webhook("b", yes)}, authx.Deny, "denied", "", "decisions_total decision=denied,name=a,type=Webhook"},
		{"nobody", []string{webhook("a", no), rbac}, authx.NoOpinion, "no\nrbac", "", ""},
		{"failing open", []string{webhook("a", broken, "failurePolicy: NoOpinion"), webhook("b", yes)}, authx.Allow, "yes", "", "decisions_total decision=allowed,name=b,type=Webhook"},
		{"failing open, for nobody", []string{webhook("a", broken, "failurePolicy: NoOpinion"), webhook("b", broken, "failurePolicy: NoOpinion", "timeout: 2s")},
			authx.NoOpinion, "", "the server could not find the requested resource", ""},
		{"failing closed", []string{webhook("a", broken), webhook("b", yes)}, authx.Deny, "", "the server could not find the requested resource", "decisions_total decision=denied,name=a,type=Webhook"},
		{"skipped", []string{webhook("a", denied, "matchConditionSubjectAccessReviewVersion: v1", skip), rbac}, authx.NoOpinion, "rbac", "", ""},
		{"always", []string{"{type: AlwaysDeny, name: alwaysdeny}", "{type: AlwaysAllow, name: alwaysallow}"}, authx.Allow, "", "", "decisions_total decision=allowed,name=alwaysallow,type=AlwaysAllow"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := chain(t, head+"authorizers: ["+strings.Join(tc.list, ", ")+"]")
			d, reason, err := c.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "bob"}, Verb: "get", Path: "/x"})
			if d != tc.d || reason != tc.reason || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatal(d, reason, err)
			}
			want := map[string]float64{}
			if tc.metrics != "" {
				want[tc.metrics] = 1
			}
			if got := figures(t, c, "decisions_total"); !maps.Equal(got, want) {
				t.Errorf("decisions %v, want %v", got, want)
			}
			master := &authx.Attributes{User: &authx.Identity{Name: "eve", Groups: []string{authx.GroupMasters}}, Verb: "get", Path: "/x"}
			if d, _, err := c.Authorize(t.Context(), master); d != authx.Allow || err != nil {
				t.Fatal("masters:", d, err)
			}
		})
	}
}

// TestCaches: a webhook whose answers are not to be cached is asked each time; a server that does not know the switches
// refuses them as unknown fields.
func TestCaches(t *testing.T) {
	for _, tc := range []struct {
		status, setting string
		asked           int
	}{
		{`{"allowed":true}`, "cacheAuthorizedRequests: true", 1}, {`{"allowed":true}`, "cacheUnauthorizedRequests: false", 1},
		{`{"allowed":true}`, "cacheAuthorizedRequests: false", 2}, {`{"denied":true}`, "cacheAuthorizedRequests: false", 1},
		{`{"denied":true}`, "cacheUnauthorizedRequests: false", 2}, {`{"allowed":true}`, "cacheAuthorizedRequests: null", 1},
	} {
		asked := 0
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			fmt.Fprintf(w, `{"status":%s}`, tc.status)
		}))
		text := head + "authorizers: [" + webhook("a", remotetest.Kubeconfig(t, srv, "/"), tc.setting) + "]"
		c := chain(t, text)
		for range 2 {
			if _, _, err := c.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "bob"}, Verb: "get", Path: "/x"}); err != nil {
				t.Fatal(err)
			}
		}
		srv.Close()
		if asked != tc.asked {
			t.Errorf("%s, %s: asked %d times, want %d", tc.status, tc.setting, asked, tc.asked)
		}
		field, _, _ := strings.Cut(tc.setting, ":")
		if _, err := (authzconfig.Rules{}).Parse([]byte(text)); err == nil || !strings.HasSuffix(err.Error(), `strict decoding error: unknown field "authorizers[0].webhook.`+field+`"`) {
			t.Errorf("%s: %v", tc.setting, err)
		}
	}
}

// figures returns the metrics of a chain whose names have a prefix.
func figures(t *testing.T, c *authzconfig.Chain, prefix string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.Metrics.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "apiserver_authorization_")
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			n := m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				n = float64(h.GetSampleCount())
			}
			got[name+" "+strings.Join(labels, ",")] = n
		}
	}
	return got
}

func TestFigures(t *testing.T) {
	condition := func(text string) []string {
		return []string{"failurePolicy: NoOpinion", "matchConditionSubjectAccessReviewVersion: v1", fmt.Sprintf("matchConditions: [{expression: %q}]", text)}
	}
	c := chain(t, head+"authorizers: ["+strings.Join([]string{
		webhook("mute", say(t, 200, "{}")), webhook("broken", say(t, 404, "{}"), "failurePolicy: NoOpinion"),
		webhook("excluded", say(t, 200, "{}"), condition("false")...), webhook("failing", say(t, 200, "{}"), condition("request.extra['x'] == ['y']")...),
	}, ", ")+"]")
	_, _, err := c.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "bob"}, Verb: "get", Path: "/x"})
	if err == nil || !strings.HasPrefix(err.Error(), "[the server could not find the requested resource, cel evaluation error: ") {
		t.Fatal(err)
	}
	got := figures(t, c, "")
	for series, n := range map[string]float64{
		"webhook_evaluations_total name=mute,result=success":                1,
		"webhook_evaluations_total name=broken,result=error":                1,
		"webhook_duration_seconds name=mute,result=success":                 1,
		"webhook_duration_seconds name=broken,result=error":                 1,
		"webhook_evaluations_fail_open_total name=broken,result=error":      1,
		"match_condition_exclusions_total name=excluded,type=Webhook":       1,
		"match_condition_evaluation_errors_total name=failing,type=Webhook": 1,
		"match_condition_evaluation_seconds name=excluded,type=Webhook":     1,
		"match_condition_evaluation_seconds name=failing,type=Webhook":      1,
	} {
		if got[series] != n {
			t.Errorf("%s is %v, want %v", series, got[series], n)
		}
		delete(got, series)
	}
	if len(got) > 0 {
		t.Errorf("more than was done: %v", got)
	}
}

func TestRules(t *testing.T) {
	c := chain(t, head+"authorizers: ["+rbac+", "+webhook("a", kubeconfig(t))+"]")
	resources, _, incomplete, err := c.RulesFor(t.Context(), &authx.Identity{Name: "bob"}, "x")
	if len(resources) != 1 || !incomplete || err == nil || err.Error() != "webhook authorizer does not support user rule resolution" {
		t.Fatal(resources, incomplete, err)
	}
}

func TestStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(file, []byte(remotetest.Text("http://hook.example/", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for entry, want := range map[string]string{
		"{type: Node, name: node}": "authorizer type Node is not allowed if it was not enabled at initial server startup",
		webhook("a", file):         "must be an https URL without parameters",
	} {
		cfg, err := (authzconfig.Rules{Selectors: true}).Parse([]byte(head + "authorizers: [" + entry + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if err := (&authzconfig.Chain{}).Start(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (&authzconfig.Chain{}).Start(&authzconfig.Configuration{}, nil); err == nil {
		t.Error("a chain of nobody")
	}
}

// TestReload: a file that changes is followed; a bad one is counted, logged and not used.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	first := head + "authorizers: [" + rbac + "]"
	write(first)
	c := chain(t, first)
	type reload struct {
		ok  bool
		log string
	}
	reloads := make(chan reload, 10)
	log := &strings.Builder{} // of the loop, which logs reloads too
	c.Path, c.Every, c.Log = path, 5*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
	c.Reloaded = func(ok bool, _ time.Time) {
		reloads <- reload{ok, log.String()}
		log.Reset()
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	if r := <-reloads; !r.ok {
		t.Fatal("the start counts as a success")
	}
	yes := say(t, 200, `{"allowed":true,"reason":"yes"}`)
	for _, step := range []struct {
		text    string
		ok      bool
		allowed bool
		log     string
	}{
		{head + "authorizers: [" + rbac + ", " + webhook("a", yes) + "]", true, true, "is in use"},
		{head + "authorizers: [" + rbac, false, true, "couldn't get version/kind"},
		{head + "authorizers: [" + webhook("a", yes) + "]", false, true, "missing required types: [RBAC]"},
		{head + "authorizers: [" + rbac + ", {type: Node, name: node}]", false, true, "authorizer type Node is not allowed"},
		{"", false, true, "at least one authorization mode must be defined"},
		{head + "authorizers: [{type: AlwaysDeny, name: alwaysdeny}, " + rbac + "]", true, false, "is in use"},
		{head + "authorizers: [" + rbac + ", {type: AlwaysAllow, name: alwaysallow}]", true, true, "is in use"},
	} {
		write(step.text)
		select {
		case r := <-reloads:
			if r.ok != step.ok || !strings.Contains(r.log, step.log) {
				t.Fatalf("%q: %v, %s", step.text, r.ok, r.log)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%q is not seen", step.text)
		}
		d, _, err := c.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "bob"}, Verb: "get", Path: "/x"})
		if err != nil || (d == authx.Allow) != step.allowed {
			t.Fatalf("%q: %v %v", step.text, d, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := <-reloads; r.ok {
		t.Fatal("a file that is gone")
	}
	stop()
	<-done
}
