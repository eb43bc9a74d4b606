package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/recorded"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestAuditedLarge: answers that are compressed, whole or in pieces, are in their events as any others
// are; one that is larger than an event may hold is left out, which the event notes.
func TestAuditedLarge(t *testing.T) {
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: None, verbs: [create]}\n- {level: RequestResponse, omitStages: [RequestReceived], resources: [{resources: [configmaps]}]}\n- {level: Metadata}"))
	if err != nil {
		t.Fatal(err)
	}
	events := &servertest.AuditEvents{}
	var auditor *audit.Auditor
	s := servertest.Start(t, events.Record(policy), func(c *server.Config) { auditor = c.Audit })
	const maps = "/api/v1/namespaces/default/configmaps"
	text := strings.Repeat("a word and ", 90_000/11)
	for i := range 50 {
		body := fmt.Sprintf(`{"metadata":{"name":"m%d","labels":{"few":"%t"}},"data":{"a":%q,"b":%q}}`, i, i < 10, text, text)
		if code, answer := auditedCall(t, s, "", http.MethodPost, maps, "application/json", body); code != http.StatusCreated {
			t.Fatalf("%d %s", code, answer)
		}
	}
	for i, tc := range []struct {
		path, accept string
		items        int // -1: it is left out
	}{
		{maps + "/m0", "application/json", 0},
		{maps + "/m0", "application/vnd.kubernetes.protobuf", 0},
		{maps + "?labelSelector=few%3Dtrue", "application/json", 10},
		{maps + "?labelSelector=few%3Dtrue", "application/vnd.kubernetes.protobuf", 10},
		{maps + "?labelSelector=few%3Dtrue&pretty=true", "application/json", 10},
		{maps, "application/json", -1},
		{maps, "application/vnd.kubernetes.protobuf", -1},
		{maps, "application/json;as=Table;g=meta.k8s.io;v=v1", 50},
	} {
		id := fmt.Sprint("large-", i)
		code, answer := auditedCall(t, s, id, http.MethodGet, tc.path, tc.accept, "")
		if code != http.StatusOK {
			t.Fatalf("%s: %d %.300s", tc.path, code, answer)
		}
		var event struct {
			ResponseObject *struct {
				Kind  string
				Data  map[string]string
				Items []struct{ Data map[string]string }
				Rows  []json.RawMessage
			}
			Annotations map[string]string
		}
		if err := json.Unmarshal(eventOf(t, events, id), &event); err != nil {
			t.Fatal(err)
		}
		o := event.ResponseObject
		switch marked := event.Annotations["audit.k8s.io/truncated"] == "true"; {
		case marked != (tc.items < 0), (o == nil) != (tc.items < 0):
			t.Errorf("%s as %s: truncated %t, object %t", tc.path, tc.accept, marked, o != nil)
		case o == nil:
		case len(o.Items)+len(o.Rows) != tc.items, tc.items == 0 && o.Data["a"] != text, len(o.Items) > 0 && o.Items[0].Data["b"] != text:
			t.Errorf("%s as %s: %s with %d items and %d rows", tc.path, tc.accept, o.Kind, len(o.Items), len(o.Rows))
		}
	}
	// All room that was taken for answers has been given back.
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if auditor.Reserve(audit.MaxHeld) {
			auditor.Release(audit.MaxHeld)
			break
		}
		if time.Now().After(end) {
			t.Fatal("room for answers is not given back")
		}
	}
	// Without room an answer is not kept, and its client has it nevertheless.
	auditor.Reserve(audit.MaxHeld)
	if code, answer := auditedCall(t, s, "full", http.MethodGet, maps+"/m0", "application/json", ""); code != http.StatusOK || len(answer) == 0 {
		t.Errorf("%d, %d bytes", code, len(answer))
	}
	if e := eventOf(t, events, "full"); strings.Contains(string(e), "responseObject") || !strings.Contains(string(e), `"audit.k8s.io/truncated":"true"`) {
		t.Errorf("%.300s", e)
	}
}

// TestAuditedElsewhere: answers of an aggregated server are in no event of this one; answers of this one
// in its place are.
func TestAuditedElsewhere(t *testing.T) {
	b := startBehind(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Thing","secret":"theirs"}`)
	})
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: RequestResponse, omitStages: [RequestReceived]}"))
	if err != nil {
		t.Fatal(err)
	}
	events := &servertest.AuditEvents{}
	s := servertest.Start(t, withPeople, events.Record(policy))
	b.register(t, s)
	for id, path := range map[string]string{"theirs": "/apis/g.example/v1/namespaces/a/things/x", "ours": "/apis/g.example/v1/namespaces/a/things/x?timeout=soon"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer ann"}, "Audit-Id": {id}}
		resp, err := s.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if (resp.StatusCode == http.StatusOK) != (id == "theirs") {
			t.Errorf("%s: %s", id, resp.Status)
		}
	}
	if e := eventOf(t, events, "theirs"); strings.Contains(string(e), "responseObject") {
		t.Errorf("%s", e)
	}
	if e := recorded.EventsOf(events.All(), "ours"); len(e) != 1 || !strings.Contains(string(e[0]), `"responseObject":{"kind":"Status"`) {
		t.Errorf("%s", e)
	}
}

// auditedCall makes a request under a name, by a client that takes compressed answers.
func auditedCall(t *testing.T, s *servertest.Server, id, method, path, accept, body string) (code int, answer []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + servertest.Token}, "Accept": {accept}, "Accept-Encoding": {"gzip"}, "Content-Type": {"application/json"}}
	if id != "" {
		r.Header.Set("Audit-Id", id)
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// eventOf waits for the last event of a request.
func eventOf(t *testing.T, events *servertest.AuditEvents, id string) []byte {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, e := range recorded.EventsOf(events.All(), id) {
			if strings.Contains(string(e), `"stage":"ResponseComplete"`) {
				return e
			}
		}
	}
	t.Fatalf("no event of %s", id)
	return nil
}
