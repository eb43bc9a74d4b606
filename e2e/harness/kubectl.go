package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var kubectl struct {
	once sync.Once
	path string
	err  error
}

// KubectlBinary returns the kubectl that the variable ROWLOCK_KUBECTL names; or else it finds kubectl 1.32 on the PATH, or
// builds it from its Go module.
func KubectlBinary() (string, error) {
	kubectl.once.Do(func() {
		if kubectl.path = os.Getenv("ROWLOCK_KUBECTL"); kubectl.path != "" {
			return
		}
		if path, err := exec.LookPath("kubectl"); err == nil && isRelease132(path) {
			kubectl.path = path
			return
		}
		dir, err := os.UserCacheDir()
		if err != nil {
			dir = os.TempDir()
		}
		kubectl.path = filepath.Join(dir, "rowlock-e2e", "kubectl-1.32")
		if isRelease132(kubectl.path) {
			return
		}
		cmd := exec.Command("go", "build", "-ldflags", "-X k8s.io/component-base/version.gitVersion=v1.32.13 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=32", "-o", kubectl.path, ".")
		if cmd.Dir, kubectl.err = kubectlModule(); kubectl.err != nil {
			return
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			kubectl.err = fmt.Errorf("building kubectl: %w\n%s", err, out)
		}
	})
	return kubectl.path, kubectl.err
}

// kubectlModule returns the folder of the module that builds kubectl. Binaries built with -trimpath contain no
// folders, so the go command is called.
func kubectlModule() (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/rowlock/rowlock/e2e/harness").Output()
	if err != nil {
		return "", fmt.Errorf("the source of the harness cannot be found: %w", err)
	}
	return filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "kubectl"), nil
}

func isRelease132(path string) bool {
	out, err := exec.Command(path, "version", "--client", "-o", "json").Output()
	if err != nil {
		return false
	}
	var v struct {
		ClientVersion struct{ GitVersion string } `json:"clientVersion"`
	}
	return json.Unmarshal(out, &v) == nil && strings.HasPrefix(v.ClientVersion.GitVersion, "v1.32.")
}

// Kubectl runs kubectl as the server's administrator.
type Kubectl struct {
	t    testing.TB
	path string
	env  []string
}

// Kubectl makes a runner; its caches live in a folder of the test.
func (s *Server) Kubectl(t testing.TB) *Kubectl {
	t.Helper()
	path, err := KubectlBinary()
	if err != nil {
		t.Fatal(err)
	}
	return &Kubectl{t: t, path: path, env: append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HOME="+t.TempDir())}
}

// With returns a runner with more environment ("KUBE_EDITOR=...").
func (k *Kubectl) With(env ...string) *Kubectl {
	return &Kubectl{t: k.t, path: k.path, env: append(append([]string{}, k.env...), env...)}
}

// Try runs kubectl and returns what it printed, standard error behind standard output.
func (k *Kubectl) Try(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Env = k.env
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String() + errOut.String(), err
}

// Run is Try that ends the test on an error.
func (k *Kubectl) Run(args ...string) string {
	k.t.Helper()
	out, err := k.Try("", args...)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// Want runs kubectl and checks that each text is in the output.
func (k *Kubectl) Want(texts []string, args ...string) string {
	k.t.Helper()
	out := k.Run(args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			k.t.Errorf("kubectl %s: no %q in:\n%s", strings.Join(args, " "), text, out)
		}
	}
	return out
}

// Command prepares a kubectl that the test runs itself (get -w).
func (k *Kubectl) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Env = k.env
	return cmd
}
