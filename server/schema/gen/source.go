package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server/removed"
)

// source is the parsed packages.
type source struct {
	types map[string]*typeDecl // "k8s.io/api/core/v1.Pod"
	names []string             // of types, sorted

	consts map[string]string     // string constants of all packages: "k8s.io/api/core/v1.IPv4Protocol"
	values map[string][]constant // of types, by their names
}

// constant is a value of a type: its text, or the constant that it takes it from.
type constant struct{ text, from string }

type typeDecl struct {
	pkg       *pkg
	name      string
	expr      ast.Expr
	alias     bool // another name of the same type
	described bool
	markers   markers
	enum      []string // its values, sorted
}

type pkg struct {
	path   string
	consts map[string]string // string constants by name, for defaults that refer to them
}

// scope resolves the identifiers of one file.
type scope struct {
	pkg     *pkg
	imports map[string]string
}

// fieldDecl is one JSON field of a struct.
type fieldDecl struct {
	name      string
	goName    string
	inline    bool
	omitEmpty bool
	expr      ast.Expr
	scope     *scope
	described bool
	markers   markers
	tag       reflect.StructTag
}

// markers are the "+name=value" lines of a comment.
type markers map[string][]string

func (m markers) get(name string) string {
	if v := m[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (m markers) has(name string) bool { return len(m[name]) > 0 }

type structDecl struct {
	*ast.StructType
	scope *scope
}

func load(version string, paths []string) (*source, error) {
	out, err := list(version, paths)
	if err != nil {
		return nil, err
	}
	s := &source{types: map[string]*typeDecl{}, consts: map[string]string{}, values: map[string][]constant{}}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var listed struct {
			Dir, ImportPath string
			GoFiles         []string
		}
		if err := dec.Decode(&listed); err != nil {
			return nil, err
		}
		if err := s.parse(listed.Dir, removed.PackagePath(listed.ImportPath), listed.GoFiles); err != nil {
			return nil, err
		}
	}
	for name, t := range s.types {
		if t.markers.has("enum") {
			t.enum = s.enumeration(name)
		}
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	return s, nil
}

// list describes packages: our own, and those of a version of the modules.
func list(version string, paths []string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "gen")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mod := "module gen\n\ngo 1.26\n\n"
	for _, m := range []string{"api", "apiextensions-apiserver", "apimachinery", "kube-aggregator"} {
		mod += "require k8s.io/" + m + " " + version + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
		return nil, err
	}
	var own, others []string
	for _, p := range paths {
		if removed.PackagePath(p) != p {
			own = append(own, p)
		} else {
			others = append(others, p)
		}
	}
	var all []byte
	for in, some := range map[string][]string{"": own, dir: others} {
		args := []string{"list", "-json=Dir,ImportPath,GoFiles"}
		if in != "" {
			args = append(args, "-mod=mod")
		}
		cmd := exec.Command("go", append(args, some...)...)
		cmd.Dir = in
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("listing packages: %w", err)
		}
		all = append(all, out...)
	}
	return all, nil
}

func (s *source) parse(dir, importPath string, files []string) error {
	p := &pkg{path: importPath, consts: map[string]string{}}
	for _, name := range files {
		if strings.HasPrefix(name, "zz_generated") || name == "generated.pb.go" || strings.HasSuffix(name, "swagger_doc_generated.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		sc := &scope{pkg: p, imports: map[string]string{}}
		for _, im := range f.Imports {
			target, _ := strconv.Unquote(im.Path.Value)
			alias := path.Base(target)
			if im.Name != nil {
				alias = im.Name.Name
			}
			sc.imports[alias] = target
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.declare(sc, g)
			}
		}
	}
	return nil
}

