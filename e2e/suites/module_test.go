package suites

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module is one whose suites are run.
type module struct {
	path, version string
	pattern       string   // of packages
	atLeast       int      // so many of them start a control plane
	args          []string // of each compiled test
}

// suite is the compiled tests of one package.
type suite struct {
	name, dir, binary string
	args              []string
}

// planes are the packages by which tests start control planes.
var planes = []string{"sigs.k8s.io/controller-runtime/pkg/envtest", "sigs.k8s.io/controller-runtime/pkg/internal/testing/controlplane"}

// compile downloads the module, copies it to where its tests may write, and compiles the
// tests of packages that start a control plane.
func (m module) compile(t *testing.T) []suite {
	out := m.tool(t, t.TempDir(), "mod", "download", "-json", m.path+"@"+m.version)
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil || downloaded.Dir == "" {
		t.Fatalf("download of %s: %v\n%s", m.path, err, out)
	}
	source := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(source, os.DirFS(downloaded.Dir)); err != nil {
		t.Fatal(err)
	}
	// Modules lose the bit that makes a script run.
	err := filepath.WalkDir(source, func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".sh" {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list := m.tool(t, source, "list", "-f", `{{.ImportPath}} {{.Dir}} {{join .TestImports ","}},{{join .XTestImports ","}}`, m.pattern)
	binaries := t.TempDir()
	var suites []suite
	for line := range strings.Lines(string(list)) {
		parts := strings.Fields(line)
		if len(parts) != 3 || !startsPlane(parts[0], strings.Split(parts[2], ",")) {
			continue
		}
		s := suite{name: parts[0], dir: parts[1], binary: filepath.Join(binaries, strings.ReplaceAll(parts[0], "/", "_")+".test"), args: m.args}
		// Some find their files by the path of their own source.
		m.tool(t, source, "test", "-c", "-trimpath=false", "-o", s.binary, s.name)
		suites = append(suites, s)
	}
	return suites
}

// startsPlane reports whether tests of a package, by what they import, start a control plane.
func startsPlane(path string, imports []string) bool {
	for _, plane := range planes {
		if path == plane {
			return true
		}
		for _, i := range imports {
			if i == plane {
				return true
			}
		}
	}
	return false
}

// tool runs go in a folder, without the workspace and flags of the caller.
func (m module) tool(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// run runs the tests with a folder of programs, and returns their cost.
func (s suite) run(assets string) (cost, []byte, error) {
	cmd := exec.Command(s.binary, append([]string{"-test.timeout=15m"}, s.args...)...)
	cmd.Dir = s.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBEBUILDER_") && !strings.HasPrefix(v, "TEST_ASSET_") && !strings.HasPrefix(v, "ROWLOCK_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "KUBEBUILDER_ASSETS="+assets)
	watched := watch(assets)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := cost{took: time.Since(began).Seconds()}
	took.memory, took.processor = watched.end()
	return took, out, err
}
