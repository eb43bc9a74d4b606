// Package metricsserver runs metrics-server, an aggregated API server that others wrote,
// against the built binary. It is a module of its own: metrics-server wants newer
// libraries than those of release 1.32. `make long` runs it.
package metricsserver

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// patience bounds how long a busy machine may take for one step.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// bed is a cluster with metrics-server in it.
type bed struct {
	*harness.Kubectl
	port     int
	kubelets []*kubelet
	process  *exec.Cmd
}

// TestMetricsServer: users with the right get metrics-server's measurements through rowlock, and its failure
// harms nothing else.
func TestMetricsServer(t *testing.T) {
	b := start(t)
	b.Run("wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available", "--timeout", patience.String())
	b.until(t, "figures of both pods", func() (string, bool) {
		out, err := b.Try("", "top", "pods", "-A")
		return fmt.Sprint(out, err), err == nil && strings.Contains(out, "web") && strings.Contains(out, "db")
	})
	for _, check := range []struct {
		name string
		run  func(*testing.T)
	}{{"figures", b.figures}, {"discovery", b.discovery}, {"rights", b.rights}, {"direct", b.direct}, {"death", b.death}} {
		if !t.Run(check.name, check.run) {
			t.FailNow()
		}
	}
}

// start brings up rowlock, two node agents and metrics-server, each as it is deployed.
func start(t *testing.T) *bed {
	t.Helper()
	dir := t.TempDir()
	s := harness.StartT(t, harness.Options{})
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Kubectl: s.Kubectl(t), port: port}
	b.Run("create", "namespace", "shop")
	b.until(t, "the accounts that the pods run as", func() (string, bool) {
		_, err := b.Try("", "get", "serviceaccount", "default", "-n", "default")
		_, errShop := b.Try("", "get", "serviceaccount", "default", "-n", "shop")
		return fmt.Sprint(err, errShop), err == nil && errShop == nil
	})
	cluster, err := os.ReadFile(filepath.Join("testdata", "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Try(strings.ReplaceAll(string(cluster), "SERVERPORT", strconv.Itoa(port)), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(b.Run("create", "token", "metrics-server", "-n", "kube-system", "--duration", "1h"))
	ca := harness.NewAuthority(t, "kubelets")
	b.kubelets = []*kubelet{startKubelet(t, ca, token, "default", "web"), startKubelet(t, ca, token, "shop", "db")}
	for i, k := range b.kubelets {
		b.Run("patch", "node", fmt.Sprint("n", i+1), "--subresource=status", "-p", fmt.Sprintf(
			`{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}},`+
				`"capacity":{"cpu":"4","memory":"1Gi"},"allocatable":{"cpu":"4","memory":"1Gi"},"conditions":[{"type":"Ready","status":"True"}]}}`, k.port()))
		b.Run("patch", "pod", k.pod, "-n", k.namespace, "--subresource=status", "-p", `{"status":{"phase":"Running"}}`)
	}
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, err := os.ReadFile(filepath.Join(s.DataDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	config := write("kubeconfig", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],
"users":[{"name":"c","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}]}`,
		s.URL, base64.StdEncoding.EncodeToString(own), token))
	b.process = exec.Command(build(t, dir), "--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--cert-dir="+dir, "--metric-resolution=10s",
		"--kubelet-certificate-authority="+write("kubelets.crt", ca.PEM), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-use-node-status-port", "--kubelet-request-timeout=5s")
	log, err := os.Create(filepath.Join(dir, "metrics-server.log"))
	if err != nil {
		t.Fatal(err)
	}
	b.process.Stdout, b.process.Stderr = log, log
	if err := b.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.kill()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("metrics-server printed:\n%s", text)
		}
		_ = log.Close() // it was only written by the process
	})
	return b
}

// build builds metrics-server in the version of this module's go.mod; ROWLOCK_METRICS_SERVER names a ready one.
func build(t *testing.T, dir string) string {
	t.Helper()
	if path := os.Getenv("ROWLOCK_METRICS_SERVER"); path != "" {
		return path
	}
	path := filepath.Join(dir, "metrics-server")
	if out, err := exec.Command("go", "build", "-o", path, "sigs.k8s.io/metrics-server/cmd/metrics-server").CombinedOutput(); err != nil {
		t.Fatalf("building metrics-server: %v\n%s", err, out)
	}
	return path
}

func (b *bed) kill() {
	if b.process.ProcessState == nil {
		_ = b.process.Process.Kill() // it may have ended by itself
		_ = b.process.Wait()         // that it was killed is no news
	}
}

// until repeats a check until it succeeds; a failure names the last result.
func (b *bed) until(t *testing.T, what string, look func() (string, bool)) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		seen, ok := look()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %s, saw at last:\n%s", what, seen)
		}
	}
}

// line returns the rest of the line that begins with some words, word by word.
func line(out string, begin ...string) []string {
	for l := range strings.Lines(out) {
		words := strings.Fields(l)
		if len(words) >= len(begin) && strings.Join(words[:len(begin)], " ") == strings.Join(begin, " ") {
			return words[len(begin):]
		}
	}
	return nil
}

