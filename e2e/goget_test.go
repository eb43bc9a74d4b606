package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostModules limits the modules that a program which imports server/embed depends on, itself and
// this module included. A new dependency must be worth its cost.
const mostModules = 77

// TestGoGet: an empty module requires this one as users do. It uses only the two go.mod files,
// and downloads no more than it needs. e2e/goget.sh, one of the long tests, also builds and tests
// it.
func TestGoGet(t *testing.T) {
	t.Parallel()
	const version = "v0.99.0"
	dir := t.TempDir()
	modules := output(t, ".", nil, "go", "env", "GOMODCACHE")
	run := exec.Command("go", "run", "./e2e/modproxy", filepath.Join(dir, "proxy"), version)
	run.Dir = ".."
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(dir, "importer"), 0o755); err != nil {
		t.Fatal(err)
	}
	fetchReplaced(t)
	// The importer uses the downloaded modules of this module, but not this module itself.
	for _, of := range []string{"", "cache/download"} {
		linkAll(t, filepath.Join(modules, of), filepath.Join(dir, "modules", of), "github.com", "cache")
		linkAll(t, filepath.Join(modules, of, "github.com"), filepath.Join(dir, "modules", of, "github.com"), "rowlock")
	}
	env := []string{
		"GOPROXY=file://" + filepath.ToSlash(filepath.Join(dir, "proxy")) + ",file://" + filepath.ToSlash(filepath.Join(modules, "cache", "download")),
		"GOMODCACHE=" + filepath.Join(dir, "modules"), "GOFLAGS=-modcacherw -mod=mod", "GONOSUMDB=*", "GOSUMDB=off", "GOWORK=off",
	}
	at := filepath.Join(dir, "importer")
	// `go get` finally records this module and its requirements. To find that out
	// it requests versions that other modules once required, which are not in the cache.
	ours, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(ours), "\n\n")
	requires, _, _ = strings.Cut(requires, "\nreplace ") // replace directives apply only to the main module
	mod := "module importer.example\n\n" + requires + "\nrequire github.com/rowlock/rowlock " + version + "\n"
	if err := os.WriteFile(filepath.Join(at, "go.mod"), []byte(mod), 0o600); err != nil {
		t.Fatal(err)
	}
	program := "package main\n\nimport _ \"github.com/rowlock/rowlock/server/embed\"\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(at, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	var packages, list []string
	for line := range strings.Lines(output(t, at, env, "go", "list", "-deps", "-f", "{{.ImportPath}}{{with .Module}} {{.Path}}{{end}}", ".")) {
		words := strings.Fields(line)
		packages, list = append(packages, words[0]), append(list, words[1:]...)
	}
	if !slices.Contains(packages, "github.com/rowlock/rowlock/server/embed") {
		t.Errorf("it is not among %d packages", len(packages))
	}
	for _, p := range packages {
		for _, not := range []string{
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/dynamic", "k8s.io/client-go/tools/cache", "k8s.io/kubectl",
			"go.opentelemetry.io/otel/exporters", "google.golang.org/grpc", "github.com/jackc/pgx", "modernc.org/sqlite", "testing", "github.com/rowlock/rowlock/server/rowlocktest", "github.com/rowlock/rowlock/sqlstore/storetest",
		} {
			if under(p, not) {
				t.Errorf("an importer of server/embed compiles %s", p)
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > mostModules || len(list) < 10 {
		t.Errorf("%d modules come along: %s", len(list), list)
	}
	t.Logf("%d modules, %d packages", len(list), len(packages))
}

// fetchReplaced downloads the modules that other modules require and this one replaces, with their
// requirements: builds of this module do not download them.
func fetchReplaced(t *testing.T) {
	t.Helper()
	ours, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	requires, _, _ := strings.Cut(string(ours), "\nreplace ") // replace directives apply only to the main module
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(requires), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without versions: minimal version selection chooses them from the requirements of all modules.
	output(t, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off", "GONOSUMDB=*", "GOSUMDB=off"},
		"go", "mod", "download", "github.com/json-iterator/go", "github.com/modern-go/concurrent", "github.com/modern-go/reflect2")
}

// linkAll makes a folder with links to what another has, but for some names.
func linkAll(t *testing.T, from, to string, but ...string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains(but, e.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// output returns the output of a command; a failure ends the test.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
