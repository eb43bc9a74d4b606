package podverbs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// site is a server with nodes that are reached in a way of the test's own.
type site struct {
	t   *testing.T
	url string
}

func newSite(t *testing.T, k podverbs.Kubelet, options ...func(*server.Config)) *site {
	t.Helper()
	options = append(options, servertest.Plain(nil), func(c *server.Config) { c.Special = podverbs.Handlers(k) })
	s := servertest.Start(t, options...)
	return &site{t: t, url: s.WithoutTLS()}
}

// send makes a request and decodes what comes into out, which may be nil.
func (s *site) send(method, path, body string, out any) (int, http.Header) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // redirects are answers
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	switch out := out.(type) {
	case nil:
	case *string:
		*out = string(data)
	default:
		if err := json.Unmarshal(data, out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, data)
		}
	}
	return resp.StatusCode, resp.Header
}

// must is send for requests that prepare a test.
func (s *site) must(method, path, body string) {
	s.t.Helper()
	text := ""
	if code, _ := s.send(method, path, body, &text); code >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
}

const pods = "/api/v1/namespaces/ns/pods"

// pod makes a pod with a service-account field already there, as admission leaves it.
func (s *site) pod(name, members string) {
	s.t.Helper()
	s.must("POST", pods, fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]%s}}`, name, members))
}

func (s *site) running(name string, ready bool) {
	s.t.Helper()
	state := "False"
	if ready {
		state = "True"
	}
	s.must("PATCH", pods+"/"+name+"/status", `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "`+state+`"}]}}`)
}

func (s *site) get(name string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{}
	if code, _ := s.send("GET", pods+"/"+name, "", pod); code != http.StatusOK {
		s.t.Fatalf("%s: %d", name, code)
	}
	return pod
}

func TestBinding(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	s.pod("free", "")
	s.pod("taken", `, "nodeName": "n"`)
	s.pod("gated", `, "schedulingGates": [{"name": "g"}]`)
	s.pod("other", "")
	for _, tt := range []struct {
		path, body string
		code       int
		message    string
	}{
		{"/free/binding", `{"metadata": {"name": "other"}, "target": {"name": "n"}}`, 400, "name in URL does not match name in Binding object"},
		{"/free/binding", `{"metadata": {"name": "free", "namespace": "x"}, "target": {"name": "n"}}`, 400, "the namespace of the provided object does not match the namespace sent on the request"},
		{"/free/binding", `{"metadata": {"name": "free"}, "target": {"kind": "Pod"}}`, 500, `[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]`},
		{"/free/binding?dryRun=All", `{"metadata": {"name": "free"}, "target": {"name": "n"}}`, 201, ""},
		{"/free/binding", `{"metadata": {"name": "free", "annotations": {"by": "me"}}, "target": {"kind": "Node", "name": "n1"}}`, 201, ""},
		{"/free/binding", `{"metadata": {"name": "free"}, "target": {"name": "n2"}}`, 409, `Operation cannot be fulfilled on pods/binding "free": pod free is already assigned to node "n1"`},
		{"/taken/binding", `{"metadata": {"name": "taken"}, "target": {"name": "n2"}}`, 409, `Operation cannot be fulfilled on pods/binding "taken": pod taken is already assigned to node "n"`},
		{"/gated/binding", `{"metadata": {"name": "gated"}, "target": {"name": "n2"}}`, 409, `Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty .spec.schedulingGates`},
		{"/none/binding", `{"metadata": {"name": "none"}, "target": {"name": "n2"}}`, 404, `pods "none" not found`},
		{"/../bindings", `{"metadata": {"name": "other"}, "target": {"name": "n2"}}`, 201, ""},
		{"/../bindings", `{"target": {"name": "n2"}}`, 400, "Name parameter required."},
	} {
		path := strings.Replace(pods+tt.path, "/pods/..", "", 1)
		var st metav1.Status
		code, _ := s.send("POST", path, tt.body, &st)
		if code != tt.code || st.Message != tt.message || code == 201 && (st.Status != "Success" || st.Code != 201) {
			t.Errorf("%s %s: got %d %+v", tt.path, tt.body, code, st)
		}
	}
	pod := s.get("free")
	if pod.Spec.NodeName != "n1" || pod.Annotations["by"] != "me" || pod.Status.Conditions[0].Type != corev1.PodScheduled {
		t.Errorf("the bound pod: %+v", pod)
	}
	for _, f := range pod.ManagedFields {
		if bytes.Contains(f.FieldsV1.Raw, []byte("nodeName")) {
			t.Error("the node name has an owner")
		}
	}
	stale := fmt.Sprintf(`{"metadata": {"name": "gated", "uid": %q}, "target": {"name": "n"}}`, pod.UID)
	var st metav1.Status
	if code, _ := s.send("POST", pods+"/gated/binding", stale, &st); code != 409 || !strings.Contains(st.Message, "Precondition failed: UID in precondition") {
		t.Errorf("binding of another pod of the name: %d %+v", code, st)
	}
}

const budgets = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"

func (s *site) budget(name, selector, status string) {
	s.t.Helper()
	s.must("POST", budgets, fmt.Sprintf(`{"metadata": {"name": %q}, "spec": {"minAvailable": 1, "selector": %s}}`, name, selector))
	if status != "" {
		s.must("PATCH", budgets+"/"+name+"/status", `{"status": `+status+`}`)
	}
}

func (s *site) evict(name, members string) (int, metav1.Status, http.Header) {
	s.t.Helper()
	var st metav1.Status
	code, header := s.send("POST", pods+"/"+name+"/eviction", fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}%s}`, name, members), &st)
	return code, st, header
}

