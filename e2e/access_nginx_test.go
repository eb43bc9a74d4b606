package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
)

// nginxConfig is an authenticating proxy as operators write it: it knows passwords,
// names the user, and removes the headers in which clients name themselves.
const nginxConfig = `%[1]s
daemon off;
pid %[2]s/nginx.pid;
error_log stderr warn;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi; uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
  map $remote_user $crew { default ""; jane crew; }
  server {
    listen 127.0.0.1:%[3]d ssl;
    ssl_certificate %[2]s/nginx.crt; ssl_certificate_key %[2]s/nginx.key;
    auth_basic cluster; auth_basic_user_file %[2]s/passwords;
    location / {
      proxy_pass %[4]s;
      proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 1h;
      proxy_ssl_certificate %[2]s/front-proxy.crt; proxy_ssl_certificate_key %[2]s/front-proxy.key;
      proxy_ssl_trusted_certificate %[5]s/ca.crt; proxy_ssl_verify on; proxy_ssl_name kubernetes.default.svc;
      proxy_set_header Authorization "";
      proxy_set_header X-Remote-User $remote_user;
      proxy_set_header X-Remote-Group $crew;
      proxy_set_header X-Remote-Extra-Scopes "";
    }
  }
}
`

// startNginx starts nginx in front of the server, and returns its URL.
func startNginx(t *testing.T, a *access) string {
	bin := needs.Program(t, "nginx")
	dir := t.TempDir()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	user := ""
	if os.Geteuid() == 0 { // else its workers cannot read the folder of a test
		user = "user root;"
	}
	files := map[string][]byte{
		"nginx.conf": fmt.Appendf(nil, nginxConfig, user, dir, port, a.s.URL, a.s.DataDir),
		"passwords":  []byte("jane:{PLAIN}pass\njoe:{PLAIN}word\n"),
	}
	files["nginx.crt"], files["nginx.key"] = harness.Files(t, a.users.Server(t))
	files["front-proxy.crt"], files["front-proxy.key"] = harness.Files(t, a.front.Client(t, "front-proxy"))
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	cmd := exec.Command(bin, "-e", "stderr", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // its workers end with it
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", &log)
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return "https://" + address
		}
		if time.Since(start) > patience {
			t.Fatalf("nginx does not listen: %s", &log)
		}
	}
}

// throughNginx connects through a proxy that authenticates: a client with a password is the user that the
// proxy names, with that user's rights, and with kubectl.
func throughNginx(t *testing.T, a *access) {
	url := startNginx(t, a)
	a.grant(t, "", "jane", `[{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}]`)
	a.roots.AppendCertsFromPEM(a.users.PEM)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots}}, Timeout: time.Minute}
	ask := func(user, password string, more http.Header) (int, string) {
		t.Helper()
		r, err := http.NewRequest("POST", url+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range more {
			r.Header[name] = values
		}
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth(user, password)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		return resp.StatusCode, body.String()
	}
	smuggled := http.Header{
		"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Scopes": {"all"}, "x-remote-group": {"system:masters"}, "X_Remote_Group": {"system:masters"},
	}
	for _, tc := range []struct {
		user, password string
		headers        http.Header
		code           int
		want           string
	}{
		{"jane", "pass", nil, 201, `"userInfo":{"username":"jane","groups":["crew","system:authenticated"]}`},
		{"joe", "word", nil, 201, `"userInfo":{"username":"joe","groups":["system:authenticated"]}`},
		{"jane", "pass", smuggled, 201, `"userInfo":{"username":"jane","groups":["crew","system:authenticated"]}`},
		{"joe", "word", smuggled, 201, `"userInfo":{"username":"joe","groups":["system:authenticated"]}`},
		{"joe", "word", http.Header{"Impersonate-User": {"jane"}}, 403, `User \"joe\" cannot impersonate resource \"users\"`},
		{"jane", "wrong", nil, 401, ""},
		{"root", "", smuggled, 401, ""},
	} {
		if code, body := ask(tc.user, tc.password, tc.headers); code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s with %v: %d %s", tc.user, tc.headers, code, body)
		}
	}
	config := filepath.Join(a.dir, "nginx.kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":%q}}],"users":[{"name":"u","user":{"username":"jane","password":"pass"}}],
"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, url, filepath.Join(a.dir, "users.crt"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k := a.s.Kubectl(t)
	k.Run("--kubeconfig", config, "create", "configmap", "proxied", "--from-literal=k=v")
	if out := k.Run("--kubeconfig", config, "wait", "--for=jsonpath={.data.k}=v", "--timeout=2m", "configmap/proxied"); !strings.Contains(out, "condition met") {
		t.Error(out)
	}
	if out, err := k.Try("", "--kubeconfig", config, "get", "secrets"); err == nil || !strings.Contains(out+err.Error(), `User "jane" cannot list resource "secrets"`) {
		t.Errorf("%v: %s", err, out)
	}
}
