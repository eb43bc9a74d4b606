package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net"
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

func rowlock(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run() // the exit code is looked at below
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// TestRefusesToStart: whatever is wrong, one clear line and exit code 1.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	free, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte("not a database "), 500), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"--nope"}, "unknown flag: --nope"},
		{"two stores", []string{"--in-memory", "--store", "sqlite:x.db"}, "--in-memory"},
		{"a store of its own", []string{"--in-memory", "--init"}, "--init"},
		{"bad port", []string{"--secure-port", "99999"}, "--secure-port"},
		{"port in use", []string{"--secure-port", port}, port},
		{"missing token file", []string{"--token-auth-file", filepath.Join(dir, "none")}, "none"},
		{"missing certificate", []string{"--tls-cert-file", filepath.Join(dir, "none"), "--tls-private-key-file", filepath.Join(dir, "none")}, "none"},
		{"certificate without key", []string{"--tls-cert-file", filepath.Join(dir, "none")}, "--tls-private-key-file"},
		{"missing client CA", []string{"--client-ca-file", filepath.Join(dir, "none")}, "none"},
		{"unknown store", []string{"--store", "etcd://localhost"}, "etcd"},
		{"not a database", []string{"--store", "sqlite:" + garbage}, "garbage.db"},
		{"bad log format", []string{"--log-format", "xml"}, "xml"},
		{"unknown feature gate", []string{"--feature-gates", "NoSuchGate=true"}, "unrecognized feature gate: NoSuchGate"},
		{"unknown mode", []string{"--authorization-mode", "RBAC,Foo"}, `invalid argument "Foo" for "--authorization-mode" flag`},
		{"bad policies", []string{"--authorization-mode", "ABAC", "--authorization-policy-file", garbage}, "invalid authorization config: --authorization-policy-file: error reading policy file " + garbage + ", line 1: couldn't get version/kind; json parse error"},
		{"two ways to say who decides", []string{"--authorization-mode", "RBAC", "--authorization-config", garbage}, "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"},
		{"unknown group", []string{"--runtime-config", "foo/v1=true"}, "unknown api groups foo"},
		{"unknown version", []string{"--runtime-config", "batch/v9"}, "group version batch/v9 that has not been registered"},
		{"no API at all", []string{"--runtime-config", "api/all=false"}, "[--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true, invalid key with only api/all=false]"},
		{"metrics of long ago", []string{"--show-hidden-metrics-for-version", "1.30"}, "Only the previous minor version is allowed"},
		{"metrics before another release", []string{"--emulated-version", "1.34", "--show-hidden-metrics-for-version", "1.31"}, "have the value '1.35'"},
		{"no metric", []string{"--allow-metric-labels", "x=y"}, "--allow-metric-labels must have a list of kv pair"},
		{"bad service range", []string{"--service-cluster-ip-range", "10.0.0.0/99"}, "--service-cluster-ip-range"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"serve", "--bind-address", "127.0.0.1", "--data-dir", filepath.Join(t.TempDir(), "d"), "--secure-port", strconv.Itoa(free)}, tc.args...)
			out, errOut, code := rowlock(t, args...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			if n := strings.Count(strings.TrimSpace(errOut), "\n"); n != 0 || !strings.Contains(errOut, tc.want) {
				t.Errorf("standard error, want one line with %q:\n%s\nstandard output:\n%s", tc.want, errOut, out)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, want string }{
		{"version", "1.32"},
		{"help", "serve"},
		{"help serve", "--data-dir"},
		{"completion bash", "complete"},
	} {
		out, errOut, code := rowlock(t, strings.Fields(tc.args)...)
		if code != 0 || !strings.Contains(out, tc.want) {
			t.Errorf("%s: exit code %d\n%s%s", tc.args, code, out, errOut)
		}
	}
}

// TestFirstStart: five lines or fewer, secret files closed, the second start finds them.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	logged(t, s, "export KUBECONFIG="+s.Kubeconfig+"\n")
	if n := len(strings.Split(strings.TrimSpace(s.Log()), "\n")); n > 5 {
		t.Errorf("%d lines:\n%s", n, s.Log())
	}
	before, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(s.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s is %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatalf("SIGTERM: %v\n%s", err, s.Log())
	}
	again, err := s.Again(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Kill()
	after, err := os.ReadFile(s.Kubeconfig)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the kubeconfig changed (%v)", err)
	}
}

// TestStrangersAreRefused: 401 for bad credentials, 403 for good ones without rights.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		auth string
		code int
		want string
	}{
		{"", 403, `secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" in the namespace "default"`},
		{"Bearer wrong", 401, "Unauthorized"},
		{"Bearer " + harness.AdminToken, 200, ""},
	} {
		req, _ := http.NewRequest(http.MethodGet, s.URL+"/api/v1/namespaces/default/secrets", nil)
		if tc.auth != "" {
			req.Header.Set("Authorization", tc.auth)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var status struct{ Kind, Message, Reason string }
		err = json.NewDecoder(resp.Body).Decode(&status)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tc.code || tc.want != "" && (status.Kind != "Status" || status.Message != tc.want) {
			t.Errorf("%q: %d %+v %v", tc.auth, resp.StatusCode, status, err)
		}
	}
}

// TestDrain: on SIGTERM a watch ends cleanly and the process with exit code 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	a := newAPI(t, s)
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		req, _ := http.NewRequest(http.MethodGet, s.URL+"/api/v1/configmaps?watch=1", nil)
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		resp, err := a.c.Do(req)
		close(started)
		if err != nil {
			done <- err
			return
		}
		defer resp.Body.Close()
		buf := make([]byte, 1<<16)
		for {
			if _, err = resp.Body.Read(buf); err != nil {
				done <- err
				return
			}
		}
	}()
	<-started
	if err := s.Stop(); err != nil {
		t.Errorf("SIGTERM: %v\n%s", err, s.Log())
	}
	select {
	case err := <-done:
		if err.Error() != "EOF" {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the watch did not end")
	}
}
