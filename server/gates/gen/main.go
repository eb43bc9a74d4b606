// Command gen reads the feature gates of Kubernetes' releases and writes gates_table.go: each
// gate with its stage, default and lock from release to release, and the gates that it needs.
// Only facts are taken: names, stages, defaults, versions.
//
// Usage: gen directory. It downloads the modules of each release.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server/release/gen/generate"
)

// releases are the releases to read, the oldest first.
var releases = []struct {
	minor      int
	kubernetes string // version of k8s.io/kubernetes; that of other modules is the same with v0
}{
	{32, "v1.32.6"},
	{33, "v1.33.13"},
	{34, "v1.34.4"},
	{35, "v1.35.4"},
	{36, "v1.36.2"},
}

// files are the packages that define the gates of a kube-apiserver.
var files = []struct{ module, path string }{
	{"k8s.io/kubernetes", "pkg/features"},
	{"k8s.io/apiserver", "pkg/features"},
	{"k8s.io/apiextensions-apiserver", "pkg/features"},
	{"k8s.io/client-go", "features"},
	{"k8s.io/component-base", "logs/api/v1"},
	{"k8s.io/component-base", "metrics/features"},
	{"k8s.io/component-base", "zpages/features"},
	{"k8s.io/controller-manager", "pkg/features"},
}

// spec is a gate from a release on.
type spec struct {
	minor      int
	stage      string // "": the gate is gone
	on, locked bool
}

// gate is a gate over all releases.
type gate struct {
	history []spec
	needs   []string // gates that must be on, by the newest release
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	var sources []reader
	for _, r := range releases {
		read, err := readRelease(r.kubernetes)
		if err != nil {
			return err
		}
		sources = append(sources, read)
	}
	gates := map[string]*gate{}
	for i, source := range sources {
		for name := range source.specs {
			if gates[name] == nil {
				gates[name] = history(name, sources)
			}
		}
		if i < len(sources)-1 {
			continue
		}
		for name, needs := range source.needs {
			if gates[name] == nil {
				return fmt.Errorf("%s needs %v and is no gate", name, needs)
			}
			gates[name].needs = needs
		}
	}
	code, err := format.Source([]byte(table(gates)))
	if err != nil {
		return fmt.Errorf("formatting the table: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "gates_table.go"), code, 0o644)
}

// history returns a gate over all releases. Each release is described by its own sources, or, if these do not have the
// gate yet, by the newest ones.
func history(name string, sources []reader) *gate {
	g := &gate{}
	newest := sources[len(sources)-1].specs[name]
	for i, r := range releases {
		now := at(sources[i].specs[name], r.minor)
		if now.stage == "" && i > 0 {
			now = at(newest, r.minor)
		}
		now.minor = r.minor
		if n := len(g.history); n == 0 && now.stage == "" || n > 0 && now == (spec{r.minor, g.history[n-1].stage, g.history[n-1].on, g.history[n-1].locked}) {
			continue
		}
		g.history = append(g.history, now)
	}
	if len(g.history) == 0 {
		return nil
	}
	return g
}

// at returns the newest spec up to a release.
func at(specs []spec, minor int) (now spec) {
	for _, s := range specs {
		if s.minor <= minor {
			now = s
		}
	}
	return now
}

// readRelease reads the gates of one release.
func readRelease(kubernetes string) (reader, error) {
	read := reader{names: map[string]string{}, specs: map[string][]spec{}, needs: map[string][]string{}}
	for _, f := range files {
		version := kubernetes
		if f.module != "k8s.io/kubernetes" {
			version = "v0" + strings.TrimPrefix(version, "v1")
		}
		root, err := generate.Download(f.module, version)
		if err != nil {
			return read, err
		}
		if err := read.dir(filepath.Join(root, filepath.FromSlash(f.path))); err != nil {
			return read, fmt.Errorf("%s %s: %w", f.module, version, err)
		}
	}
	return read.named(), nil
}

// reader collects the gates of one release.
type reader struct {
	names map[string]string // constants, by their names in Go
	specs map[string][]spec // by the constants' names
	needs map[string][]string
}

// named replaces names of constants by names of gates.
func (r *reader) named() reader {
	name := func(constant string) string { return cmp.Or(r.names[constant], constant) }
	specs, needs := map[string][]spec{}, map[string][]string{}
	for constant, list := range r.specs {
		specs[name(constant)] = list
	}
	for constant, list := range r.needs {
		for _, need := range list {
			needs[name(constant)] = append(needs[name(constant)], name(need))
		}
	}
	return reader{specs: specs, needs: needs}
}

func (r *reader) dir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, r.visit)
	}
	return nil
}

func (r *reader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if len(n.Values) != 1 || last(n.Type) != "Feature" {
			return true
		}
		if text, ok := n.Values[0].(*ast.BasicLit); ok {
			r.names[n.Names[0].Name], _ = strconv.Unquote(text.Value)
		}
	case *ast.CompositeLit:
		m, ok := n.Type.(*ast.MapType)
		if !ok || last(m.Key) != "Feature" {
			return true
		}
		for _, e := range n.Elts {
			kv := e.(*ast.KeyValueExpr)
			key := last(kv.Key)
			value, ok := kv.Value.(*ast.CompositeLit)
			if !ok || key == "" {
				continue
			}
			switch last(m.Value) {
			case "VersionedSpecs":
				for _, e := range value.Elts {
					r.specs[key] = append(r.specs[key], specOf(e.(*ast.CompositeLit)))
				}
			case "FeatureSpec":
				r.specs[key] = []spec{specOf(value)}
			case "[]Feature":
				for _, e := range value.Elts {
					r.needs[key] = append(r.needs[key], last(e))
				}
			}
		}
		return false
	}
	return true
}

// last returns the name at the end of an expression; that of a list comes after [].
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.ArrayType:
		return "[]" + last(e.Elt)
	case *ast.CallExpr: // a conversion
		return last(e.Args[0])
	}
	return ""
}

func specOf(lit *ast.CompositeLit) (s spec) {
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		switch last(kv.Key) {
		case "Version":
			call := kv.Value.(*ast.CallExpr)
			if text := call.Args[len(call.Args)-1].(*ast.BasicLit); text.Kind == token.STRING {
				version, _ := strconv.Unquote(text.Value)
				_, minor, _ := strings.Cut(version, ".")
				s.minor, _ = strconv.Atoi(minor)
			} else {
				s.minor, _ = strconv.Atoi(text.Value)
			}
		case "Default":
			s.on = last(kv.Value) != "false" // or a constant, contextualLoggingDefault
		case "LockToDefault":
			s.locked = last(kv.Value) == "true"
		case "PreRelease":
			s.stage = last(kv.Value)
		}
	}
	return s
}

func table(gates map[string]*gate) string {
	var out strings.Builder
	out.WriteString("// Code generated by server/gates/gen. DO NOT EDIT.\n\npackage gates\n\n// known are the gates of a kube-apiserver, sorted by name.\nvar known = []row{\n")
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		g := gates[name]
		if g == nil {
			continue
		}
		var specs []string
		for _, s := range g.history {
			stage := cmp.Or(s.stage, "gone")
			specs = append(specs, fmt.Sprintf("{%d, %s, %t, %t}", s.minor, stage, s.on, s.locked))
		}
		needs := "nil"
		if g.needs != nil {
			slices.Sort(g.needs)
			needs = fmt.Sprintf("%#v", slices.Compact(g.needs))
		}
		fmt.Fprintf(&out, "\t{%q, []spec{%s}, %s},\n", name, strings.Join(specs, ", "), needs)
	}
	out.WriteString("}\n")
	return out.String()
}
