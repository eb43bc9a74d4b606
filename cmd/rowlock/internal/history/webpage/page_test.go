package webpage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/webpage"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// hostile ends the script, the style and the data that it is written into, if it can.
const hostile = `</script></style><script>alert("x")</script><img src=x onerror=alert(1)>{{.}}'"&`

func written(t *testing.T, srv *rowlocktest.Server, form display.Form, args ...string) string {
	t.Helper()
	c, err := cluster.New(srv.Config(), "default")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names, err := cluster.ParseNames(args)
	if err != nil {
		t.Fatal(err)
	}
	p := webpage.New(webpage.Config{Now: time.Now(), Form: &form, Server: hostile, Version: hostile})
	if err := p.Collect(t.Context(), c, all, names, revisions.Query{Content: true, Most: 10}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func serve(t *testing.T) *rowlocktest.Server {
	t.Helper()
	srv := rowlocktest.Start(t, rowlocktest.Past())
	c, err := cluster.New(srv.Config(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for path, obj := range map[string]map[string]any{
		"configmaps": {"metadata": map[string]any{"name": "web"}, "data": map[string]any{"x": hostile}},
		"secrets":    {"metadata": map[string]any{"name": "pw"}, "data": map[string]any{"p": "cXVpZXQ="}},
	} {
		request := cluster.Request{Method: http.MethodPost, Path: "/api/v1/namespaces/default/" + path, Body: obj}
		if err := c.Do(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
	}
	return srv
}

var (
	element = regexp.MustCompile(`(?s)<(script|style)[^>]*>(.*?)</(script|style)>`)
	policy  = regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`)
)

// TestEscaped: the content of objects stays text, and the policy allows only the page's own
// script and style, by their hashes.
func TestEscaped(t *testing.T) {
	t.Parallel()
	text := written(t, serve(t), display.Form{})
	found := element.FindAllStringSubmatch(text, -1)
	if len(found) != 3 {
		t.Fatalf("%d scripts and styles, want 3", len(found))
	}
	allowed := policy.FindStringSubmatch(text)
	if allowed == nil || !strings.HasPrefix(allowed[1], "default-src &#39;none&#39;;") {
		t.Fatalf("policy %q", allowed)
	}
	for _, e := range found {
		if strings.Contains(e[0], "application/json") {
			continue // data, which no browser runs
		}
		sum := sha256.Sum256([]byte(e[2]))
		if want := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(strings.ReplaceAll(allowed[1], "&#43;", "+"), want) {
			t.Errorf("the policy %s does not name the %s, %s", allowed[1], e[1], want)
		}
	}
	for _, bad := range []string{"<img", `alert("x")</`, "http://", "https://"} {
		rest := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "") // a name, which is not fetched
		if strings.Contains(rest, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

// TestSecrets: they are in the page only if that was asked for.
func TestSecrets(t *testing.T) {
	t.Parallel()
	srv := serve(t)
	for show, args := range map[bool][]string{true: {"secret/pw"}, false: {}} {
		text := written(t, srv, display.Form{Secrets: show}, args...)
		if strings.Contains(text, "cXVpZXQ") != show || !strings.Contains(text, "secret/pw") {
			t.Errorf("shown %t:\n%s", show, text)
		}
	}
}

// TestCollect: of types all objects are taken, also those that were there when the time
// begins and are gone.
func TestCollect(t *testing.T) {
	t.Parallel()
	srv := serve(t)
	c, err := cluster.New(srv.Config(), "default")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := revisions.Now(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), cluster.Request{Method: http.MethodDelete, Path: "/api/v1/namespaces/default/configmaps/web"}, nil); err != nil {
		t.Fatal(err)
	}
	var q revisions.Query
	for _, since := range []int64{0, at} {
		names, err := cluster.ParseNames([]string{"cm,secret"})
		if err != nil {
			t.Fatal(err)
		}
		q.Since.Revision, q.Content = since, true
		p := webpage.New(webpage.Config{Now: time.Now(), Form: &display.Form{}})
		if err := p.Collect(t.Context(), c, all, names, q); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "configmap/web"); got != (since > 0) {
			t.Errorf("since %d: %t\n%s", since, got, fmt.Sprint(p.Summary()))
		}
	}
}