func TestEvictionWithoutBudget(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	s.pod("a", `, "nodeName": "n"`)
	s.running("a", true)
	if code, st, _ := s.evict("a", `, "deleteOptions": {"gracePeriodSeconds": 7}`); code != 201 || st.Status != "Success" {
		t.Fatalf("got %d %+v", code, st)
	}
	pod := s.get("a")
	if pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != 7 {
		t.Errorf("grace period: %v", pod.DeletionGracePeriodSeconds)
	}
	last := pod.Status.Conditions[len(pod.Status.Conditions)-1]
	if last.Type != corev1.DisruptionTarget || last.Reason != "EvictionByEvictionAPI" || last.Status != corev1.ConditionTrue {
		t.Errorf("condition: %+v", last)
	}
	s.pod("b", "")
	if code, st, _ := s.evict("b", `, "deleteOptions": {"preconditions": {"resourceVersion": "1"}}`); code != 409 {
		t.Errorf("an older version: %d %+v", code, st)
	}
	for _, options := range []string{`{"dryRun": ["Some"]}`, `{"propagationPolicy": "Sideways"}`} {
		if code, st, _ := s.evict("b", `, "deleteOptions": `+options); code != 422 || !strings.HasPrefix(st.Message, `DeleteOptions.meta.k8s.io "" is invalid: `) {
			t.Errorf("%s: %d %+v", options, code, st)
		}
	}
	code, _ := s.send("POST", pods+"/b/eviction", `{"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "b"}}`, nil)
	if code != 201 {
		t.Errorf("v1beta1: %d", code)
	}
	if code, _ := s.send("GET", pods+"/b", "", nil); code != 404 {
		t.Errorf("a pod that no node runs is still there: %d", code)
	}
}

func TestEvictionWithinBudget(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	for _, name := range []string{"a", "b"} {
		s.pod(name, `, "nodeName": "n"`)
		s.running(name, true)
	}
	s.budget("db", `{"matchLabels": {"app": "db"}}`, "")
	code, st, header := s.evict("a", "")
	if code != 429 || header.Get("Retry-After") != "10" || st.Details.Causes[0].Message != "The disruption budget db is still being processed by the server." {
		t.Errorf("not yet counted: %d %+v", code, st)
	}
	s.must("PATCH", budgets+"/db/status", `{"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}`)
	if code, st, _ := s.evict("a", `, "deleteOptions": {"dryRun": ["All"]}`); code != 201 {
		t.Errorf("dry run: %d %+v", code, st)
	}
	if code, st, _ := s.evict("a", ""); code != 201 {
		t.Errorf("allowed: %d %+v", code, st)
	}
	code, st, header = s.evict("b", "")
	if code != 429 || header.Get("Retry-After") != "" || st.Details.Causes[0].Message != "The disruption budget db needs 1 healthy pods and has 2 currently" {
		t.Errorf("used up: %d %+v", code, st)
	}
	var pdb policyv1.PodDisruptionBudget
	s.send("GET", budgets+"/db", "", &pdb)
	if _, ok := pdb.Status.DisruptedPods["a"]; !ok || pdb.Status.DisruptionsAllowed != 0 || len(pdb.Status.Conditions) != 1 || pdb.Status.Conditions[0].Reason != "InsufficientPods" {
		t.Errorf("budget: %+v", pdb.Status)
	}
	if !slices.ContainsFunc(pdb.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "kube-apiserver" && f.Subresource == "status" && bytes.Contains(f.FieldsV1.Raw, []byte("f:disruptedPods"))
	}) {
		t.Errorf("owners: %+v", pdb.ManagedFields)
	}
	s.budget("second", `{"matchExpressions": [{"key": "app", "operator": "Exists"}]}`, "")
	if code, st, _ := s.evict("b", ""); code != 500 || !strings.HasPrefix(st.Message, "This pod has more than one PodDisruptionBudget") {
		t.Errorf("two budgets: %d %+v", code, st)
	}
}

