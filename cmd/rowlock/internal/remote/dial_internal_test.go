package remote

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDial: Dial uses the server and the credentials of a kubeconfig, whose relative paths start at its folder. A
// kubeconfig without a server is an error. Credentials do not follow a redirect.
func TestDial(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("token", "secret")
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	var shown string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer srv.Close()
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"c","user":"u"}},{"name":"b","context":{"cluster":"none","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":"ca.crt"}}],"users":[{"name":"u","user":{"tokenFile":"token"}}]}`, srv.URL+"/")
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	url, client, err := Dial("--flag", write("config", config), "")
	if err != nil || url != srv.URL {
		t.Fatalf("%s, %v", url, err)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound || shown != "Bearer secret" {
		t.Errorf("%s to %q", resp.Status, shown)
	}
	for name, c := range map[string]struct{ path, context, want string }{
		"empty":            {write("empty", ""), "", "no configuration"},
		"no such file":     {filepath.Join(dir, "none"), "", "no such file"},
		"no such context":  {filepath.Join(dir, "config"), "x", "context was not found for specified context: x"},
		"no such cluster":  {filepath.Join(dir, "config"), "b", "no configuration"},
		"no configuration": {write("text", "hello"), "", "--flag"},
	} {
		if _, _, err := Dial("--flag", c.path, c.context); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--flag") {
			t.Errorf("%s: %v, want one about --flag with %q", name, err, c.want)
		}
	}
}
