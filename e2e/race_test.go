package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// raced is a line of race.txt.
type raced struct {
	detected bool // tested with the race detector
	reason   string
}

// readRaced reads race.txt: "race PACKAGE" or "plain PACKAGE: reason".
func readRaced(t *testing.T, text string) map[string]raced {
	t.Helper()
	listed := map[string]raced{}
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		how, rest, _ := strings.Cut(line, " ")
		path, reason, _ := strings.Cut(rest, ": ")
		if how != "race" && how != "plain" || path == "" || how == "plain" && reason == "" {
			t.Errorf("race.txt:%d: %q is neither \"race PACKAGE\" nor \"plain PACKAGE: reason\"", n+1, line)
		}
		if _, twice := listed[path]; twice {
			t.Errorf("race.txt:%d: %s is there twice", n+1, path)
		}
		listed[path] = raced{how == "race", reason}
	}
	return listed
}

// TestRaceDetector: race.txt lists each package whose own code starts goroutines or guards state that
// they share, and whether its tests run with the race detector.
func TestRaceDetector(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("race.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := readRaced(t, string(text))
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{.Dir}} {{len .TestGoFiles}} {{len .XTestGoFiles}}{{range .GoFiles}} {{.}}{{end}}`, "./...")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		path, dir, tested, files := strings.TrimPrefix(words[0], module), words[1], words[2] != "0" || words[3] != "0", words[4:]
		known[path] = true
		if _, ok := listed[path]; ok && !tested {
			t.Errorf("race.txt has %s, which has no tests", path)
		}
		if _, ok := listed[path]; ok || !tested {
			continue
		}
		for _, file := range files {
			if what := shares(t, filepath.Join(dir, file), nil); what != "" {
				t.Errorf("%s: %s %s: race.txt does not say whether the tests of the package run with the race detector", path, file, what)
				break
			}
		}
	}
	for path := range listed {
		if !known[path] {
			t.Errorf("race.txt has %s, which is not there", path)
		}
	}
	if len(known) < 100 {
		t.Errorf("only %d packages were looked at", len(known))
	}
}

// TestWithoutRaceDetector: each test of a package in race.txt that test.sh skips there is in a package that it tests again without
// the race detector.
func TestWithoutRaceDetector(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("test.sh")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^steps='(.+)'$`).FindSubmatch(script)
	again := regexp.MustCompile(`(?m) -run "\$steps" (.+)$`).FindSubmatch(script)
	if steps == nil || again == nil {
		t.Fatal("test.sh does not say which tests run without the race detector, or in which packages")
	}
	skipped, packages := regexp.MustCompile(string(steps[1])), strings.Fields(string(again[1]))
	text, err := os.ReadFile("race.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for path, how := range readRaced(t, string(text)) {
		if !how.detected {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", path, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && skipped.MatchString(f.Name.Name) {
					found["./"+path] = true
					if !slices.Contains(packages, "./"+path) {
						t.Errorf("test.sh does not run %s of %s", f.Name.Name, path)
					}
				}
			}
		}
	}
	for _, path := range packages {
		if !found[path] {
			t.Errorf("test.sh skips no test of %s", path)
		}
	}
}

// concurrent are packages that are for code of several goroutines.
var concurrent = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight"}

// shares returns what in a file is for several goroutines; empty: nothing.
func shares(t *testing.T, name string, src any) (what string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil && slices.Contains(concurrent, path) {
			return "imports " + path
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "starts a goroutine"
		case *ast.SelectorExpr:
			if n.Sel.Name == "AfterFunc" {
				what = "calls AfterFunc"
			}
		}
		return what == ""
	})
	return what
}

// TestSharing finds packages that start goroutines or guard shared state, and no others.
func TestSharing(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`package p; func f() { go f() }`:                                       "starts a goroutine",
		`package p; import "sync"; var mu sync.Mutex`:                          "imports sync",
		`package p; import s "sync/atomic"; var n s.Int64`:                     "imports sync/atomic",
		`package p; import "time"; func f() { time.AfterFunc(1, f) }`:          "calls AfterFunc",
		`package p; import "golang.org/x/sync/errgroup"; var g errgroup.Group`: "imports golang.org/x/sync/errgroup",
		`package p; import "time"; func f() { time.Sleep(1) }`:                 "",
	} {
		if got := shares(t, "p.go", src); got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}