// TestEvictionBehind: a server respects a budget that another server has stored, even before it has received it.
func TestEvictionBehind(t *testing.T) {
	memory := storetest.NewShared()
	first := newSite(t, podverbs.Kubelet{}, servertest.On(memory.Open(), sqlstore.Config{}), servertest.Idle)
	second := newSite(t, podverbs.Kubelet{}, servertest.On(storetest.WithoutHints{Driver: memory.Open()}, sqlstore.Config{}), servertest.Idle)
	for _, name := range []string{"a", "b"} {
		first.pod(name, `, "nodeName": "n"`)
	}
	first.running("a", true)
	second.get("a") // and waits for all writes so far
	first.budget("db", `{"matchLabels": {"app": "db"}}`, `{"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}`)
	for _, options := range []string{"", `, "deleteOptions": {"dryRun": ["All"]}`} {
		if code, st, _ := second.evict("a", options); code != 429 {
			t.Errorf("a pod that the budget protects%s: %d %+v", options, code, st)
		}
	}
	first.running("b", true)
	if code, st, _ := second.evict("b", `, "deleteOptions": {"dryRun": ["All"]}`); code != 429 {
		t.Errorf("a dry run for a pod that runs now: %d %+v", code, st)
	}
	first.must("PATCH", pods+"/b", `{"metadata": {"labels": {"app": "other"}}}`)
	if code, st, _ := second.evict("b", ""); code != 201 {
		t.Errorf("a pod that the budget does not protect any more: %d %+v", code, st)
	}
}

// TestLogsBehind: a server does not answer that a pod without a node has no logs if another server has assigned the pod.
func TestLogsBehind(t *testing.T) {
	memory := storetest.NewShared()
	first := newSite(t, podverbs.Kubelet{}, servertest.On(memory.Open(), sqlstore.Config{}), servertest.Idle)
	second := newSite(t, podverbs.Kubelet{}, servertest.On(storetest.WithoutHints{Driver: memory.Open()}, sqlstore.Config{}), servertest.Idle)
	first.pod("a", "")
	second.get("a") // and waits for all writes so far
	logs := func() (code int) {
		var text string
		code, _ = second.send("GET", pods+"/a/log", "", &text)
		return code
	}
	if code := logs(); code != http.StatusNoContent {
		t.Errorf("a pod without a node: %d", code)
	}
	first.must("POST", pods+"/a/binding", `{"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}`)
	if code := logs(); code != http.StatusNotFound {
		t.Errorf("a pod on a node that is missing: %d", code)
	}
}

// An empty selector is one of all pods; none is one of no pod.
func TestEvictionSelectors(t *testing.T) {
	for selector, protects := range map[string]bool{
		`{}`: true, `{"matchLabels": {}}`: true, `{"matchLabels": {}, "matchExpressions": []}`: true, `{"matchLabels": {"app": "db"}}`: true, `{"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}`: true,
		`null`: false, `{"matchLabels": {"app": "web"}}`: false, `{"matchExpressions": [{"key": "x", "operator": "Exists"}]}`: false,
	} {
		s := newSite(t, podverbs.Kubelet{})
		s.pod("a", `, "nodeName": "n"`)
		s.running("a", true)
		s.budget("db", selector, `{"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}`)
		want := 201
		if protects {
			want = 429
		}
		if code, st, _ := s.evict("a", ""); code != want {
			t.Errorf("selector %s: %d %s, want %d", selector, code, st.Message, want)
		}
	}
}

