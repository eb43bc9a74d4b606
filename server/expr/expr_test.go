package expr_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// input returns a write of a small object.
func input() *expr.Input {
	object := map[string]any{"kind": "X", "n": int64(3), "list": []any{"a", "b"}, "spec": map[string]any{"f": 1.5, "on": true}, "q": "1500m"}
	return &expr.Input{
		Object:    func() (any, error) { return object, nil },
		OldObject: func() (any, error) { return nil, errors.New("no such version") },
		Request:   func() (any, error) { return map[string]any{"operation": "CREATE", "name": "x"}, nil },
	}
}

func TestEvaluate(t *testing.T) {
	composer := expr.NewComposer(release.Default)
	offer := expr.Offer{Params: true, Authorizer: true}
	composer.Declare("twice", expr.Source{Text: "object.n * 2", Offer: offer})
	composer.Declare("bad", expr.Source{Text: "object.no.such", Offer: offer})
	composer.Declare("worse", expr.Source{Text: "nope(", Offer: offer})
	for text, want := range map[string]string{
		"object.n == 3 && object.spec.on && object.spec.f > 1": "true",
		"params == null && namespaceObject == null":            "true",
		"oldObject == null":    "expression 'oldObject == null' resulted in error: failed to prepare oldObject variable for evaluation: no such version",
		"variables.twice == 6": "true",
		"variables.bad == 1":   `composited variable "bad" fails to evaluate: no such key: no`,
		"variables.worse == 1": `composited variable "worse" fails to compile`,
		"request.operation == 'CREATE' && !has(request.namespace)":                              "true",
		"quantity(object.q).isGreaterThan(quantity('1')) && quantity(object.q).sign() == 1":     "true",
		"object.list.join('') == 'ab' && object.list.indexOf('b') == 1":                         "true",
		"ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.0.0.1')":             "true",
		"format.named('dns1123Label').value().validate('a-b') == optional.none()":               "true",
		"url('https://x/y').getHost() == 'x' && 'ab12'.find('[0-9]+') == '12'":                  "true",
		"authorizer.group('').resource('pods').namespace('ns').check('get').allowed()":          "true",
		"authorizer.requestResource.check('put').allowed()":                                     "false",
		"authorizer.group('').resource('pods').fieldSelector('a=b').check('list').reason()==''": "false",
		"1 +": "compilation error: compilation failed: ERROR",
		"'x'": "compilation error: must evaluate to bool but got string",
		"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e >= 0)))))": "cost",
	} {
		in := input()
		in.Authorizer = expr.NewAuthorizer(t.Context(), answers{}, &authx.Identity{Name: "u"}, expr.Target{})
		p := composer.Compile(expr.Source{Text: text, Offer: offer, Gives: expr.Bool})
		r, err := expr.Evaluate(t.Context(), in, composer, true, expr.Budget).Run(p)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case r.Err != nil:
			got = r.Err.Error()
		default:
			got = map[bool]string{true: "true", false: "false"}[r.Value == types.True]
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// answers allow to get.
type answers struct{}

func (answers) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if a.Verb == "get" {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "you may not", nil
}

// members allows what the members of a group do.
type members string

func (m members) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if slices.Contains(a.User.Groups, string(m)) {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "", nil
}

// TestUsersOfOneName: the request's user may have the name of a service account that an expression asks about, and other groups. The
// answer about one is not that about the other.
func TestUsersOfOneName(t *testing.T) {
	const check = ".group('').resource('pods').check('get').allowed()"
	for _, text := range []string{
		"authorizer" + check + " && !authorizer.serviceAccount('ns', 'sa')" + check,
		"!authorizer.serviceAccount('ns', 'sa')" + check + " && authorizer" + check,
	} {
		in := input()
		in.Authorizer = expr.NewAuthorizer(t.Context(), members("extra"), &authx.Identity{Name: "system:serviceaccount:ns:sa", Groups: []string{"extra"}}, expr.Target{})
		offer := expr.Offer{Authorizer: true}
		p := expr.NewCompiler(release.Default).Compile(expr.Source{Text: text, Offer: offer, Gives: expr.Bool})
		r, err := expr.Evaluate(t.Context(), in, nil, true, expr.Budget).Run(p)
		if err != nil || r.Err != nil || r.Value != types.True {
			t.Errorf("%s: %v, %v, %v", text, r.Value, r.Err, err)
		}
	}
}

// ofField allows lists that are limited to a value of the field f.
type ofField string

func (v ofField) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	for _, r := range a.FieldRequirements {
		if r.Field == "f" && r.Value == string(v) {
			return authx.Allow, "", nil
		}
	}
	return authx.NoOpinion, "", nil
}

// TestSelectorsThatPrintAlike: the decision about one selector is not that about another one, even if both are the same text once they
// are printed without quotes.
func TestSelectorsThatPrintAlike(t *testing.T) {
	const check = "authorizer.group('').resource('pods').fieldSelector(%).check('list').allowed()"
	may := func(selector string) string { return strings.Replace(check, "%", "'"+selector+"'", 1) }
	for _, pair := range [][2]string{
		{"f=a,g=b", `f=a} {\\= g b`},
		{"f=a b", "f a=b"},
	} {
		for _, text := range []string{may(pair[0]) + " && !" + may(pair[1]), "!" + may(pair[1]) + " && " + may(pair[0])} {
			allowed := ofField(strings.TrimPrefix(strings.Split(pair[0], ",")[0], "f="))
			in := input()
			in.Authorizer = expr.NewAuthorizer(t.Context(), allowed, &authx.Identity{Name: "u"}, expr.Target{})
			p := expr.NewCompiler(release.Default).Compile(expr.Source{Text: text, Offer: expr.Offer{Authorizer: true}, Gives: expr.Bool})
			r, err := expr.Evaluate(t.Context(), in, nil, true, expr.Budget).Run(p)
			if err != nil || r.Err != nil || r.Value != types.True {
				t.Errorf("%s: %v, %v, %v", text, r.Value, r.Err, err)
			}
		}
	}
}

// TestBudget is shared by the expressions of an evaluation.
func TestBudget(t *testing.T) {
	c := expr.NewCompiler(release.Default)
	p := c.Compile(expr.Source{Text: "object.list.all(x, x != '')", Gives: expr.Bool})
	e := expr.Evaluate(t.Context(), input(), nil, false, 40)
	var err error
	runs := 0
	for ; err == nil && runs < 100; runs++ {
		_, err = e.Run(p)
	}
	if !errors.Is(err, expr.ErrBudget) || runs < 2 || runs > 20 {
		t.Errorf("%d runs, %v", runs, err)
	}
	if _, err = e.Run(p); !errors.Is(err, expr.ErrBudget) {
		t.Errorf("after that: %v", err)
	}
}

// TestReleaseBefore: expressions may not use new functions in a write, but may if they are stored.
func TestReleaseBefore(t *testing.T) {
	const text = "[1, 2].all(i, v, v > i)"
	for _, stored := range []bool{false, true} {
		if err := expr.NewCompiler(release.Default).Compile(expr.Source{Text: text, Stored: stored, Gives: expr.Bool}).Fault(); (err == nil) != stored {
			t.Errorf("stored %t: %v", stored, err)
		}
	}
}

// FuzzExpression compiles and evaluates anything: it may fail, and ends. What it makes as a
// mutation is no more than an object may have.
func FuzzExpression(f *testing.F) {
	f.Add("object.list.map(x, x + x).join('').matches('(a+)+$')")
	f.Add("variables.v.orValue(1) == dyn(object).?n.orValue(0)")
	f.Add("quantity('1e999').asInteger() > 0 || timestamp('9999-12-31T23:59:59Z') + duration('999999h') > timestamp(0)")
	f.Add("'%s'.format([object]).replace('', 'x', -1).split('') == [object]")
	f.Add("Object{metadata: Object.metadata{labels: {'a': string(object.n)}}, list: [1] + object.list, ?o: optional.none()}")
	f.Add("[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/y'), value: Object.a{b: {1: 2}, t: timestamp(0)}}, JSONPatch{}]")
	f.Add("[JSONPatch{}.value, type(JSONPatch{}), Object{} == Object{a: JSONPatch{}.nope}, has(Object{}.a)]")
	f.Fuzz(func(t *testing.T, text string) {
		for _, mutation := range []bool{false, true} {
			c := expr.NewComposer(release.Default)
			c.Declare("v", expr.Source{Text: "object.?n"})
			p := c.Compile(expr.Source{Text: text, Offer: expr.Offer{Params: true, Mutation: mutation}})
			r, err := expr.Evaluate(t.Context(), input(), c, false, expr.BudgetConditions).Run(p)
			if err == nil && r.Err == nil && r.Value == nil {
				t.Error("neither a value nor an error")
			}
			if err != nil || r.Err != nil {
				continue
			}
			if tree, err := expr.Tree(t.Context(), r.Value); err == nil {
				if data, err := json.Marshal(tree); err != nil || len(data) > 7*expr.MaxTree { // strings grow where they are escaped
					t.Errorf("%d bytes, %v", len(data), err)
				}
			}
			if ops, err := expr.Operations(t.Context(), r.Value); err == nil {
				if _, err := json.Marshal(ops); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestLibraries: an expression that is new uses only libraries that the previous release has, too.
func TestLibraries(t *testing.T) {
	for text, since := range map[string]release.Version{
		"[1, 2].reverse() == [2, 1]":   release.V135,
		"semver('1.2.3').major() == 1": release.V133,
		"[1].all(i, v, i == 0)":        release.V133,
		"isQuantity('1Gi')":            release.V132,
	} {
		for _, of := range []release.Version{release.V132, release.V133, release.V134, release.V135, release.V136} {
			if err := expr.NewCompiler(of).Compile(expr.Source{Text: text, Gives: expr.Bool}).Fault(); (err == nil) != (of >= since) {
				t.Errorf("%s in %s: %v", text, of, err)
			}
		}
	}
}
