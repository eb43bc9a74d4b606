package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// sourced is a package as `go list` knows it for a platform.
type sourced struct {
	ImportPath, Dir  string
	GoFiles, Imports []string
	ImportMap        map[string]string
}

// imports returns the paths of the packages that p imports.
func (p *sourced) imports() []string {
	paths := make([]string, 0, len(p.Imports))
	for _, path := range p.Imports {
		paths = append(paths, cmp.Or(p.ImportMap[path], path))
	}
	return paths
}

// platform is another system, with the packages that programs need there, as far as their types are checked.
type platform struct {
	goos, goarch string
	packages     map[string]*sourced
	done         map[string]*types.Package
	wrong        []error
}

// list finds the packages that patterns need.
func (p *platform) list(patterns ...string) error {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap"}, patterns...)...)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOOS="+p.goos, "GOARCH="+p.goarch, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.String())
	}
	p.packages = map[string]*sourced{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one sourced
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		p.packages[one.ImportPath] = &one
	}
}

// check checks one package, whose imports have been checked.
func (p *platform) check(pkg *sourced, files *token.FileSet, parsed map[string]*ast.File) error {
	own := strings.HasPrefix(pkg.ImportPath, strings.TrimSuffix(module, "/"))
	cfg := types.Config{
		IgnoreFuncBodies: !own, FakeImportC: true, Sizes: types.SizesFor("gc", p.goarch),
		Importer: importer(func(path string) (*types.Package, error) {
			path = cmp.Or(pkg.ImportMap[path], path)
			if found := p.done[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("%s is not there", path)
		}),
		Error: func(err error) {
			if own {
				p.wrong = append(p.wrong, err)
			}
		},
	}
	var list []*ast.File
	for _, name := range pkg.GoFiles {
		list = append(list, parsed[filepath.Join(pkg.Dir, name)])
	}
	made, err := cfg.Check(pkg.ImportPath, files, list, nil)
	p.done[pkg.ImportPath] = made
	if own {
		return nil // the difference has been reported
	}
	return err
}

// platforms checks the types of programs for several systems, in a tenth of the time that it takes to compile them. It
// parses each file once. Only bodies of this module's functions are checked.
type platforms struct {
	all     []*platform
	files   *token.FileSet
	visited map[string]bool
}

// visit checks a package on the platforms that need it, after the packages that it imports on any.
func (v *platforms) visit(path string) error {
	if v.visited[path] || path == "unsafe" {
		return nil
	}
	v.visited[path] = true
	names := map[string]bool{}
	for _, p := range v.all {
		pkg := p.packages[path]
		if pkg == nil {
			continue
		}
		for _, imported := range pkg.imports() {
			if err := v.visit(imported); err != nil {
				return err
			}
		}
		for _, name := range pkg.GoFiles {
			names[filepath.Join(pkg.Dir, name)] = true
		}
	}
	parsed, err := v.parse(names)
	if err != nil {
		return err
	}
	for _, p := range v.all {
		if pkg := p.packages[path]; pkg != nil {
			if err := p.check(pkg, v.files, parsed); err != nil {
				return fmt.Errorf("%s on %s: %w", path, p.goos, err)
			}
		}
	}
	return nil
}

// parse reads files.
func (v *platforms) parse(names map[string]bool) (map[string]*ast.File, error) {
	var group errgroup.Group
	var mu sync.Mutex
	parsed := map[string]*ast.File{}
	for name := range names {
		group.Go(func() error {
			file, err := parser.ParseFile(v.files, name, nil, parser.SkipObjectResolution)
			mu.Lock()
			defer mu.Unlock()
			parsed[name] = file
			return err
		})
	}
	return parsed, group.Wait()
}

type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) { return i(path) }

// TestPlatforms: the code for other released systems has its counterparts for them. make release compiles it
// for all six.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	v := &platforms{files: token.NewFileSet(), visited: map[string]bool{}}
	for _, target := range []string{"windows/amd64", "darwin/arm64"} {
		goos, goarch, _ := strings.Cut(target, "/")
		if goos == runtime.GOOS {
			continue
		}
		p := &platform{goos: goos, goarch: goarch, done: map[string]*types.Package{"unsafe": types.Unsafe}}
		if err := p.list("./cmd/...", "./server/...", "./sqlstore/..."); err != nil {
			t.Fatalf("%s: %v", goos, err)
		}
		if len(p.packages) < 500 {
			t.Fatalf("%s: only %d packages", goos, len(p.packages))
		}
		v.all = append(v.all, p)
	}
	for _, p := range v.all {
		for path := range p.packages {
			if err := v.visit(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range v.all {
		for _, err := range p.wrong {
			t.Errorf("%s: %v", p.goos, err)
		}
	}
}
