package oidc

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/authx/meter"
)

// Variables of expressions.
const (
	claimsVariable = "claims"
	userVariable   = "user"
)

// interruptEvery is the number of steps of a comprehension between two checks of the context.
const interruptEvery = 100

// expression is a compiled expression. variable is its input.
type expression struct {
	text, variable string
	ast            *cel.Ast
	program        cel.Program
}

// environments are made when the first expression is compiled.
var environments = sync.OnceValues(func() (map[string]*cel.Env, error) {
	text := apiservercel.StringType
	lists := apiservercel.NewListType(text, -1)
	fields := map[string]*apiservercel.DeclField{}
	for name, t := range map[string]*apiservercel.DeclType{
		"username": text, "uid": text, "groups": lists, "extra": apiservercel.NewMapType(text, lists, -1),
	} {
		fields[name] = apiservercel.NewDeclField(name, t, false, nil, nil)
	}
	envs := map[string]*cel.Env{}
	for name, t := range map[string]*apiservercel.DeclType{
		claimsVariable: apiservercel.NewMapType(text, apiservercel.AnyType, -1),
		userVariable:   apiservercel.NewObjectType("kubernetes.UserInfo", fields),
	} {
		base, err := meter.Extend(meter.Environment(version.MajorMinor(1, 32)))
		if err != nil {
			return nil, err
		}
		set, err := base.Extend(environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []cel.EnvOption{cel.Variable(name, t.CelType())},
			DeclTypes:         []*apiservercel.DeclType{t},
		})
		if err != nil {
			return nil, fmt.Errorf("making the environment of expressions about %s: %w", name, err)
		}
		envs[name] = set.StoredExpressionsEnv()
	}
	return envs, nil
})

// compile makes an expression; condition means that it must be a boolean. The error
// is for the author of the expression.
func compile(text, variable string, condition bool) (*expression, error) {
	envs, err := environments()
	if err != nil {
		return nil, err
	}
	env := envs[variable]
	if err := meter.Vet(text); err != nil {
		return nil, fmt.Errorf("compilation failed: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, fmt.Errorf("compilation failed: %s", issues.String())
	}
	if condition && ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("must evaluate to %v", cel.BoolType)
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	return &expression{text: text, variable: variable, ast: ast, program: program}, nil
}

// eval evaluates an expression; all those about a token share a meter.
func (e *expression) eval(ctx context.Context, value any, m *meter.Meter) (ref.Val, error) {
	out, _, err := e.program.ContextEval(ctx, map[string]any{e.variable: value, meter.Name: m})
	if err != nil {
		return nil, fmt.Errorf("expression '%s' resulted in error: %w", e.text, err)
	}
	return out, nil
}

// uses reports whether an expression reads a claim.
func (e *expression) uses(claim string) bool {
	isClaims := func(x celast.Expr) bool { return x.Kind() == celast.IdentKind && x.AsIdent() == claimsVariable }
	found := celast.MatchDescendants(celast.NavigateAST(e.ast.NativeRep()), func(n celast.NavigableExpr) bool {
		switch n.Kind() {
		case celast.SelectKind:
			return n.AsSelect().FieldName() == claim && isClaims(n.AsSelect().Operand())
		case celast.CallKind:
			c := n.AsCall()
			if c.FunctionName() != operators.OptSelect && c.FunctionName() != operators.Index || len(c.Args()) != 2 || !isClaims(c.Args()[0]) {
				return false
			}
			name := c.Args()[1]
			return name.Kind() == celast.LiteralKind && name.AsLiteral().Equal(types.String(claim)) == types.True
		}
		return false
	})
	return len(found) > 0
}

// rule is an expression that must be true.
type rule struct {
	*expression
	message string
}

func (r rule) check(ctx context.Context, value any, m *meter.Meter) error {
	out, err := r.eval(ctx, value, m)
	if err != nil {
		return err
	}
	ok, isBool := out.Value().(bool)
	if !isBool {
		return fmt.Errorf("validation expression must return a boolean")
	}
	if !ok {
		return fmt.Errorf("validation expression '%s' failed: %s", r.text, r.message)
	}
	return nil
}

// texts reads a string, or a list of strings. Empty strings, and null, are none.
func texts(v ref.Val) ([]string, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.String:
		if v == "" {
			return nil, nil
		}
		return []string{string(v)}, nil
	}
	type lister interface {
		Get(ref.Val) ref.Val
		Size() ref.Val
	}
	l, ok := v.(lister)
	if !ok || v.Type() != types.ListType {
		return nil, fmt.Errorf("expression must return a string or a list of strings")
	}
	var out []string
	for i := range l.Size().(types.Int) {
		s, ok := l.Get(i).(types.String)
		if !ok {
			return nil, fmt.Errorf("expression must return a string or a list of strings")
		}
		if s != "" {
			out = append(out, string(s))
		}
	}
	return out, nil
}