// enumeration returns the values of a type, sorted.
func (s *source) enumeration(name string) []string {
	var values []string
	for _, c := range s.values[name] {
		if c.from != "" {
			c.text = s.consts[c.from]
		}
		values = append(values, c.text)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

func (s *source) declare(sc *scope, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			group := spec.Doc
			if group == nil {
				group = g.Doc
			}
			t := &typeDecl{pkg: sc.pkg, name: spec.Name.Name, expr: spec.Type, alias: spec.Assign.IsValid()}
			t.described, t.markers = comment(group)
			if st, ok := spec.Type.(*ast.StructType); ok {
				t.expr = &structExpr{structDecl{st, sc}}
			} else {
				t.expr = &scopedExpr{spec.Type, sc}
			}
			s.types[sc.pkg.path+"."+t.name] = t
		case *ast.ValueSpec:
			if g.Tok != token.CONST || len(spec.Values) != 1 {
				continue
			}
			typ, value := spec.Type, spec.Values[0]
			if call, ok := value.(*ast.CallExpr); ok && typ == nil && len(call.Args) == 1 { // a conversion names the type
				typ, value = call.Fun, call.Args[0]
			}
			var c constant
			switch value := value.(type) {
			case *ast.BasicLit:
				if value.Kind != token.STRING {
					continue
				}
				c.text, _ = strconv.Unquote(value.Value)
				sc.pkg.consts[spec.Names[0].Name] = c.text
				s.consts[sc.pkg.path+"."+spec.Names[0].Name] = c.text
			case *ast.SelectorExpr:
				other, _ := value.X.(*ast.Ident)
				if other == nil || sc.imports[other.Name] == "" {
					continue
				}
				c.from = sc.imports[other.Name] + "." + value.Sel.Name
			default:
				continue
			}
			if typ, ok := typ.(*ast.Ident); ok {
				full := sc.pkg.path + "." + typ.Name
				s.values[full] = append(s.values[full], c)
			}
		}
	}
}

// structExpr and scopedExpr carry the file's scope along with an expression.
type structExpr struct{ structDecl }

type scopedExpr struct {
	ast.Expr
	scope *scope
}

// fields lists the JSON fields of a struct, those of inlined structs in place.
func (s *source) fields(t *structExpr) []fieldDecl {
	var out []fieldDecl
	for _, f := range t.Fields.List {
		if f.Tag == nil {
			continue
		}
		raw, _ := strconv.Unquote(f.Tag.Value)
		tag := reflect.StructTag(raw)
		text, tagged := tag.Lookup("json")
		name, options, _ := strings.Cut(text, ",")
		if !tagged || name == "-" {
			continue
		}
		if len(f.Names) > 0 && !f.Names[0].IsExported() {
			continue
		}
		d := fieldDecl{
			name: name, expr: f.Type, scope: t.scope, tag: tag,
			omitEmpty: strings.Contains(options, "omitempty"),
			inline:    name == "" && len(f.Names) == 0,
		}
		if len(f.Names) > 0 {
			d.goName = f.Names[0].Name
		}
		d.described, d.markers = comment(f.Doc)
		if d.inline {
			if inner, ok := s.resolve(d.expr, d.scope); ok {
				if st, ok := s.structOf(inner); ok {
					out = append(out, s.fields(st)...)
				}
			}
			continue
		}
		out = append(out, d)
	}
	return out
}

// resolve finds the declaration that a type expression names.
func (s *source) resolve(e ast.Expr, sc *scope) (*typeDecl, bool) {
	full := qualified(e, sc)
	t, ok := s.types[full]
	return t, ok
}

// structOf returns the struct that a type is, by its own declaration or as another name of one.
func (s *source) structOf(t *typeDecl) (*structExpr, bool) {
	switch inner := t.expr.(type) {
	case *structExpr:
		return inner, true
	case *scopedExpr:
		if other, ok := s.resolve(inner.Expr, inner.scope); ok && other != t {
			return s.structOf(other)
		}
	}
	return nil, false
}

func qualified(e ast.Expr, sc *scope) string {
	switch e := e.(type) {
	case *ast.Ident:
		return sc.pkg.path + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return sc.imports[x.Name] + "." + e.Sel.Name
		}
	}
	return ""
}

// comment reports whether a comment holds text for users, and which markers it has.
func comment(g *ast.CommentGroup) (described bool, m markers) {
	m = markers{}
	if g == nil {
		return false, m
	}
	hidden := false // text after a "---" line is for developers
	for _, line := range strings.Split(rawText(g), "\n") {
		line = strings.TrimSpace(line)
		if line == "---" {
			hidden = true
		}
		if mark, ok := strings.CutPrefix(line, "+"); ok {
			name, value, _ := strings.Cut(mark, "=")
			m[name] = append(m[name], value)
			continue
		}
		// Authors' notes to themselves are not for users.
		if !hidden && line != "" && !strings.HasPrefix(line, "TODO") {
			described = true
		}
	}
	return described, m
}

// rawText returns the comment without its slashes; ast's Text drops directive lines.
func rawText(g *ast.CommentGroup) string {
	var lines []string
	for _, c := range g.List {
		if text, ok := strings.CutPrefix(c.Text, "//"); ok {
			lines = append(lines, strings.TrimPrefix(text, " "))
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
		for _, line := range strings.Split(text, "\n") {
			lines = append(lines, strings.TrimPrefix(line, " "))
		}
	}
	return strings.Join(lines, "\n")
}
