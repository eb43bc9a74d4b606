package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// gate is an admission webhook that answers once the test opens it.
type gate struct {
	*httptest.Server
	asked, opens chan struct{}
}

// startGate starts one that is asked about each ConfigMap that is created in a namespace.
func startGate(t *testing.T, s *harness.Server, namespace string) *gate {
	t.Helper()
	g := &gate{asked: make(chan struct{}, 10), opens: make(chan struct{})}
	authority := harness.NewAuthority(t, "gate")
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Request struct{ UID string } }
		_ = json.NewDecoder(r.Body).Decode(&q)
		g.asked <- struct{}{}
		<-g.opens
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, q.Request.UID)
	}))
	g.TLS = &tls.Config{Certificates: []tls.Certificate{*authority.ServerFor(t, "127.0.0.1")}}
	g.StartTLS()
	t.Cleanup(g.Close)
	config := map[string]any{"metadata": map[string]any{"name": "gate"}, "webhooks": []any{map[string]any{
		"name": "gate.example.com", "admissionReviewVersions": []string{"v1"}, "sideEffects": "None", "timeoutSeconds": 30,
		"clientConfig": map[string]any{"url": g.URL, "caBundle": authority.PEM},
		// The server makes ConfigMaps of its own in kube-system, some time after it is ready.
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
		"rules":             []any{map[string]any{"operations": []string{"CREATE"}, "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"}}},
	}}}
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if a := asAdmin(t, s, "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", string(body)); a.code != 201 {
		t.Fatal(a)
	}
	return g
}

// fairAnswer has the parts of an answer that a test checks.
type fairAnswer struct {
	code          int
	schema, level string
	retry, body   string
}

// askAs sends a request of a user.
func askAs(t *testing.T, s *harness.Server, client *http.Client, user, method, path, body string) (a fairAnswer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return a
	}
	r.Header = http.Header{"Authorization": {"Bearer " + harness.AdminToken}, "Content-Type": {"application/json"}}
	if user != "" {
		r.Header["Impersonate-User"], r.Header["Impersonate-Group"] = []string{user}, []string{"system:authenticated"}
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return a
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return fairAnswer{resp.StatusCode, resp.Header.Get("X-Kubernetes-PF-FlowSchema-UID"), resp.Header.Get("X-Kubernetes-PF-PriorityLevel-UID"), resp.Header.Get("Retry-After"), string(text)}
}

const (
	tightLevel = `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration","metadata":{"name":"tight"},
"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":%s}}}`
	tightSchema = `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","metadata":{"name":"noxu"},
"spec":{"priorityLevelConfiguration":{"name":"tight"},"matchingPrecedence":1000,"distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":"noxu"}}],
"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}}`
)

