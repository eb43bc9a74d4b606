package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server/release/gen/generate"
)

// modules hold the API types, and where in them.
var modules = []struct{ path, below string }{
	{"k8s.io/api", ""},
	{"k8s.io/apimachinery", "pkg/apis/meta"},
	{"k8s.io/apimachinery", "pkg/runtime"},
	{"k8s.io/apimachinery", "pkg/version"},
	{"k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions"},
	{"k8s.io/kube-aggregator", "pkg/apis/apiregistration"},
}

// release is one minor release, with all of its types.
type release struct {
	minor int
	types map[string]typ    // by import path, a dot, and the name
	same  map[string]string // types that are aliases of those of another package
}

// typ is a struct, or a string with its constants.
type typ struct {
	members map[string]bool // JSON names of fields, or values of constants
	group   string
	cycle   *lifecycle // of a kind; nil: unknown
	kind    bool       // it has metadata
}

// lifecycle holds the results of the life-cycle methods of a kind.
type lifecycle struct {
	Introduced, Deprecated, Removed int
	Replacement                     string
}

// load reads the sources of one release.
func load(minor int, version string) (release, error) {
	r := release{minor: minor, types: map[string]typ{}, same: map[string]string{}}
	for _, m := range modules {
		dir, err := generate.Download(m.path, version)
		if err != nil {
			return r, err
		}
		err = filepath.WalkDir(filepath.Join(dir, m.below), func(p string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			below, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			if base := entry.Name(); base == "testdata" || strings.HasPrefix(base, "test") || base == "fuzzer" {
				return fs.SkipDir
			}
			return r.read(path.Join(m.path, filepath.ToSlash(below)), p)
		})
		if err != nil {
			return r, fmt.Errorf("%s %s: %w", m.path, version, err)
		}
	}
	r.copies()
	return r, nil
}

// read takes the types of one package.
func (r release) read(pkg, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	p := source{specs: map[string]ast.Expr{}, values: map[string]map[string]bool{}, cycles: map[string]*lifecycle{}}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "generated.pb.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.add(file)
	}
	for name, spec := range p.specs {
		t := typ{cycle: p.cycles[name], group: p.group}
		switch spec := p.resolve(spec).(type) {
		case *ast.StructType:
			if t.members, t.kind = fields(spec); t.members == nil {
				continue
			}
		case *ast.Ident:
			if spec.Name != "string" || p.values[name] == nil {
				continue
			}
			t.members = p.values[name]
		case *ast.SelectorExpr:
			r.same[pkg+"."+name] = spec.X.(*ast.Ident).Name + "." + spec.Sel.Name
			continue
		default:
			continue
		}
		r.types[pkg+"."+name] = t
	}
	return nil
}

// copies adds the types that are aliases of those of another package.
func (r release) copies() {
	for name, of := range r.same {
		if t, ok := r.types[of]; ok {
			r.types[name] = typ{members: t.members}
		}
	}
}

// source is one package.
type source struct {
	group  string
	specs  map[string]ast.Expr
	values map[string]map[string]bool
	cycles map[string]*lifecycle
}

func (p *source) add(file *ast.File) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		from, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(from)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = from
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && !spec.Assign.IsValid() {
						p.specs[spec.Name.Name] = spec.Type
						if of, ok := spec.Type.(*ast.SelectorExpr); ok {
							name := of.X.(*ast.Ident)
							name.Name = imports[name.Name]
						}
					}
				case *ast.ValueSpec:
					p.constants(spec)
				}
			}
		case *ast.FuncDecl:
			p.method(decl)
		}
	}
}

// constants takes the values of a string type, and the name of the group.
func (p *source) constants(spec *ast.ValueSpec) {
	if spec.Names[0].Name == "GroupName" {
		if text, ok := spec.Values[0].(*ast.BasicLit); ok {
			p.group, _ = strconv.Unquote(text.Value)
		}
		return
	}
	of, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range spec.Values {
		text, ok := value.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			continue
		}
		s, err := strconv.Unquote(text.Value)
		if err != nil {
			continue
		}
		if p.values[of.Name] == nil {
			p.values[of.Name] = map[string]bool{}
		}
		p.values[of.Name][s] = true
	}
}

// method reads a life-cycle method of a kind.
func (p *source) method(f *ast.FuncDecl) {
	what, ok := strings.CutPrefix(f.Name.Name, "APILifecycle")
	if !ok || f.Recv == nil {
		return
	}
	star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return
	}
	name := star.X.(*ast.Ident).Name
	if p.cycles[name] == nil {
		p.cycles[name] = &lifecycle{}
	}
	results := f.Body.List[0].(*ast.ReturnStmt).Results
	number := func(i int) int {
		n, _ := strconv.Atoi(results[i].(*ast.BasicLit).Value)
		return n
	}
	minor := func() int {
		if number(0) == 0 {
			return 0
		}
		return number(1)
	}
	switch what {
	case "Introduced":
		p.cycles[name].Introduced = minor()
	case "Deprecated":
		p.cycles[name].Deprecated = minor()
	case "Removed":
		p.cycles[name].Removed = minor()
	case "Replacement":
		var parts []string
		for _, e := range results[0].(*ast.CompositeLit).Elts {
			text, _ := strconv.Unquote(e.(*ast.KeyValueExpr).Value.(*ast.BasicLit).Value)
			parts = append(parts, text)
		}
		p.cycles[name].Replacement = strings.Join(parts, "/")
	}
}

// resolve follows a type that is another of its package.
func (p *source) resolve(spec ast.Expr) ast.Expr {
	for {
		name, ok := spec.(*ast.Ident)
		if !ok {
			return spec
		}
		next, ok := p.specs[name.Name]
		if !ok {
			return spec
		}
		spec = next
	}
}

// fields returns the JSON names of a struct's fields; nil if the struct is not part of the API. kind: it has
// metadata.
func fields(s *ast.StructType) (names map[string]bool, kind bool) {
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		text, ok := reflect.StructTag(tag).Lookup("json")
		if !ok {
			continue
		}
		if names == nil {
			names = map[string]bool{}
		}
		name, _, _ := strings.Cut(text, ",")
		if sel, ok := f.Type.(*ast.SelectorExpr); ok && name == "" && sel.Sel.Name == "TypeMeta" {
			kind = true
		}
		if name != "" && name != "-" {
			names[name] = true
		}
	}
	return names, kind
}
