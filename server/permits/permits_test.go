package permits_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/permits"
)

// allowed returns a permit as requests get theirs: "verb group/resource/subresource namespace name".
func allowed(t *testing.T, text string) permits.Permit {
	t.Helper()
	f := strings.Split(text, " ")
	what := strings.Split(f[1], "/")
	p, _, err := permits.Authorize(t.Context(), authx.AlwaysAllow{}, &authx.Attributes{
		User: &authx.Identity{Name: "u"}, ResourceRequest: true, Verb: f[0],
		APIGroup: what[0], Resource: what[1], Subresource: what[2], Namespace: f[2], Name: f[3],
	})
	if err != nil || !p.Valid() {
		t.Fatal(p, err)
	}
	return p
}

var effects = map[string]permits.Effect{
	"get": permits.Get, "list": permits.List, "watch": permits.Watch, "create": permits.Create,
	"update": permits.Update, "delete": permits.Delete, "discard": permits.Discard,
}

func covers(p permits.Permit, text string) bool {
	f := strings.Split(text, " ")
	what := strings.Split(f[1], "/")
	return p.Covers(effects[f[0]], &permits.Target{Group: what[0], Resource: what[1], Subresource: what[2], Namespace: f[2], Name: f[3]})
}

// TestCovers lists in full what each verb covers of a few targets: everything else
// is not covered.
func TestCovers(t *testing.T) {
	var targets []string
	for _, what := range []string{
		"/pods/", "/pods/status", "/pods/eviction", "/pods/exec", "/secrets/", "/nodes/", "/services/", "/endpoints/", "/serviceaccounts/", "/namespaces/",
		"policy/poddisruptionbudgets/", "policy/poddisruptionbudgets/status", "apps/pods/",
	} {
		for _, where := range []string{"a x", "a y", "a ", "b x", " x", " "} {
			targets = append(targets, what+" "+where)
		}
	}
	for _, c := range []struct {
		permit string
		want   []string
	}{
		{"get /pods/ a x", []string{"get /pods/ a x"}},
		{"get /pods/ a ", nil},
		{"get /pods/status a x", []string{"get /pods/status a x"}},
		{"list /pods/ a ", []string{"list /pods/ a x", "list /pods/ a y", "list /pods/ a "}},
		{"list /pods/ a x", []string{"list /pods/ a x"}},
		{"list /pods/  ", []string{"list /pods/ a x", "list /pods/ a y", "list /pods/ a ", "list /pods/ b x", "list /pods/  x", "list /pods/  "}},
		{"list /pods/  x", []string{"list /pods/ a x", "list /pods/ b x", "list /pods/  x"}},
		{"watch /pods/ a x", []string{"list /pods/ a x", "watch /pods/ a x"}},
		{"create /pods/ a ", []string{"create /pods/ a x", "create /pods/ a y", "create /pods/ a "}},
		{"create /pods/ a x", []string{"create /pods/ a x"}},
		{"create /pods/  ", []string{"create /pods/  x", "create /pods/  "}},
		{"update /pods/ a x", []string{"get /pods/ a x", "update /pods/ a x", "delete /pods/ a x"}},
		{"patch /pods/status a x", []string{"get /pods/status a x", "update /pods/status a x", "delete /pods/status a x"}},
		{"delete /pods/ a x", []string{"get /pods/ a x", "update /pods/ a x", "delete /pods/ a x"}},
		{"delete /pods/ a ", nil},
		{"deletecollection /nodes/  ", []string{
			"get /nodes/  x", "get /nodes/  ", "list /nodes/ a x", "list /nodes/ a y", "list /nodes/ a ", "list /nodes/ b x", "list /nodes/  x", "list /nodes/  ",
			"update /nodes/  x", "update /nodes/  ", "delete /nodes/  x", "delete /nodes/  ",
		}},
		{"deletecollection /pods/ a ", []string{
			"get /pods/ a x", "get /pods/ a y", "get /pods/ a ", "list /pods/ a x", "list /pods/ a y", "list /pods/ a ",
			"update /pods/ a x", "update /pods/ a y", "update /pods/ a ", "delete /pods/ a x", "delete /pods/ a y", "delete /pods/ a ",
		}},
		{"unsafe-delete-ignore-read-errors /pods/ a x", []string{"discard /pods/ a x"}},
		{"get /namespaces/ x x", []string{"get /namespaces/  x"}},
		{"create /pods/eviction a x", []string{
			"get /pods/ a x", "get policy/poddisruptionbudgets/status a x", "get policy/poddisruptionbudgets/status a y", "get policy/poddisruptionbudgets/status a ",
			"list policy/poddisruptionbudgets/ a x", "list policy/poddisruptionbudgets/ a y", "list policy/poddisruptionbudgets/ a ",
			"update /pods/ a x", "update policy/poddisruptionbudgets/status a x", "update policy/poddisruptionbudgets/status a y", "update policy/poddisruptionbudgets/status a ",
			"delete /pods/ a x",
		}},
		{"create /pods/binding a x", []string{"get /pods/ a x", "update /pods/ a x"}},
		{"create /bindings/ a ", []string{"get /pods/ a x", "get /pods/ a y", "get /pods/ a ", "update /pods/ a x", "update /pods/ a y", "update /pods/ a "}},
		{"get /pods/exec a x", []string{"get /pods/ a x", "get /nodes/  x", "get /nodes/  "}},
		{"create /services/proxy a https:x:web", []string{"get /pods/ a x", "get /pods/ a y", "get /pods/ a ", "get /services/ a x", "get /endpoints/ a x"}},
		{"get /nodes/proxy  x:10250", []string{"get /nodes/  x"}},
		{"create /serviceaccounts/token a x", []string{
			"get /pods/ a x", "get /pods/ a y", "get /pods/ a ", "get /secrets/ a x", "get /secrets/ a y", "get /secrets/ a ",
			"get /nodes/  x", "get /nodes/  ", "get /serviceaccounts/ a x",
		}},
		{"impersonate /users/  x", nil},
		{"escalate /pods/ a x", nil},
	} {
		p := allowed(t, c.permit)
		var got []string
		for _, e := range []string{"get", "list", "watch", "create", "update", "delete", "discard"} {
			for _, target := range targets {
				if covers(p, e+" "+target) {
					got = append(got, e+" "+target)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.permit, d)
		}
	}
}

// TestNothing: without an answer that allows it there is no permit, and the zero one
// covers nothing.
func TestNothing(t *testing.T) {
	for _, z := range []authx.Authorizer{authx.AlwaysDeny{}, answer{authx.Deny, nil}, answer{authx.NoOpinion, errors.New("no idea")}} {
		p, _, _ := permits.Authorize(t.Context(), z, &authx.Attributes{User: &authx.Identity{}, ResourceRequest: true, Verb: "get", Resource: "pods", Name: "x"})
		if p.Valid() || covers(p, "get /pods/  x") {
			t.Errorf("%v permits", z)
		}
	}
	path, _, _ := permits.Authorize(t.Context(), authx.AlwaysAllow{}, &authx.Attributes{Verb: "get", Path: "/", Resource: "pods", Name: "x"})
	if !path.Valid() || covers(path, "get /pods/  x") {
		t.Error("a path permits an object")
	}
}

type answer struct {
	decision authx.Decision
	err      error
}

func (a answer) Authorize(context.Context, *authx.Attributes) (authx.Decision, string, error) {
	return a.decision, "because", a.err
}

// TestNeed: the refusal is that of a request for that alone; an authorizer that fails is an
// internal error.
func TestNeed(t *testing.T) {
	a := &authx.Attributes{User: &authx.Identity{Name: "u"}, ResourceRequest: true, Verb: "create", APIGroup: "g", Resource: "things", Namespace: "a", Name: "x"}
	for _, c := range []struct {
		z       authx.Authorizer
		code    int32
		message string
	}{
		{nil, 403, `things.g "x" is forbidden: User "u" cannot create resource "things" in API group "g" in the namespace "a"`},
		{answer{}, 403, `things.g "x" is forbidden: User "u" cannot create resource "things" in API group "g" in the namespace "a": because`},
		{answer{err: errors.New("no idea")}, 500, `Internal error occurred: no idea`},
	} {
		p, err := permits.Need(t.Context(), c.z, a)
		var st apierrors.APIStatus
		if p.Valid() || !errors.As(err, &st) || st.Status().Code != c.code || st.Status().Message != c.message {
			t.Errorf("%v: %v %v", c.z, p, err)
		}
	}
	if p, err := permits.Need(t.Context(), answer{authx.Allow, errors.New("but")}, a); err != nil || !p.Valid() {
		t.Error(p, err)
	}
}

// TestOfServer lists all callers of OfServer: each must be reviewed for what it reveals to a client.
func TestOfServer(t *testing.T) {
	want := []string{
		`server/access/lookup.go: "authentication"`,
		`server/admission/plugins/reader.go: "admission"`,
		`server/admission/plugins/reader.go: "the life of namespaces"`,
		`server/controllers/migrations/migrations.go: "storage migrations"`,
		`server/objects/restore.go: "objects whose definition has changed"`,
		`server/writes/labels.go: "the labels of namespaces"`,
		`server/writes/orphan.go: "new objects whose namespace or definition is gone"`,
	}
	var got []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok && s.Sel.Name == "OfServer" {
				got = append(got, filepath.ToSlash(rel)+": "+argument(file, s))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("who calls OfServer (-want +got):\n%s", d)
	}
}

// argument returns the argument of a call; "" for a mention that is no call.
func argument(file *ast.File, fn ast.Expr) (text string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && call.Fun == fn && len(call.Args) == 1 {
			if lit, ok := call.Args[0].(*ast.BasicLit); ok {
				if _, err := strconv.Unquote(lit.Value); err == nil {
					text = lit.Value
				}
			}
		}
		return true
	})
	return text
}

// TestCoversAllocatesNothing: it is asked for each read.
func TestCoversAllocatesNothing(t *testing.T) {
	p := allowed(t, "get /pods/ a x")
	target := permits.Target{Resource: "pods", Namespace: "a", Name: "x"}
	if n := testing.AllocsPerRun(100, func() { _ = p.Check(permits.Get, &target) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
