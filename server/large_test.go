package server_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

const largeStatus = 4 << 20 // bytes, at a bound of twice as many

func upTo8MiB(c *server.Config) { c.MaxObjectBytes = 2 * largeStatus }

// largeDefinition defines a kind whose status may have any content, and creates the object a of it.
func largeDefinition(t *testing.T, s *servertest.Server, plural string) (path string) {
	t.Helper()
	s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.l.example.com"},
		"spec":{"group":"l.example.com","names":{"kind":"K%[1]s","plural":%[1]q},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string","default":"d"}}},
		"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, plural))
	path = "/apis/l.example.com/v1/namespaces/default/" + plural
	servertest.Eventually(t, func() bool {
		return s.Do("POST", path, fmt.Sprintf(`{"apiVersion":"l.example.com/v1","kind":"K%s","metadata":{"name":"a"},"spec":{"n":1}}`, plural)).Code == http.StatusCreated
	})
	return path
}

const merge = "application/merge-patch+json"

// largeObject gives the object a of a kind a large status.
func largeObject(t *testing.T, s *servertest.Server, path string) {
	t.Helper()
	nodes := &strings.Builder{}
	for i := 0; nodes.Len() < largeStatus; i++ {
		fmt.Fprintf(nodes, `,"n%06d":{"phase":"Succeeded","text":"%s"}`, i, strings.Repeat("x", 400))
	}
	s.Must("PATCH", path+"/a/status", `{"status":{"phase":"Running","nodes":{`+nodes.String()[1:]+`}}}`, "Content-Type", merge)
}

// TestLargeObjectsAndWebhooks: webhooks see all of a large object if a patch is small, too, and may answer with a patch of all of
// it. The server refuses a longer answer.
func TestLargeObjectsAndWebhooks(t *testing.T) {
	s := servertest.Start(t, upTo8MiB)
	path := largeDefinition(t, s, "larges")
	largeObject(t, s, path)
	var seen, answer atomic.Int64
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Request struct {
				UID               string
				Object, OldObject struct {
					Status struct{ Nodes map[string]any }
				}
			}
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &q)
		}
		if err != nil {
			t.Error(err)
		}
		seen.Store(int64(min(len(q.Request.Object.Status.Nodes), len(q.Request.OldObject.Status.Nodes))))
		if answer.Load() > 16<<20 {
			_, _ = io.WriteString(w, strings.Repeat(" ", int(answer.Load())))
			return
		}
		patch := ""
		if r.URL.Path == "/mutate" {
			text := fmt.Sprintf(`[{"op":"add","path":"/status/%s","value":%q}]`, r.URL.Path[1:], strings.Repeat("y", int(answer.Load())))
			patch = `,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`
		}
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true%s}}`, q.Request.UID, patch)
	}))
	defer hook.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
	n := 0
	patch := func() (int, string) {
		n++
		r := s.Do("PATCH", path+"/a/status", fmt.Sprintf(`{"status":{"phase":"p%d"}}`, n), "Content-Type", merge)
		return r.Code, r.Body.String()
	}
	for _, kind := range []string{"Validating", "Mutating"} {
		seen.Store(0)
		answer.Store(2 << 20)
		s.Must("POST", "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(kind)+"webhookconfigurations", fmt.Sprintf(`{"metadata":{"name":"h"},"webhooks":[{
			"name":"h.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"url":%q,"caBundle":%q},"timeoutSeconds":30,
			"rules":[{"apiGroups":["l.example.com"],"apiVersions":["*"],"operations":["UPDATE"],"resources":["*/*"]}]}]}`, hook.URL+map[string]string{"Validating": "/look", "Mutating": "/mutate"}[kind], ca))
		servertest.Eventually(t, func() bool {
			if code, body := patch(); code != http.StatusOK {
				t.Fatalf("%d %.300s", code, body)
			}
			return seen.Load() > 0
		})
		if seen.Load() < 5000 {
			t.Errorf("the webhook sees %d nodes", seen.Load())
		}
	}
	if got := s.Must("GET", path+"/a", ""); len(got) < largeStatus+2<<20 || !strings.Contains(string(got), fmt.Sprintf(`"phase":"p%d"`, n)) {
		t.Errorf("the object has %d bytes", len(got))
	}
	answer.Store(4 << 20) // makes the object too large
	if code, body := patch(); code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %.300s", code, body)
	}
	answer.Store(24 << 20)
	if code, body := patch(); code != http.StatusInternalServerError {
		t.Errorf("%d %.300s", code, body)
	}
}

// TestPoliciesOfLargeObjects: a policy sees all of a large object, also if a patch is small.
func TestPoliciesOfLargeObjects(t *testing.T) {
	s := servertest.Start(t, upTo8MiB)
	path := largeDefinition(t, s, "larges")
	largeObject(t, s, path)
	const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	s.Must("POST", policies+"ies", `{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["l.example.com"],"apiVersions":["*"],"operations":["UPDATE"],"resources":["*/*"]}]},
		"validations":[{"expression":"object.status.nodes.n000001.phase != 'Odd'"}]}}`)
	s.Must("POST", policies+"ybindings", `{"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}}`)
	servertest.Eventually(t, func() bool {
		return s.Do("PATCH", path+"/a/status?dryRun=All", `{"status":{"nodes":{"n000001":{"phase":"Odd"}}}}`, "Content-Type", merge).Code == http.StatusUnprocessableEntity
	})
	s.Must("PATCH", path+"/a/status", `{"status":{"nodes":{"n000001":{"phase":"Even"}}}}`, "Content-Type", merge)
}

// TestLargeObjectsSealed: large objects are encrypted, read again and decrypted.
func TestLargeObjectsSealed(t *testing.T) {
	memory, keys := storetest.NewShared(), storetest.NewTestSealer("one")
	start := func() *servertest.Server {
		return servertest.Start(t, servertest.Idle, upTo8MiB, servertest.On(memory.Open(), sqlstore.Config{Sealer: keys, MaxValue: 3 * largeStatus}))
	}
	text := strings.Repeat("x", largeStatus)
	const path = "/apis/apps/v1/namespaces/default/controllerrevisions"
	s := start()
	s.Must("POST", path, `{"metadata":{"name":"a"},"revision":1,"data":{"t":"`+text+`"}}`)
	s.Must("PATCH", path+"/a", `{"metadata":{"labels":{"l":"m"}}}`, "Content-Type", merge)
	for _, s := range []*servertest.Server{s, start()} {
		if got := string(s.Must("GET", path+"/a", "")); !strings.Contains(got, `"l":"m"`) || !strings.Contains(got, text) {
			t.Errorf("%.300s", got)
		}
	}
}

// TestLargeObjectsElsewhere: large bodies and answers pass through to an aggregated server whole.
func TestLargeObjectsElsewhere(t *testing.T) {
	text := strings.Repeat("x", largeStatus)
	b := startBehind(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"Thing","body":%d,"text":%q}`, len(body), text)
	})
	s := servertest.Start(t, withPeople, upTo8MiB)
	b.register(t, s)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/apis/g.example/v1/namespaces/a/things", strings.NewReader(`{"text":"`+text+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer ann"}, "Content-Type": {"application/json"}}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(got) != fmt.Sprintf(`{"kind":"Thing","body":%d,"text":%q}`, len(text)+len(`{"text":""}`), text) {
		t.Errorf("%v, %d: %d bytes, %.200s", err, resp.StatusCode, len(got), got)
	}
}
