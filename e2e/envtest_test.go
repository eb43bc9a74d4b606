package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// plane is a control plane started by file names, as tests of controllers start it.
type plane struct {
	t      *testing.T
	assets string // the folder of the programs
	cwd    string // in which nothing may appear
	certs  string // --cert-dir, where serving certificates are made
	users  *harness.Authority
	admin  *http.Client
}

func newPlane(t *testing.T) *plane {
	p := &plane{t: t, assets: filepath.Join(t.TempDir(), "it's here"), cwd: t.TempDir(), certs: filepath.Join(t.TempDir(), "certs"), users: harness.NewAuthority(t, "users")}
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "envtest", "setup", p.assets).Output()
	if want := "export KUBEBUILDER_ASSETS='" + strings.ReplaceAll(p.assets, "'", `'\''`) + "'\n"; err != nil || string(out) != want {
		t.Fatalf("setup: %v, %q, want %q", err, out, want)
	}
	if err := os.MkdirAll(p.certs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.certs, "client-ca.crt"), p.users.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	p.admin = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*p.users.Client(t, "admin", "system:masters")},
	}}}
	return p
}

// program is one of a plane's programs.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
	log   storetest.Log
}

func (p *plane) start(name string, env []string, args ...string) *program {
	p.t.Helper()
	s := &program{cmd: exec.Command(filepath.Join(p.assets, name), args...), ended: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env = p.cwd, append(os.Environ(), env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	p.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
	})
	return s
}

// ready waits until a URL is answered well.
func (p *plane) ready(s *program, url string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := p.admin.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-s.ended:
			p.t.Fatalf("%s ended: %v\n%s", url, s.err, &s.log)
		default:
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is not ready\n%s", url, &s.log)
		}
	}
}

// stop ends a process as test environments do. It ends well, at once.
func (p *plane) stop(s *program) {
	p.t.Helper()
	began := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // if it has ended, s.err is the reason
	select {
	case <-s.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end\n%s", s.cmd.Path, &s.log)
	}
	if s.err != nil {
		p.t.Errorf("%s: %v\n%s", s.cmd.Path, s.err, &s.log)
	}
	p.t.Logf("%s ended in %v", filepath.Base(s.cmd.Path), time.Since(began).Round(time.Millisecond))
}

func (p *plane) etcd(dir string) (s *program, url string) {
	p.t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		p.t.Fatal(err)
	}
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	s = p.start("etcd", nil, "--advertise-client-urls="+url, "--data-dir="+dir, "--listen-client-urls="+url, "--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync=true")
	p.ready(s, url+"/health")
	return s, url
}

func (p *plane) apiserver(etcd string, env []string, more ...string) (s *program, url string) {
	p.t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		p.t.Fatal(err)
	}
	args := []string{
		"--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--cert-dir=" + p.certs,
		"--client-ca-file=" + filepath.Join(p.certs, "client-ca.crt"), "--disable-admission-plugins=ServiceAccount", "--etcd-servers=" + etcd,
		fmt.Sprintf("--secure-port=%d", port), fmt.Sprintf("--service-account-issuer=https://127.0.0.1:%d/", port), "--service-cluster-ip-range=10.0.0.0/24",
		// Further settings of suites.
		"--max-connection-bytes-per-sec=1000000", "--storage-media-type=application/vnd.kubernetes.protobuf", "--watch-cache=true", "--enable-garbage-collector",
	}
	if len(more) == 0 {
		more = []string{"--emulated-version=1.32"}
	}
	url = fmt.Sprintf("https://127.0.0.1:%d", port)
	s = p.start("kube-apiserver", env, append(args, more...)...)
	p.ready(s, url+"/readyz")
	return s, url
}

func (p *plane) ask(code int, method, url, body string) string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.admin.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != code {
		p.t.Fatalf("%s %s: %d %v, want %d\n%s", method, url, resp.StatusCode, err, code, text)
	}
	return string(text)
}

