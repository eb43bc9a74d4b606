package recorded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/recorded"
)

// load writes a scenario to a file and reads it.
func load(t *testing.T, text string) *recorded.Scenario {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flow-x.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := recorded.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHeadersAndHeads: headers that count are compared, absent ones too, and of a text
// with a head its first lines alone.
func TestHeadersAndHeads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-UID", "7b0cf7a5-7a5b-4d5c-a1a5-0e5a6d3b2c1d")
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("Name,   At " + r.URL.Query().Get("at") + "\nrow 1\nrow 2\n"))
	}))
	defer server.Close()
	step := func(do, show, headers, body string, head int) map[string]any {
		return map[string]any{"do": do, "show": strings.Fields(show), "head": head, "want": map[string]any{"status": 200, "type": "text/plain", "headers": json.RawMessage(headers), "body": body}}
	}
	const path = "GET /x?at=${EXT_IP}"
	for name, c := range map[string]struct {
		step  map[string]any
		equal bool
	}{
		"all as it should be":   {step(path, "X-UID X-None", `{"X-UID":"<uid>","X-None":null}`, "Name, At <EXT_IP>\n", 1), true},
		"two lines":             {step(path, "", `{}`, "Name, At <EXT_IP>\nrow 1\n", 2), true},
		"more lines than there": {step(path, "", `{}`, "Name, At <EXT_IP>\nrow 1\nrow 2\n", 9), true},
		"another first line":    {step(path, "", `{}`, "Other\n", 1), false},
		"another header":        {step(path, "X-UID", `{"X-UID":"other"}`, "Name, At <EXT_IP>\n", 1), false},
		"a header too many":     {step(path, "X-UID", `{"X-UID":null}`, "Name, At <EXT_IP>\n", 1), false},
		"a header too few":      {step(path, "X-None", `{"X-None":"<uid>"}`, "Name, At <EXT_IP>\n", 1), false},
		"no head":               {step(path, "", `{}`, "Name, At <EXT_IP>\n", 0), false},
	} {
		text, err := json.Marshal(map[string]any{"bare": true, "vars": []string{"EXT_IP"}, "steps": []any{c.step}})
		if err != nil {
			t.Fatal(err)
		}
		srv := recorded.Server{URL: server.URL, Client: server.Client(), Vars: map[string]string{"EXT_IP": "192.0.2.7"}}
		got := recorded.Replay(context.Background(), srv, load(t, string(text)))
		if got[0].Equal() != c.equal {
			t.Errorf("%s: %q", name, got[0].Diff)
		}
		srv.Vars = nil
		if got := recorded.Replay(context.Background(), srv, load(t, string(text))); got[0].Equal() {
			t.Errorf("%s: equal without what the scenario wants to know", name)
		}
	}
}

// TestLateAnswers: a request whose answer differs after a wait is repeated if it changed nothing and the server is
// busy, and no other is.
func TestLateAnswers(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/x" {
			if r.URL.Path == "/busy" {
				time.Sleep(recorded.InTime)
			}
			return
		}
		if asked.Add(1) < 3 && r.Method != http.MethodPut {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = fmt.Fprintf(w, `{"n":%d}`, asked.Load())
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		do    string
		sleep float64
		busy  bool
		asked int32
	}{
		"a look":                 {"GET /x", 0.001, true, 3},
		"a look in time":         {"GET /x", 0.001, false, 1},
		"a look without a wait":  {"GET /x", 0, true, 1},
		"a refused write":        {"POST /x", 0.001, true, 3},
		"a refused one in time":  {"POST /x", 0.001, false, 1},
		"a write that is done":   {"PUT /x", 0.001, true, 1},
		"a write without a wait": {"POST /x", 0, true, 1},
	} {
		first := "GET /first"
		if c.busy {
			first = "GET /busy"
		}
		text, err := json.Marshal(map[string]any{"bare": true, "steps": []any{
			map[string]any{"do": first, "want": map[string]any{"status": 200}},
			map[string]any{"do": c.do, "sleep": c.sleep, "want": map[string]any{"status": 200, "type": "text/plain; charset=utf-8", "body": map[string]any{"n": 3}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		got := recorded.Replay(context.Background(), recorded.Server{URL: server.URL, Client: server.Client()}, load(t, string(text)))
		if n := asked.Load(); n != c.asked || got[1].Equal() != (c.asked == 3) {
			t.Errorf("%s: asked %d times, want %d: %q", name, n, c.asked, got[1].Diff)
		}
		if got[0].Again != 0 || got[1].Again != int(c.asked)-1 {
			t.Errorf("%s: sent %d times, and %d times again by the results", name, c.asked, got[1].Again)
		}
	}
}

// TestLate: only what differs after the time that controllers leave, on a slow machine, may be replayed without them.
func TestLate(t *testing.T) {
	equal := func(took time.Duration) recorded.Result { return recorded.Result{Took: took, Ended: took} }
	differs := func(took, ended time.Duration) recorded.Result {
		return recorded.Result{Took: took, Ended: ended, Diff: []string{"x"}}
	}
	for name, c := range map[string]struct {
		results []recorded.Result
		late    bool
	}{
		"equal":                   {[]recorded.Result{equal(time.Minute)}, false},
		"slow and late":           {[]recorded.Result{equal(recorded.InTime), differs(1, recorded.Settle+1)}, true},
		"slow and early":          {[]recorded.Result{differs(recorded.InTime+1, recorded.Settle)}, false},
		"late by the steps alone": {[]recorded.Result{equal(1), differs(1, time.Minute)}, false},
		"slow afterwards":         {[]recorded.Result{differs(1, 2*recorded.Settle), equal(time.Minute)}, false},
	} {
		if _, late := recorded.Late(c.results); late != c.late {
			t.Errorf("%s: late is %v", name, late)
		}
	}
}

func TestFlags(t *testing.T) {
	s := load(t, `{"about":"x. Server flags: --a=b --c=d.","needs":["--e=f"],"steps":[{"do":"DELETE /apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/x"}]}`)
	if want := []string{"--e=f", "--a=b", "--c=d"}; !slices.Equal(s.Flags(), want) {
		t.Errorf("flags %q", s.Flags())
	}
	if !s.Alone() {
		t.Error("what other requests fall under is changed beside them")
	}
	if groups := recorded.ByFlags([]*recorded.Scenario{s, {}, s}); len(groups) != 2 || len(groups[0]) != 1 || len(groups[1]) != 2 {
		t.Errorf("groups: %v", groups)
	}
}