func TestEvictionOfUnreadyPods(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	s.pod("a", `, "nodeName": "n"`)
	s.running("a", false)
	s.budget("db", `{"matchLabels": {"app": "db"}}`, `{"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1}`)
	if code, _, _ := s.evict("a", ""); code != 429 {
		t.Errorf("too few are healthy: %d", code)
	}
	s.must("PATCH", budgets+"/db", `{"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}`)
	if code, st, _ := s.evict("a", ""); code != 201 {
		t.Errorf("always allowed: %d %+v", code, st)
	}
	s.must("PATCH", budgets+"/db", `{"spec": {"unhealthyPodEvictionPolicy": null}}`)
	s.must("PATCH", budgets+"/db/status", `{"status": {"observedGeneration": 3, "currentHealthy": 1}}`)
	s.pod("b", `, "nodeName": "n"`)
	s.running("b", false)
	if code, st, _ := s.evict("b", ""); code != 201 {
		t.Errorf("enough are healthy: %d %+v", code, st)
	}
}

// However many clients evict at once, a budget is never overdrawn.
func TestEvictionsAtOnce(t *testing.T) {
	const all, allowed = 12, 5
	s := newSite(t, podverbs.Kubelet{})
	for i := range all {
		name := fmt.Sprintf("p%d", i)
		s.pod(name, `, "nodeName": "n"`)
		s.running(name, true)
	}
	s.budget("db", `{"matchLabels": {"app": "db"}}`, fmt.Sprintf(`{"observedGeneration": 1, "disruptionsAllowed": %d, "currentHealthy": %d, "desiredHealthy": 1, "expectedPods": %d}`, allowed, all, all))
	codes := make([]int, all)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { codes[i], _, _ = s.evict(fmt.Sprintf("p%d", i), "") })
	}
	wg.Wait()
	counts := map[int]int{}
	for _, c := range codes {
		counts[c]++
	}
	if counts[201] != allowed || counts[429] != all-allowed {
		t.Errorf("got %v", counts)
	}
}

// agent is a node agent, and a node whose agent it is.
func agent(t *testing.T, s *site, h http.HandlerFunc) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.must("POST", "/api/v1/nodes", fmt.Sprintf(`{"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": %q}], "daemonEndpoints": {"kubeletEndpoint": {"Port": %s}}}}`, u.Hostname(), u.Port()))
}

// TestLogStreams: where the gate is on, one stream alone can be asked for, and agents hear which.
func TestLogStreams(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{Streams: true})
	agent(t, s, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.RawQuery) })
	s.pod("one", `, "nodeName": "n"`)
	for query, want := range map[string]string{
		"":                           "stream=All",
		"?stream=Stderr":             "stream=Stderr",
		"?stream=All&tailLines=2":    "stream=All&tailLines=2",
		"?stream=Stdin":              `stream: Unsupported value: \"Stdin\": supported values: \"Stdout\", \"Stderr\", \"All\"`,
		"?stream=Stdout&tailLines=2": "`tailLines` and specific `stream` are mutually exclusive for now",
	} {
		text := ""
		if s.send("GET", pods+"/one/log"+query, "", &text); !strings.Contains(text, want) {
			t.Errorf("%s: got %s", query, text)
		}
	}
}

func TestLog(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	agent(t, s, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/bad") {
			http.Error(w, "no such log", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s?%s", r.URL.Path, r.URL.RawQuery)
	})
	s.pod("one", `, "nodeName": "n", "initContainers": [{"name": "bad", "image": "i"}]`)
	s.pod("lost", `, "nodeName": "nowhere"`)
	s.pod("new", "")
	for _, tt := range []struct {
		path string
		code int
		want string // part of the answer
	}{
		{"one/log?tailLines=5&follow=true&sinceTime=2024-01-01T00:00:00Z&timestamps", 200, "/containerLogs/ns/one/c?follow=true&sinceTime=2024-01-01T00%3A00%3A00Z&tailLines=5&timestamps=true"},
		{"one/log?container=bad", 500, "no such log"},
		{"one/log?container=x", 400, "container x is not valid for pod one"},
		{"one/log?tailLines=x", 400, `strconv.ParseInt: parsing \"x\": invalid syntax`},
		{"one/log?stream=Stdout", 422, "stream: Forbidden: may not be specified"},
		{"one/log?limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"},
		{"lost/log", 404, `pods \"nowhere\" not found`},
		{"new/log", 204, ""},
		{"none/log", 404, `pods \"none\" not found`},
	} {
		text := ""
		code, header := s.send("GET", pods+"/"+tt.path, "", &text)
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s: got %d %s", tt.path, code, text)
		}
		if code == 200 && header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s: content type %q", tt.path, header.Get("Content-Type"))
		}
	}
	// The answer is text, but the client must accept a form of errors.
	for accept, want := range map[string]int{
		"": 204, "*/*": 204, "application/json, */*": 204, "text/plain, application/json;q=0.1": 204, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1": 204,
		"text/plain": 406, "text/html": 406, "application/json;as=Table;g=meta.k8s.io;v=v1": 406,
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+pods+"/new/log", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("log for %q: %d, want %d", accept, resp.StatusCode, want)
		}
	}
}

