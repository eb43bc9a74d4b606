package copying_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
)

func decoded(t *testing.T, data []byte) (object map[string]any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestHostileSource: an object that is none, or has a name that would be another path, is
// named and does not end the run; one with an unusual name is copied under this name, and the
// object that was read is the one that is written.
func TestHostileSource(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a", "b")
	long := strings.Repeat("n", 5000)
	r := s.run(t, source{
		{"configmaps", []string{
			`not JSON`, `null`, `[]`, `{}`, configMap("../../../nodes/x", ""), configMap("a%2fb", ""), strings.Replace(configMap("esc", ""), "esc", `\u001b[2J`, 1), configMap(long, ""), configMap("..", ""),
			configMap("UPPER case", ""), configMap("good", ""),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"real","namespace":"a"},"Metadata":{"name":"lie","namespace":"b"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":{"x":1},"namespace":["a"]}}`,
		}},
		{"clusterroles.rbac.authorization.k8s.io", []string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"odd name?x=y#z"},"rules":[]}`}},
		{"widgets.nowhere.example", []string{`{"apiVersion":"nowhere.example/v1","kind":"Widget","metadata":{"name":"w"}}`}},
	}, copying.Options{})
	wantTotal(t, "bad names", r, 2, 0, 0, 0, 0, 13)
	wantDetail(t, r, copying.Failed, "configmaps", "?", `no object can have the name "../../../nodes/x"`)
	wantDetail(t, r, copying.Failed, "configmaps", "?", "the object is not a JSON object")
	wantDetail(t, r, copying.Failed, "configmaps", "UPPER case", "Invalid value")
	wantDetail(t, r, copying.Failed, "configmaps", "?", `no object can have the name "?[2J"`)
	wantDetail(t, r, copying.Failed, "configmaps", "real", "field not declared in schema")
	if s.get(t, "/api/v1/namespaces/b/configmaps/lie") != nil {
		t.Error("an object is listed in a place that it does not name")
	}
	if s.get(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles/odd%20name%3Fx=y%23z") == nil {
		t.Error("a role with an unusual name was not copied")
	}
	for _, d := range r.Details {
		if strings.ContainsAny(d.Reason, "\x1b\n") || len(d.Reason) > 3000 || len(d.Name) > 3000 {
			t.Errorf("a detail is not for a terminal: %q", d)
		}
	}
}

// TestUncommonText: values are what they were, also such as readers of YAML refuse or fold.
func TestUncommonText(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	text := "tab\tend\u007f \u0080\u0085\u009f \ufeff \u2028 \U0001f600 \u00e9 <&> ~ \"\\ \x01"
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}, "data": map[string]any{"k": text}}
	wantTotal(t, "uncommon text", s.run(t, source{{"configmaps", []string{asJSON(t, object)}}}, copying.Options{}), 1, 0, 0, 0, 0, 0)
	if got := field(s.get(t, "/api/v1/namespaces/a/configmaps/x"), "data", "k"); got != text {
		t.Errorf("%q became %q", text, got)
	}
	strict := httptest.NewServer(hostile(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.ContainsFunc(body, func(r rune) bool { return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0x2028 }) {
			t.Errorf("the body is %q, %v", body, err)
		}
		fmt.Fprint(w, `{"metadata":{"uid":"1","resourceVersion":"1"}}`)
	}))
	defer strict.Close()
	if _, err := copying.Run(t.Context(), clientOf(t, strict.URL, nil, nil), source{{"configmaps", []string{asJSON(t, object)}}}, copying.Options{}); err != nil {
		t.Error(err)
	}
}

// hostile returns a target that serves ConfigMaps in its own way.
func hostile(objects http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	mux.HandleFunc("/api", answer(`{"kind":"APIVersions","versions":["v1"]}`))
	mux.HandleFunc("/apis", answer(`{"kind":"APIGroupList","groups":[]}`))
	mux.HandleFunc("/api/v1", answer(`{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list","get"]}]}`))
	mux.HandleFunc("/api/v1/namespaces/", objects)
	return mux
}

// TestHostileTarget: whatever a target answers, the run ends with the result for each object
// or with an error that names the fault.
func TestHostileTarget(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		ended  string // part of the error of the run; "": the object failed
		detail string
	}{
		"no JSON":        {status(200, "<html>"), "", "makes no sense"},
		"null":           {status(200, "null"), "", "makes no sense"},
		"a redirect":     {http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, "", "307"},
		"for a terminal": {status(418, `{"kind":"Status","message":"a\u001b]0;owned\u0007b"}`), "", "a?]0;owned?b"},
		"a long message": {status(418, `{"kind":"Status","message":"`+strings.Repeat("m", 100_000)+`"}`), "", "mmm..."},
		"unauthorized":   {status(401, `{"kind":"Status","message":"who are you"}`), "who are you", ""},
		"endless":        {func(w http.ResponseWriter, r *http.Request) { flood(w, r) }, "larger than any may be", ""},
		"waits for a day": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
		}, "asks to wait 24h", ""},
		"stands still": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "tried 10 times", ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(hostile(c.answer))
			defer srv.Close()
			to := clientOf(t, srv.URL, nil, func(cfg *remote.Config) {
				cfg.Object, cfg.Silence = 1<<20, time.Minute
				if name == "stands still" {
					cfg.Silence = time.Second
				}
			})
			r, err := copying.Run(t.Context(), to, source{{"configmaps", []string{configMap("x", "")}}}, copying.Options{})
			if c.ended != "" {
				if err == nil || !strings.Contains(err.Error(), c.ended) {
					t.Errorf("the error is %v, want one with %q", err, c.ended)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantTotal(t, name, r, 0, 0, 0, 0, 0, 1)
			wantDetail(t, r, copying.Failed, "configmaps", "x", c.detail)
			if n := len(r.Details[0].Reason); n > 2100 {
				t.Errorf("the reason has %d bytes", n)
			}
		})
	}
}

func flood(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<16)); err != nil {
			return
		}
	}
}
