// Package suites runs test suites that others wrote for a control plane of envtest, from
// their own source and unchanged, with KUBEBUILDER_ASSETS alone: the folder that
// `rowlock envtest setup` makes. It is a module of its own so that nothing of theirs is
// asked for by rowlock's. `make long` runs it.
//
// With ROWLOCK_STOCK_ASSETS, a folder with kube-apiserver, etcd and kubectl of the same
// release, it runs each suite with those too, and reports the cost of both.
package suites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain builds rowlock where no binary is given.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("ROWLOCK_BINARY") != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "rowlock-long-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rowlock")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/rowlock")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building rowlock: %v\n%s", err, out)
		return 1
	}
	os.Setenv("ROWLOCK_BINARY", path)
	return m.Run()
}

// TestControllerRuntime: every package of controller-runtime whose tests start a control
// plane passes.
func TestControllerRuntime(t *testing.T) {
	runSuites(t, module{path: "sigs.k8s.io/controller-runtime", version: "v0.20.4", pattern: "./pkg/...", atLeast: 12})
}

// TestClusterAPI: a controller that migrates stored objects, and the managed fields of
// versions that a definition no longer has, passes. Releases with api/go.mod, such as v1.14, do not compile from their
// published module, which lacks that folder.
func TestClusterAPI(t *testing.T) {
	runSuites(t, module{path: "sigs.k8s.io/cluster-api", version: "v1.10.2", pattern: "./controllers/crdmigrator", atLeast: 1})
}

// TestLeaderWorkerSet: the suites of an operator with a kind, controllers and webhooks pass.
// Two cases are left out: one looks at once for what a controller does, the other writes
// what it has read, without trying again, while a controller does. They pass or fail by chance.
func TestLeaderWorkerSet(t *testing.T) {
	runSuites(t, module{
		path: "sigs.k8s.io/lws", version: "v0.9.0", pattern: "./test/integration/...", atLeast: 2,
		args: []string{"-ginkgo.skip=Pod restart will delete the pod group when restart policy is RecreateGroupOnPodRestart|Test default progressing state"},
	})
}

// runSuites compiles the suites of a module that start a control plane, and runs each with
// the programs that rowlock lays out.
func runSuites(t *testing.T, m module) {
	suites := m.compile(t)
	if len(suites) < m.atLeast {
		t.Fatalf("%d packages of %s start a control plane, and there were %d: the module is read wrongly", len(suites), m.path, m.atLeast)
	}
	assets := filepath.Join(t.TempDir(), "assets")
	if out, err := exec.Command(os.Getenv("ROWLOCK_BINARY"), "envtest", "setup", assets).CombinedOutput(); err != nil {
		t.Fatalf("envtest setup: %v\n%s", err, out)
	}
	ours, failed := runAll(t, suites, assets)
	if failed > 0 {
		t.Errorf("%d of %d suites of %s %s fail", failed, len(suites), m.path, m.version)
	}
	t.Logf("%s, %d suites with rowlock: %v", m.path, len(suites), ours)
	stock := os.Getenv("ROWLOCK_STOCK_ASSETS")
	if stock == "" {
		return
	}
	theirs, failed := runAll(t, suites, stock)
	t.Logf("%s, %d suites with %s: %v, %d fail", m.path, len(suites), stock, theirs, failed)
	t.Logf("ratio: %.2f of the time, %.2f of the processor, %.2f of the memory",
		ratio(ours.took, theirs.took), ratio(ours.processor, theirs.processor), ratio(ours.memory, theirs.memory))
}

// runAll runs suites one after another with one folder of programs.
func runAll(t *testing.T, suites []suite, assets string) (sum cost, failed int) {
	for _, s := range suites {
		took, out, err := s.run(assets)
		sum = sum.and(took)
		if err != nil {
			failed++
			t.Logf("%s with %s: %v\n%s", s.name, assets, err, tail(out))
			continue
		}
		t.Logf("%s with %s: %v", s.name, assets, took)
	}
	return sum, failed
}

// tail returns the end of a suite's output, which names the failures.
func tail(out []byte) []byte { return out[max(0, len(out)-20_000):] }