func TestExec(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	seen := make(chan *http.Request, 1)
	agent(t, s, func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(conn, "echo %s", line)
	})
	s.pod("one", `, "nodeName": "n"`)
	var st metav1.Status
	for _, query := range []string{"dryRun=All", "dryRun="} {
		if code, _ := s.send("POST", pods+"/one/exec?command=ls&"+query, "", &st); code != 400 || st.Message != "dryRun is not supported" {
			t.Errorf("%s: %d %q", query, code, st.Message)
		}
	}
	if code, _ := s.send("POST", pods+"/one/exec?command=ls", "", &st); code != 400 || st.Message != "Upgrade request required" {
		t.Errorf("an ordinary request: %d %+v", code, st)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/one/exec?command=sh&command=-c&stdin=true&tty=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nAuthorization: Bearer secret\r\n"+
		"Sec-WebSocket-Protocol: v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0\r\n\r\n", pods)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "SPDY/3.1" {
		t.Fatalf("got %v", resp)
	}
	fmt.Fprintf(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
	r := <-seen
	if r.URL.Path != "/exec/ns/one/c" || r.URL.RawQuery != "command=sh&command=-c&input=1&tty=1" {
		t.Errorf("the agent was asked %s", r.URL)
	}
	if r.Header.Get("Authorization") != "" || strings.Contains(r.Header.Get("Sec-Websocket-Protocol"), "bearer") {
		t.Errorf("the agent was shown credentials: %v", r.Header)
	}
}

func TestProxy(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer web.Close()
	var dialled atomic.Value
	s := newSite(t, podverbs.Kubelet{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Store(address)
		var d net.Dialer
		return d.DialContext(ctx, network, web.Listener.Addr().String())
	}})
	s.pod("one", `, "nodeName": "n"`)
	text := ""
	if code, _ := s.send("GET", pods+"/one/proxy/", "", &text); code != 400 || !strings.Contains(text, "address not allowed") {
		t.Errorf("a pod without an address: %d %s", code, text)
	}
	for _, ip := range []string{"127.0.0.1", "169.254.169.254"} {
		s.must("PATCH", pods+"/one/status", `{"status": {"podIP": "`+ip+`"}}`)
		if code, _ := s.send("GET", pods+"/one/proxy/", "", &text); code != 400 {
			t.Errorf("%s: %d", ip, code)
		}
	}
	s.must("PATCH", pods+"/one/status", `{"status": {"podIP": "10.1.2.3"}}`)
	if code, header := s.send("GET", pods+"/one/proxy?a=b", "", nil); code != 301 || header.Get("Location") != pods+"/one/proxy/?a=b" {
		t.Errorf("the root: %d %v", code, header)
	}
	for _, tt := range []struct{ method, path, want, dialled string }{
		{"GET", "one:8080/proxy/", "GET / ", "10.1.2.3:8080"},
		{"GET", "http:one:81/proxy/a/b/?q=1", "GET /a/b/?q=1 ", "10.1.2.3:81"},
		{"PUT", "one:82/proxy/x", "PUT /x ", "10.1.2.3:82"},
	} {
		code, _ := s.send(tt.method, pods+"/"+tt.path, "", &text)
		if code != 200 || text != tt.want || dialled.Load() != tt.dialled {
			t.Errorf("%s %s: got %d %q at %s", tt.method, tt.path, code, text, dialled.Load())
		}
	}
}
