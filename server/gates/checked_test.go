package gates_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/release"
)

// leftOff are gates that the code checks and that a release removed while they were off, and what the server does there.
var leftOff = map[string]string{
	"UserNamespacesPodSecurityStandards": "the standards of 1.35 and later relax their checks themselves, older ones do not",
}

// TestCheckedGatesAreKnown: the table has each gate that the code checks, since an unknown gate is off without an error. A gate that a
// release removed is on there, or leftOff gives the reason. The gates with Switches are exactly those that the code checks,
// so that none of them escapes this test.
func TestCheckedGatesAreKnown(t *testing.T) {
	checked := checkedGates(t)
	switches := map[string]bool{}
	for _, v := range release.All() {
		g, has := gates.New(v), map[string]bool{}
		g.All(func(k gates.Gate, _ bool) {
			has[k.Name] = true
			switches[k.Name] = switches[k.Name] || k.Switches
		})
		for name := range checked {
			if _, known := switches[name]; known && !has[name] && !g.Enabled(name) && leftOff[name] == "" {
				t.Errorf("%s has lost the gate %s while it was off (%s)", v, name, checked[name])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(checked)) {
		if on, known := switches[name]; !known {
			t.Errorf("no release has the gate %s, so it is off (%s)", name, checked[name])
		} else if !on {
			t.Errorf("own.go lacks the gate %s (%s)", name, checked[name])
		}
	}
	for name, on := range switches {
		if on && checked[name] == "" {
			t.Errorf("own.go lists the gate %s, which no code checks", name)
		}
	}
	if len(checked) < 60 {
		t.Errorf("the code checks only %d gates", len(checked))
	}
}

var (
	checking = regexp.MustCompile(`^(on|gate|without|(?i:feature|enabled))$|^Gate$`)
	gateName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{3,}$`)
)

// checkedGates returns the gates that the code checks, and where: constants in calls of functions that report whether a gate is on, in
// fields of tables that are named gate, and in conditions of the policy.
func checkedGates(t *testing.T) map[string]string {
	checked, constants := map[string]string{}, map[string]string{}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, root := range []string{"../../server", "../../cmd", "../../authx"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && (d.Name() == "testdata" || path == "../../server/gates" || path == "../../server/servertest") {
				return fs.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			files = append(files, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
				for i, name := range v.Names {
					if text, ok := v.Values[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
						constants[f.Name.Name+"."+name.Name], _ = strconv.Unquote(text.Value)
					}
				}
			}
			return true
		})
	}
	for _, f := range files {
		note := func(x ast.Expr) {
			name := ""
			switch x := x.(type) {
			case *ast.BasicLit:
				name, _ = strconv.Unquote(x.Value)
			case *ast.Ident:
				name = constants[f.Name.Name+"."+x.Name]
			}
			if gateName.MatchString(name) {
				checked[name] = fset.Position(x.Pos()).String()
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if checking.MatchString(lastName(n.Fun)) {
					for _, arg := range n.Args {
						note(arg)
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Gate" || key.Name == "gate") {
					note(n.Value)
				}
			}
			return true
		})
	}
	for _, path := range []string{"../access/policy.json"} {
		text, err := os.ReadFile(path)
		var document any
		if err == nil {
			err = json.Unmarshal(text, &document)
		}
		if err != nil {
			t.Fatal(path, err)
		}
		gatesOf(document, func(name string) { checked[name] = path })
	}
	return checked
}

func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// gatesOf finds the gates in the conditions of a document.
func gatesOf(document any, found func(string)) {
	switch d := document.(type) {
	case []any:
		for _, v := range d {
			gatesOf(v, found)
		}
	case map[string]any:
		for key, v := range d {
			if text, ok := v.(string); ok && key == "gate" {
				for name := range strings.SplitSeq(text, ",") {
					found(strings.TrimPrefix(name, "!"))
				}
			}
			gatesOf(v, found)
		}
	}
}