// TestFairness: objects that kubectl writes decide which requests run, which wait, and
// which are refused.
func TestFairness(t *testing.T) {
	t.Parallel()
	// A request waits in a queue for a quarter of the time that it has.
	s := harness.StartT(t, harness.Options{Args: []string{"--max-requests-inflight=8", "--max-mutating-requests-inflight=8", "--request-timeout=5m", noRootCA}})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	allow(t, s, "noxu", "foo")
	g := startGate(t, s, "default")
	kubectl := s.Kubectl(t)
	apply := func(text string) {
		t.Helper()
		if out, err := kubectl.Try(text, "apply", "-f", "-"); err != nil {
			t.Fatal(out, err)
		}
	}
	apply(tightSchema)
	kubectl.Run("wait", "flowschema/noxu", "--for=jsonpath={.status.conditions[?(@.type==\"Dangling\")].status}=True", "--timeout=2m")
	if a := askAs(t, s, client, "noxu", "GET", "/version", ""); a.code != 200 || a.schema == "" {
		t.Errorf("a schema without its level: %+v", a)
	}
	apply(fmt.Sprintf(tightLevel, `{"type":"Reject"}`))
	kubectl.Run("wait", "flowschema/noxu", "--for=jsonpath={.status.conditions[?(@.type==\"Dangling\")].status}=False", "--timeout=2m")
	schema, level := kubectl.Run("get", "flowschema/noxu", "-o", "jsonpath={.metadata.uid}"), kubectl.Run("get", "prioritylevelconfiguration/tight", "-o", "jsonpath={.metadata.uid}")
	mine := func(what string, a fairAnswer, code int) {
		t.Helper()
		if a.code != code || a.schema != schema || a.level != level {
			t.Errorf("%s: %+v, want %d of %s and %s", what, a, code, schema, level)
		}
	}
	mine("alone", askAs(t, s, client, "noxu", "GET", "/version", ""), 200)
	metrics := func() string { return askAs(t, s, client, "", "GET", "/metrics", "").body }
	if m := metrics(); !strings.Contains(m, `apiserver_flowcontrol_nominal_limit_seats{priority_level="tight"} 1`) {
		t.Error("no seat of the level in the metrics")
	}

	done := make(chan fairAnswer, 10)
	go func() {
		done <- askAs(t, s, client, "noxu", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
	}()
	<-g.asked // it has the only seat
	full := askAs(t, s, client, "noxu", "GET", "/version", "")
	mine("one too many", full, 429)
	if full.retry != "1" || full.body != "Too many requests, please try again later.\n" {
		t.Errorf("one too many: %+v", full)
	}
	if a := askAs(t, s, client, "noxu", "GET", "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1", ""); a.code != 429 {
		t.Errorf("a watch that begins: %+v", a)
	}
	if a := askAs(t, s, client, "foo", "GET", "/version", ""); a.code != 200 || a.level == level {
		t.Errorf("another user: %+v", a)
	}
	if m := metrics(); !strings.Contains(m, `apiserver_flowcontrol_rejected_requests_total{flow_schema="noxu",priority_level="tight",reason="concurrency-limit"} 2`) {
		t.Error("refusals are not counted")
	}

	apply(fmt.Sprintf(tightLevel, `{"type":"Queue","queuing":{"queues":1,"handSize":1,"queueLengthLimit":1}}`))
	dump := func(name string) string {
		return askAs(t, s, client, "", "GET", "/debug/api_priority_and_fairness/"+name, "").body
	}
	go func() { done <- askAs(t, s, client, "noxu", "GET", "/version", "") }()
	eventually(t, "a request waits", func() bool { return strings.Contains(dump("dump_requests?includeRequestDetails=1"), "/version") })
	for _, want := range [][]string{
		{"dump_priority_levels", "tight,", "1,", "false,", "false,", "1,", "1,"},
		{"dump_queues", "tight,", "0,", "1,", "0,", "0,"}, // running requests came before there were queues
		{"dump_requests", "tight,", "noxu,", "0,", "0,", "noxu,"},
	} {
		found, lines := false, ""
		for line := range strings.Lines(dump(want[0])) {
			if line = strings.Join(strings.Fields(line), " "); strings.HasPrefix(line, "tight") {
				lines += line + "\n"
				found = found || strings.HasPrefix(line, strings.Join(want[1:], " "))
			}
		}
		if !found {
			t.Errorf("%s has no line %q:\n%s", want[0], want[1:], lines)
		}
	}
	mine("a full queue", askAs(t, s, client, "noxu", "GET", "/version", ""), 429)
	if m := metrics(); !strings.Contains(m, `reason="queue-full"} 1`) || !strings.Contains(m, `apiserver_flowcontrol_current_inqueue_requests{flow_schema="noxu",priority_level="tight"} 1`) {
		t.Error("the queue is not in the metrics")
	}
	close(g.opens)
	codes := map[int]int{}
	for range 2 {
		a := <-done
		codes[a.code]++
		mine("after all", a, a.code)
	}
	if codes[200] != 1 || codes[201] != 1 {
		t.Errorf("those with a seat and a place were answered %v", codes)
	}

	kubectl.Run("delete", "flowschema/noxu", "prioritylevelconfiguration/tight")
	if a := askAs(t, s, client, "noxu", "GET", "/version", ""); a.code != 200 || a.schema == schema || a.schema == "" {
		t.Errorf("without the objects: %+v", a)
	}
	if strings.Contains(dump("dump_priority_levels"), "tight") {
		t.Error("a level that is gone is there")
	}
}

// TestPlainLimits: without priority and fairness nothing is classified, and the limits are
// by number.
func TestPlainLimits(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=1", noRootCA}})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	allow(t, s, "noxu", "foo")
	g := startGate(t, s, "default")
	done := make(chan fairAnswer)
	go func() {
		done <- askAs(t, s, client, "noxu", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
	}()
	<-g.asked
	if a := askAs(t, s, client, "foo", "DELETE", "/api/v1/namespaces/default/configmaps/b", ""); a.code != 429 || a.schema != "" || a.retry != "1" {
		t.Errorf("one too many: %+v", a)
	}
	if a := askAs(t, s, client, "foo", "GET", "/api/v1/namespaces/default/configmaps", ""); a.code != 200 || a.schema+a.level != "" {
		t.Errorf("a read: %+v", a)
	}
	if a := askAs(t, s, client, "", "GET", "/debug/api_priority_and_fairness/dump_queues", ""); a.code != 404 {
		t.Errorf("a dump: %+v", a)
	}
	close(g.opens)
	if a := <-done; a.code != 201 {
		t.Errorf("the one with the place: %+v", a)
	}
}
