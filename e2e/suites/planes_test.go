package suites

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sideBySide is the number of control planes that one machine carries.
const sideBySide = 200

// patience bounds how long a busy machine may take for one step of one of them.
const patience = 5 * time.Minute

// plane is an etcd and a kube-apiserver by their names, as envtest starts them.
type plane struct {
	dir           string
	port          int
	etcd, server  *exec.Cmd
	etcdLog, logs bytes.Buffer
	client        *http.Client
}

// TestSideBySide: two hundred control planes run at the same time, each with its own
// objects, and stop on request.
func TestSideBySide(t *testing.T) {
	assets := filepath.Join(t.TempDir(), "assets")
	if out, err := exec.Command(os.Getenv("ROWLOCK_BINARY"), "envtest", "setup", assets).CombinedOutput(); err != nil {
		t.Fatalf("envtest setup: %v\n%s", err, out)
	}
	watched := watch(assets)
	planes := make([]*plane, sideBySide)
	for i := range planes {
		planes[i] = &plane{dir: t.TempDir()}
		planes[i].client = &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	t.Cleanup(func() {
		for _, p := range planes {
			p.kill()
		}
	})
	each(t, planes, func(_ int, p *plane) error { return p.start(assets) })
	each(t, planes, func(i int, p *plane) error { return p.write(i) })
	each(t, planes, func(i int, p *plane) error { return p.read(i) })
	watched.look()
	memory, processor := watched.end()
	each(t, planes, func(_ int, p *plane) error { return p.stop() })
	t.Logf("%d control planes: %.0f MB, %.1f MB each, %.1f s of processors", sideBySide, memory, memory/sideBySide, processor)
}

// each does the same with all, several at a time.
func each(t *testing.T, planes []*plane, do func(int, *plane) error) {
	t.Helper()
	var all sync.WaitGroup
	errs, free := make([]error, len(planes)), make(chan struct{}, 8)
	for i, p := range planes {
		free <- struct{}{}
		all.Go(func() {
			errs[i] = do(i, p)
			<-free
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("control plane %d: %v\n%s%s", i, err, planes[i].etcdLog.String(), planes[i].logs.String())
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (p *plane) start(assets string) (err error) {
	for range 5 { // another process may take a port in the meantime
		if err = p.tryStart(assets); err == nil {
			return nil
		}
		p.kill()
	}
	return err
}

func (p *plane) tryStart(assets string) error {
	etcdPort, err := freePort()
	if err != nil {
		return err
	}
	if p.port, err = freePort(); err != nil {
		return err
	}
	tokens := filepath.Join(p.dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte("secret,admin,1,system:masters\n"), 0o600); err != nil {
		return err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", etcdPort)
	p.etcd = exec.Command(filepath.Join(assets, "etcd"), "--data-dir", filepath.Join(p.dir, "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url, "--unsafe-no-fsync")
	p.server = exec.Command(filepath.Join(assets, "kube-apiserver"), "--etcd-servers", url, "--cert-dir", filepath.Join(p.dir, "certs"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.port), "--authorization-mode=RBAC", "--token-auth-file="+tokens, "--disable-admission-plugins=ServiceAccount")
	p.etcd.Stderr, p.server.Stderr = &p.etcdLog, &p.logs
	if err := p.etcd.Start(); err != nil {
		return err
	}
	if err := until(func() bool { return answers(http.DefaultClient, url+"/health") }); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if err := p.server.Start(); err != nil {
		return err
	}
	return until(func() bool { return answers(p.client, fmt.Sprintf("https://127.0.0.1:%d/readyz", p.port)) })
}

func until(done func() bool) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if done() {
			return nil
		}
	}
	return fmt.Errorf("not ready after %v", patience)
}

func answers(client *http.Client, url string) bool {
	resp, err := client.Get(url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// do asks the API server.
func (p *plane) do(method, path, body string, want int) (string, error) {
	req, err := http.NewRequest(method, fmt.Sprintf("https://127.0.0.1:%d%s", p.port, path), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, got)
	}
	return string(got), err
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func (p *plane) write(i int) error {
	_, err := p.do("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"of-plane-%d"}}`, i), http.StatusCreated)
	return err
}

// read finds the object of this control plane, and no other's.
func (p *plane) read(i int) error {
	list, err := p.do("GET", configMaps, "", http.StatusOK)
	if err == nil && (strings.Count(list, `"name":"of-plane-`) != 1 || !strings.Contains(list, fmt.Sprintf(`"name":"of-plane-%d"`, i))) {
		err = fmt.Errorf("its config maps are %s", list)
	}
	return err
}

// stop ends both by the signal that envtest sends.
func (p *plane) stop() error {
	for _, cmd := range []*exec.Cmd{p.server, p.etcd} {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
		}
	}
	return nil
}

// kill leaves nothing behind after a failure.
func (p *plane) kill() {
	for _, cmd := range []*exec.Cmd{p.server, p.etcd} {
		if cmd != nil && cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}