func (b *bed) figures(t *testing.T) {
	nodes := b.Run("top", "nodes")
	for _, name := range []string{"n1", "n2"} {
		if got := strings.Join(line(nodes, name), " "); got != "250m 6% 256Mi 25%" {
			t.Errorf("%s uses %q in:\n%s", name, got, nodes)
		}
	}
	pods := b.Run("top", "pods", "-A")
	for _, k := range b.kubelets {
		if got := strings.Join(line(pods, k.namespace, k.pod), " "); got != "100m 10Mi" {
			t.Errorf("%s uses %q in:\n%s", k.pod, got, pods)
		}
		if k.served.Load() < 2 {
			t.Errorf("the node of %s was asked %d times", k.pod, k.served.Load())
		}
	}
}

func (b *bed) discovery(t *testing.T) {
	resources := b.Run("api-resources", "--api-group=metrics.k8s.io")
	if got := strings.Join(line(resources, "pods"), " "); got != "metrics.k8s.io/v1beta1 true PodMetrics" {
		t.Errorf("pods are %q in:\n%s", got, resources)
	}
	if got := strings.Join(line(resources, "nodes"), " "); got != "metrics.k8s.io/v1beta1 false NodeMetrics" {
		t.Errorf("nodes are %q in:\n%s", got, resources)
	}
	b.Want([]string{"PodMetrics", "containers", "window"}, "explain", "pods", "--api-version=metrics.k8s.io/v1beta1")
	b.Want([]string{"NodeMetrics", "usage"}, "explain", "nodes", "--api-version=metrics.k8s.io/v1beta1")
}

// rights: roles decide, and users that may only read pods get no figures of nodes.
func (b *bed) rights(t *testing.T) {
	const path = "/apis/metrics.k8s.io/v1beta1/nodes"
	out, err := b.Try("", "get", "--raw", path, "--as=jane")
	if err == nil || !strings.Contains(err.Error(), `nodes.metrics.k8s.io is forbidden: User "jane" cannot list`) {
		t.Errorf("jane got %v\n%s", err, out)
	}
	b.Run("create", "clusterrole", "figures", "--verb=list", "--resource=nodes.metrics.k8s.io")
	b.Run("create", "clusterrolebinding", "figures", "--clusterrole=figures", "--user=jane")
	b.until(t, "jane's new right", func() (string, bool) {
		out, err := b.Try("", "get", "--raw", path, "--as=jane")
		return fmt.Sprint(out, err), err == nil && strings.Contains(out, `"NodeMetricsList"`)
	})
}

// direct: metrics-server delegates authentication and authorization of direct clients to the server.
func (b *bed) direct(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // its certificate is its own
	defer client.CloseIdleConnections()
	stranger := strings.TrimSpace(b.Run("create", "token", "default", "-n", "default"))
	for _, ask := range []struct {
		name, token, claimed string
		code                 int
		text                 string
	}{
		{"nobody", "", "", http.StatusForbidden, "system:anonymous"},
		{"nobody who claims to be us", "", "admin", http.StatusForbidden, "system:anonymous"},
		{"a wrong token", "wrong", "", http.StatusUnauthorized, "Unauthorized"},
		{"an account without rights", stranger, "", http.StatusForbidden, "system:serviceaccount:default:default"},
		{"the administrator", harness.AdminToken, "", http.StatusOK, "NodeMetricsList"},
	} {
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/apis/metrics.k8s.io/v1beta1/nodes", b.port), nil)
		if err != nil {
			t.Fatal(err)
		}
		if ask.token != "" {
			req.Header.Set("Authorization", "Bearer "+ask.token)
		}
		if ask.claimed != "" {
			req.Header.Set("X-Remote-User", ask.claimed)
			req.Header.Set("X-Remote-Group", "system:masters")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != ask.code || !strings.Contains(string(body), ask.text) {
			t.Errorf("%s: %d %s %v, want %d and %q", ask.name, resp.StatusCode, body, err, ask.code, ask.text)
		}
	}
}

// death: an unreachable server is reported as unavailable, and slows nothing else down.
func (b *bed) death(t *testing.T) {
	b.Run("create", "namespace", "doomed")
	b.Run("create", "configmap", "last", "-n", "doomed")
	b.kill()
	b.Run("wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available=False", "--timeout", patience.String())
	b.Want([]string{`"apps"`, `"batch"`, `"rbac.authorization.k8s.io"`}, "get", "--raw", "/apis")
	if out, err := b.Try("", "top", "nodes"); err == nil {
		t.Errorf("a dead server gave figures:\n%s", out)
	}
	b.Run("delete", "namespace", "doomed", "--wait=false")
	b.until(t, "an empty namespace that says what it waits for", func() (string, bool) {
		maps, err := b.Try("", "get", "configmaps", "-n", "doomed", "-o", "name")
		why, errWhy := b.Try("", "get", "namespace", "doomed", "-o", `jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")]}`)
		return fmt.Sprint(maps, err, why, errWhy), err == nil && errWhy == nil && !strings.Contains(maps, "configmap/last") &&
			strings.Contains(why, `"True"`) && strings.Contains(why, "metrics.k8s.io/v1beta1")
	})
	b.Run("delete", "apiservice", "v1beta1.metrics.k8s.io")
	b.Run("wait", "namespace/doomed", "--for=delete", "--timeout", patience.String())
}