// TestEnvtest runs a control plane whose programs are found by their names: their
// versions, two API servers on one etcd, restarts, and an end without traces.
func TestEnvtest(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.helps()
	data := filepath.Join(t.TempDir(), "data")
	etcd, address := p.etcd(data)
	one, first := p.apiserver(address, nil)
	two, second := p.apiserver(address, nil, "--cert-dir=")
	p.ask(201, http.MethodPost, first+"/api/v1/namespaces", `{"metadata":{"name":"mine"}}`)
	p.ask(201, http.MethodPost, second+configMaps, `{"metadata":{"name":"shared"}}`)
	p.ask(200, http.MethodGet, first+configMaps+"/shared", "")
	p.ask(409, http.MethodPost, first+configMaps, `{"metadata":{"name":"shared"}}`)
	if pem, err := os.ReadFile(filepath.Join(p.certs, "apiserver.crt")); err != nil || !bytes.Contains(pem, []byte("CERTIFICATE")) {
		t.Errorf("the certificate in --cert-dir: %v", err)
	}
	// Nothing is done by controllers, which are not there.
	p.ask(404, http.MethodGet, first+"/api/v1/namespaces/mine/serviceaccounts/default", "")
	p.ask(200, http.MethodDelete, first+"/api/v1/namespaces/mine", "")
	p.ask(200, http.MethodGet, second+"/api/v1/namespaces/mine", "")
	p.stop(one)
	p.ask(200, http.MethodGet, second+configMaps+"/shared", "")
	p.stop(two)
	p.stop(etcd)

	// The same data, by processes that are all new, in another release; and controllers that were asked for.
	etcd, address = p.etcd(data)
	one, first = p.apiserver(address, []string{"ROWLOCK_ENVTEST_CONTROLLERS=namespace,serviceaccount"}, "--emulated-version=1.36")
	if text := p.ask(200, http.MethodGet, first+"/version", ""); !strings.Contains(text, `"emulationMinor": "36"`) {
		t.Errorf("/version of another release: %s", text)
	}
	p.ask(200, http.MethodGet, first+"/apis/resource.k8s.io/v1", "")
	p.ask(200, http.MethodGet, first+configMaps+"/shared", "")
	p.await(first+"/api/v1/namespaces/mine", 404)
	p.await(first+"/api/v1/namespaces/default/serviceaccounts/default", 200)
	p.stop(one)
	if err := os.RemoveAll(data); err != nil { // before it ends, as by a test that cleans up in no order
		t.Error(err)
	}
	p.stop(etcd)
	if left, err := os.ReadDir(p.cwd); err != nil || len(left) > 0 {
		t.Errorf("left in the working directory: %v, %v", left, err)
	}
	if left, err := os.ReadDir(filepath.Dir(data)); err != nil || len(left) > 0 {
		t.Errorf("left beside the data: %v, %v", left, err)
	}
}

// await asks until a code is answered.
func (p *plane) await(url string, code int) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		resp, err := p.admin.Get(url)
		if err != nil {
			p.t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == code {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: %d, want %d", url, resp.StatusCode, code)
		}
	}
}

// helps checks the help that test environments read before they start anything.
func (p *plane) helps() {
	p.t.Helper()
	for _, c := range []struct {
		name, arg    string
		with, absent string
	}{
		{"kube-apiserver", "--help", "\n      --etcd-servers strings", "\n      --insecure-port"},
		{"kube-apiserver", "--version", "Kubernetes v1.32.", "rowlock v"},
		{"kube-apiserver", "--version=raw", `version.Info{Major:"1", Minor:"32", GitVersion:"v1.32.`, "\nKubernetes"},
		{"etcd", "--help", "\n  --unsafe-no-fsync ", "rowlock serve"},
		{"etcd", "--version", "etcd Version: 3.5.", "rowlock v"},
	} {
		cmd := exec.Command(filepath.Join(p.assets, c.name), c.arg)
		cmd.Dir = p.cwd
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.with) || strings.Contains(string(out), c.absent) {
			p.t.Errorf("%s %s: %v\n%s", c.name, c.arg, err, out)
		}
	}
}

// TestEnvtestRefuses: unsupported settings end with an error that explains them.
func TestEnvtestRefuses(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	real := httptest.NewServer(http.NotFoundHandler())
	defer real.Close()
	for want, args := range map[string][]string{
		"this is a real etcd":                           {"--etcd-servers=" + real.URL},
		"--etcd-servers must be specified":              nil,
		"--data-dir must be specified":                  {"--store=sqlite:" + filepath.Join(t.TempDir(), "a.db")},
		"is not in the list of known controllers; want": {"--controllers=nobody", "--etcd-servers=" + real.URL, "--store=sqlite:" + filepath.Join(t.TempDir(), "b.db"), "--data-dir=" + t.TempDir()},
	} {
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s := p.start("kube-apiserver", nil, append(slices.Clone(args), fmt.Sprintf("--secure-port=%d", port))...)
		select {
		case <-s.ended:
		case <-time.After(patience):
			t.Fatalf("%v: it runs", args)
		}
		if s.err == nil || !strings.Contains(s.log.String(), want) {
			t.Errorf("%v: %v, want %q in\n%s", args, s.err, want, &s.log)
		}
	}
	if left, err := os.ReadDir(p.cwd); err != nil || len(left) > 0 {
		t.Errorf("left in the working directory: %v, %v", left, err)
	}
}

// TestEnvtestArchive unpacks the archive as setup-envtest does: plain files alone, into
// one folder.
func TestEnvtestArchive(t *testing.T) {
	t.Parallel()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "assets.tar.gz")
	if out, err := exec.Command(bin, "envtest", "archive", archive).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	names := unpack(t, archive, dir)
	for _, name := range []string{"controller-tools/envtest/kube-apiserver", "controller-tools/envtest/etcd"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not in the archive, but %q", name, names)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "etcd"), "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), "etcd Version: ") {
		t.Errorf("the etcd of the archive: %v, %q", err, out)
	}
}

// unpack writes the plain files of an archive into a folder, and names what there is.
func unpack(t *testing.T, archive, dir string) (names []string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		out, err := os.OpenFile(filepath.Join(dir, filepath.Base(h.Name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, os.FileMode(h.Mode)&0o555|0o200)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, r); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
