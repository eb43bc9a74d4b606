package access

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestReady: the command ends well where /readyz does, and otherwise names what fails.
func TestReady(t *testing.T) {
	answer, code := "", 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("asked %s as %q", r.URL, r.Header.Get("Authorization"))
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	defer s.Close()
	dir := t.TempDir()
	c := clientcmdapi.NewConfig()
	c.Clusters["a"] = &clientcmdapi.Cluster{Server: s.URL, InsecureSkipTLSVerify: true}
	c.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: "t"}
	c.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	c.CurrentContext = "a"
	if err := clientcmd.WriteToFile(*c, filepath.Join(dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		code         int
		answer, want string
	}{
		{200, "[+]ping ok\nreadyz check passed\n", ""},
		{500, "[+]ping ok\n[-]store failed: reason withheld\n[-]feed failed: reason withheld\nreadyz check failed", "store failed: reason withheld; feed failed"},
		{503, "starting", "503"},
	} {
		code, answer = tc.code, tc.answer
		out, err := runReady(t, dir)
		if tc.want == "" && (err != nil || out != "ready\n") || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%d: %q, %v, want %q", tc.code, out, err, tc.want)
		}
	}
	s.Close()
	if _, err := runReady(t, dir); err == nil || !strings.Contains(err.Error(), "not ready: no answer") {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := runReady(t, t.TempDir()); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("no data directory: %v", err)
	}
	for _, name := range []string{"docker-compose.yaml", "docs/docker-compose.sqlite.yaml"} {
		text, err := os.ReadFile("../../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		servers, checks := strings.Count(string(text), `command: ["serve"`), strings.Count(string(text), `test: ["CMD", "/rowlock", "ready", "--data-dir=/var/lib/rowlock"]`)
		if servers == 0 || servers != checks {
			t.Errorf("%s: %d servers, and %d are asked whether they are ready", name, servers, checks)
		}
	}
}

// runReady runs `rowlock ready` for a data directory.
func runReady(t *testing.T, dir string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := ReadyCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--data-dir", dir})
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}
