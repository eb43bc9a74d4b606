package e2e

import (
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
)

// sourced is a package as `go list` knows it for a platform.
type sourced struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Standard        bool
}

// platform checks the types of programs for another system, in a tenth of the time that it
// takes to compile them. Only bodies of this module's functions are looked at.
type platform struct {
	goos, goarch string
	files        *token.FileSet
	done         map[string]*types.Package
	wrong        []error
}

// list returns the packages that a pattern needs, each behind those that it imports.
func (p *platform) list(patterns ...string) (list []sourced, err error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard"}, patterns...)...)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOOS="+p.goos, "GOARCH="+p.goarch, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one sourced
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
}

// parse reads the files of a package.
func (p *platform) parse(pkg *sourced) ([]*ast.File, error) {
	files := make([]*ast.File, len(pkg.GoFiles))
	errs := make([]error, len(files))
	var group sync.WaitGroup
	for i, name := range pkg.GoFiles {
		group.Go(func() {
			files[i], errs[i] = parser.ParseFile(p.files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		})
	}
	group.Wait()
	return files, errors.Join(errs...)
}

// check looks at one package, whose imports have been looked at.
func (p *platform) check(pkg *sourced) error {
	files, err := p.parse(pkg)
	if err != nil {
		return err
	}
	own := strings.HasPrefix(pkg.ImportPath, strings.TrimSuffix(module, "/"))
	cfg := types.Config{
		IgnoreFuncBodies: !own, FakeImportC: true, Sizes: types.SizesFor("gc", p.goarch),
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped := pkg.ImportMap[path]; mapped != "" {
				path = mapped
			}
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
	made, err := cfg.Check(pkg.ImportPath, p.files, files, nil)
	p.done[pkg.ImportPath] = made
	if own {
		return nil // the difference has been reported
	}
	return err
}

type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) { return i(path) }

// TestPlatforms: the code for other released systems has its counterparts for them. make release compiles it
// for all six.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"windows/amd64", "darwin/arm64"} {
		goos, goarch, _ := strings.Cut(target, "/")
		if goos == runtime.GOOS {
			continue
		}
		t.Run(goos, func(t *testing.T) {
			p := &platform{goos: goos, goarch: goarch, files: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe}}
			list, err := p.list("./cmd/...", "./server/...", "./sqlstore/...")
			if err != nil {
				t.Fatal(err)
			}
			if len(list) < 500 {
				t.Fatalf("only %d packages", len(list))
			}
			for i := range list {
				if list[i].ImportPath == "unsafe" {
					continue
				}
				if err := p.check(&list[i]); err != nil {
					t.Errorf("%s: %v", list[i].ImportPath, err)
				}
			}
			for _, err := range p.wrong {
				t.Error(err)
			}
		})
	}
}
