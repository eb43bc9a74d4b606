package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
)

const packaging = "../docs/packaging/"

// outside runs a program that is not ours.
func outside(t *testing.T, name string, args ...string) string {
	t.Helper()
	if !strings.ContainsRune(name, filepath.Separator) {
		name = needs.Program(t, name)
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestUnit: a service manager accepts the unit, and is notified when requests are
// served and when the server stops.
func TestUnit(t *testing.T) {
	t.Parallel()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(packaging + "systemd/rowlock.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "rowlock.service")
	// The program and its manual page are not installed here.
	here := strings.NewReplacer("/usr/local/bin/rowlock", bin, "Documentation=man:rowlock-serve(1)\n", "").Replace(string(text))
	if err := os.WriteFile(unit, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := outside(t, "systemd-analyze", "verify", unit); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	// 0 is no exposure, 10 is none of the protections.
	outside(t, "systemd-analyze", "security", "--offline=yes", "--threshold=20", unit)
	// The standard library reads net.core.somaxconn, and metrics the start of the machine.
	if strings.Contains(string(text), "\nProcSubset=pid\n") {
		t.Error("the unit hides /proc/sys and /proc/stat")
	}

	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	s := harness.StartT(t, harness.Options{Env: []string{"NOTIFY_SOCKET=" + manager.LocalAddr().String()}})
	message := func() string {
		buf := make([]byte, 100)
		_ = manager.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := manager.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got := message(); got != "READY=1" {
		t.Errorf("at the start the manager gets %q", got)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := message(); got != "STOPPING=1" {
		t.Errorf("at the end the manager gets %q", got)
	}
}

// TestManifests: the manifests are taken by a cluster, and what their pods run serves: the
// keys of the Secret, a database that the environment names, the probes as strangers.
func TestManifests(t *testing.T) {
	t.Parallel()
	host := harness.StartT(t, harness.Options{})
	k := host.Kubectl(t)
	k.Run("create", "namespace", "rowlock")
	k.Run("apply", "--dry-run=server", "--validate=strict", "-k", packaging+"kubernetes")
	var pod struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers, Containers []struct {
						Args         []string
						StartupProbe struct {
							HTTPGet struct{ Path string } `json:"httpGet"`
						} `json:"startupProbe"`
						LivenessProbe struct {
							HTTPGet struct{ Path string } `json:"httpGet"`
						} `json:"livenessProbe"`
					}
				}
			}
		}
	}
	for document := range strings.SplitSeq(k.Run("kustomize", packaging+"kubernetes"), "\n---\n") {
		if strings.Contains(document, "kind: Deployment\n") {
			if err := yaml.Unmarshal([]byte(document), &pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec := pod.Spec.Template.Spec
	database := createDB(t, sharedPostgres(t), "packaged")
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "made")
	outside(t, bin, "init", "--data-dir", keys, "--tls-san=rowlock.rowlock.svc")
	secret := t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key", "service-account.key", "front-proxy-ca.crt", "front-proxy-ca.key"} {
		data, err := os.ReadFile(filepath.Join(keys, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(secret, name), data, 0o440); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(t.TempDir(), "data")
	inPod := strings.NewReplacer("/var/lib/rowlock/data", data, "/etc/rowlock/keys", secret, "$(POD_IP)", "127.0.0.1", "--store=postgres://", "--store="+database)
	args := func(list []string) (out []string) {
		for _, a := range list {
			out = append(out, inPod.Replace(a))
		}
		return out
	}
	outside(t, bin, args(spec.InitContainers[0].Args)...)
	main := spec.Containers[0]
	if main.Args[0] != "serve" || !slices.Contains(main.Args, "--secure-port=6443") {
		t.Fatal(main.Args)
	}
	kept := slices.DeleteFunc(args(main.Args[1:]), func(a string) bool {
		return strings.HasPrefix(a, "--data-dir=") || strings.HasPrefix(a, "--secure-port=") || strings.HasPrefix(a, "--shutdown-delay-duration=")
	})
	s := harness.StartT(t, harness.Options{DataDir: data, Args: kept})
	stranger, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{main.StartupProbe.HTTPGet.Path, main.LivenessProbe.HTTPGet.Path} {
		resp, err := stranger.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if path == "" || resp.StatusCode != http.StatusOK {
			t.Errorf("the probe of %q is answered by %s", path, resp.Status)
		}
	}
	ca, err := os.ReadFile(filepath.Join(data, "ca.crt"))
	if want, err2 := os.ReadFile(filepath.Join(secret, "ca.crt")); err != nil || err2 != nil || !bytes.Equal(ca, want) {
		t.Error("the server does not have the authority of the Secret")
	}
}

// TestCompose: Debian's docker-compose accepts the compose files.
func TestCompose(t *testing.T) {
	t.Parallel()
	outside(t, "docker-compose", "-f", "../docker-compose.yaml", "config", "-q")
	outside(t, "docker-compose", "-f", "../docs/docker-compose.sqlite.yaml", "--project-directory", "..", "config", "-q")
}

// TestConvertPlugin: kubectl finds the program under the plugin's name.
func TestConvertPlugin(t *testing.T) {
	t.Parallel()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := harness.KubectlBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(dir, "kubectl-convert")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), kubectl, "convert", "-f", "-", "--output-version", "batch/v1")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(`{"apiVersion":"batch/v1beta1","kind":"CronJob","metadata":{"name":"tick"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{}}}}}}`)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "apiVersion: batch/v1\n") {
		t.Errorf("%v %s", err, out)
	}
}

var (
	metricName = regexp.MustCompile(`\b(?:rowlock|apiserver|kubernetes|process|go)_[a-z0-9_]+`)
	alertName  = regexp.MustCompile(`(?m)alert: (\w+)$`)
)

// TestMonitoring: a Prometheus scrapes the server as documented, its rules and
// every query of the dashboard have results, and each alert has its page.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	outside(t, "promtool", "check", "rules", packaging+"prometheus/rules.yaml")
	outside(t, "promtool", "test", "rules", packaging+"prometheus/rules.test.yaml")
	rules, err := os.ReadFile(packaging + "prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(packaging + "prometheus/rules.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range alertName.FindAllSubmatch(rules, -1) {
		page := "docs/runbooks/" + string(m[1]) + ".md"
		if _, err := os.Stat("../" + page); err != nil || !bytes.Contains(rules, []byte(page)) || !bytes.Contains(tests, []byte("alertname: "+string(m[1]))) {
			t.Errorf("%s lacks its page or its test: %v", m[1], err)
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	board, err := os.ReadFile(packaging + "grafana/rowlock.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(board, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatal(err, len(dashboard.Panels))
	}

	s := harness.StartT(t, harness.Options{})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	exposed := ""
	for _, path := range []string{"/metrics", "/metrics/slis"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		exposed += string(b)
	}
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{rules, board} {
		for _, name := range metricName.FindAll(text, -1) {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(string(name), "")
			// Future releases are not exposed; then the program knows the name.
			if !strings.Contains(exposed, "# TYPE "+base+" ") && !bytes.Contains(program, []byte(base)) {
				t.Errorf("there is no metric %s", name)
			}
		}
	}
	p := startPrometheus(t, s)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := strings.NewReplacer(`$job`, "rowlock", `$instance`, ".*").Replace(target.Expr)
			if answer := p.ask(t, "/api/v1/query?query="+url.QueryEscape(expr)); !strings.Contains(answer, `"status":"success"`) {
				t.Errorf("%s: %s: %s", panel.Title, expr, answer)
			}
		}
	}
	for _, job := range []string{"rowlock", "rowlock-slis"} {
		query := "/api/v1/query?query=" + url.QueryEscape(fmt.Sprintf("up{job=%q} == 1", job))
		p.until(t, query, func(answer string) bool { return strings.Contains(answer, `"job":"`+job+`"`) })
	}
	p.until(t, "/api/v1/rules", func(answer string) bool {
		return !strings.Contains(answer, `"health":"unknown"`) && strings.Contains(answer, `"health":"ok"`)
	})
	if answer := p.ask(t, "/api/v1/rules"); strings.Contains(answer, `"health":"err"`) || strings.Contains(answer, `"state":"firing"`) {
		t.Errorf("rules of a server that does nothing: %s", answer)
	}
}

// prometheus is a Prometheus that runs during the test.
type prometheus struct {
	url string
	log *bytes.Buffer
}

// startPrometheus starts one that scrapes a server with scrape.yaml.
func startPrometheus(t *testing.T, s *harness.Server) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile(packaging + "prometheus/scrape.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(packaging + "prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/etc/prometheus/rowlock/ca.crt", filepath.Join(s.DataDir, "ca.crt"), "/etc/prometheus/rowlock/token", filepath.Join(dir, "token"),
		"rowlock.example:6443", strings.TrimPrefix(s.URL, "https://")).Replace(string(config))
	// A client that scrapes every second waits no longer than that for an answer.
	here = "global:\n  scrape_interval: 5s\n  scrape_timeout: 5s\n  evaluation_interval: 1s\nrule_files: [" + rules + "]\n" + here
	for name, text := range map[string]string{"token": harness.AdminToken, "prometheus.yaml": here} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside(t, "promtool", "check", "config", filepath.Join(dir, "prometheus.yaml"))
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{url: fmt.Sprintf("http://127.0.0.1:%d", port), log: &bytes.Buffer{}}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, needs.Program(t, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+strings.TrimPrefix(p.url, "http://"))
	cmd.Stderr = p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	p.until(t, "/-/ready", func(answer string) bool { return strings.Contains(answer, "Ready.") })
	return p
}

// ask returns the answer to a GET, or the error.
func (p *prometheus) ask(t *testing.T, path string) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *prometheus) until(t *testing.T, path string, good func(answer string) bool) {
	t.Helper()
	answer := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if answer = p.ask(t, path); good(answer) {
			return
		}
	}
	t.Fatalf("%s: %s", path, answer)
}
