package recorded_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rowlock/rowlock/e2e/recorded"
)

// TestGotComesBack: a replay that wants the answer which another replay got is equal, in all parts of the answer.
func TestGotComesBack(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 - "old"`)
		w.Header().Set("X-Shown", "7b0cf7a5-7a5b-4d5c-a1a5-0e5a6d3b2c1d")
		w.Header().Set("Retry-After", "3")
		switch r.URL.Path {
		case "/object":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"metadata":{"uid":"7b0cf7a5-7a5b-4d5c-a1a5-0e5a6d3b2c1d","resourceVersion":"17"},"items":[]}`))
		case "/watch":
			_, _ = w.Write([]byte(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"4"}}}` + "\n"))
		case "/text":
			_, _ = w.Write([]byte("one  two\nthree\n"))
		}
	}))
	defer server.Close()
	srv := recorded.Server{URL: server.URL, Client: server.Client()}
	for _, step := range []string{
		`"do":"GET /object","show":["X-Shown","X-Absent"]`, `"do":"WATCH /watch"`, `"do":"GET /text","head":1`, `"do":"GET /nothing"`,
	} {
		replay := func(want string) recorded.Result {
			t.Helper()
			return recorded.Replay(context.Background(), srv, load(t, `{"name":"core-x","bare":true,"steps":[{`+step+`,"want":`+want+`}]}`))[0]
		}
		first := replay(`{"status":418}`)
		if first.Equal() || first.Got == nil {
			t.Fatalf("%s: %v", step, first.Diff)
		}
		text, err := json.Marshal(first.Got)
		if err != nil {
			t.Fatal(err)
		}
		if again := replay(string(text)); !again.Equal() || again.Got != nil {
			t.Errorf("%s does not come back as %s:\n%v", step, text, again.Diff)
		}
	}
}
