package expr

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	limits "k8s.io/apiserver/pkg/apis/cel"
	celtypes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/release"
)

// Source is an expression to compile.
type Source struct {
	Text  string
	Offer Offer
	// Gives lists the types that the value may have; none: any.
	Gives []*cel.Type
	// Stored: it was accepted before, perhaps by a newer server.
	Stored bool
}

// The result types of expressions.
var (
	Bool         = []*cel.Type{cel.BoolType}
	String       = []*cel.Type{cel.StringType}
	StringOrNull = []*cel.Type{cel.StringType, cel.NullType}
)

// Program is a compiled expression, safe for concurrent use. An invalid one fails when it is evaluated.
type Program struct {
	Text    string
	program cel.Program
	gives   *cel.Type
	fault   error
}

// Fault returns why the expression does not compile; nil where it does.
func (p *Program) Fault() error { return p.fault }

// Compiler compiles the expressions of one policy or webhook.
type Compiler struct {
	of release.Version
	// declared is the type of "variables", nil where there is no such variable; its
	// fields come as they are declared.
	declared *celtypes.DeclType
	names    []string
	values   map[string]*Program
	shapes   *shapes // nil: anything
	check    bool    // types alone count: no programs are made
	envs     map[Offer]*environment.EnvSet
}

// NewCompiler makes a compiler of independent expressions. New ones may use the features of the release,
// stored ones those of any release.
func NewCompiler(of release.Version) *Compiler { return &Compiler{of: of} }

// NewComposer makes a compiler of expressions that may use variables, which are
// declared one after the other and see those before them.
func NewComposer(of release.Version) *Compiler {
	return &Compiler{
		of:       of,
		declared: celtypes.NewObjectType("kubernetes.variables", map[string]*celtypes.DeclField{}),
		values:   map[string]*Program{},
	}
}

// environment returns the environment of an offer with the present variables.
func (c *Compiler) environment(o Offer) (*environment.EnvSet, error) {
	if c.declared == nil && c.shapes == nil {
		return offered(c.of, o)
	}
	if set := c.envs[o]; set != nil {
		return set, nil
	}
	var set *environment.EnvSet
	var err error
	if c.shapes != nil {
		set, err = declare(c.of, o, *c.shapes)
	} else {
		set, err = offered(c.of, o)
	}
	if err == nil && c.declared != nil {
		set, err = set.Extend(environment.VersionedOptions{
			IntroducedVersion: always,
			EnvOptions:        []cel.EnvOption{cel.Variable(varVariables, c.declared.CelType())},
			DeclTypes:         []*celtypes.DeclType{c.declared},
		})
	}
	if err != nil {
		return nil, err
	}
	if c.envs == nil {
		c.envs = map[Offer]*environment.EnvSet{}
	}
	c.envs[o] = set
	return set, nil
}

// Compile compiles one expression.
func (c *Compiler) Compile(s Source) *Program {
	p := &Program{Text: s.Text}
	set, err := c.environment(s.Offer)
	if err != nil {
		p.fault = fmt.Errorf("unexpected error loading CEL environment: %w", err)
		return p
	}
	env, err := set.Env(kindOf(s.Stored))
	if err != nil {
		p.fault = fmt.Errorf("unexpected error loading CEL environment: %w", err)
		return p
	}
	ast, err := compiled(env, s.Text)
	if err != nil {
		p.fault = err
		if !c.check {
			p.fault = fmt.Errorf("compilation failed: %w", err)
		}
		return p
	}
	p.gives = ast.OutputType()
	if p.fault = mistyped(p.gives, s.Gives); p.fault != nil || c.check {
		return p
	}
	if p.program, err = env.Program(ast, cel.InterruptCheckFrequency(limits.CheckFrequency)); err != nil {
		p.fault = fmt.Errorf("program instantiation failed: %w", err)
	}
	return p
}

// compiled returns a compiled expression. The error is for its author.
func compiled(env *cel.Env, text string) (*cel.Ast, error) {
	if err := meter.Vet(text); err != nil {
		return nil, errors.New(meter.Abridge(err.Error()))
	}
	ast, issues := env.Compile(text)
	if issues != nil {
		return nil, errors.New(meter.Abridge(issues.String()))
	}
	return ast, nil
}

func mistyped(have *cel.Type, want []*cel.Type) error {
	if len(want) == 0 {
		return nil
	}
	for _, t := range want {
		if have.IsExactType(t) {
			return nil
		}
	}
	if len(want) == 1 {
		return fmt.Errorf("must evaluate to %v but got %v", want[0], have)
	}
	return fmt.Errorf("must evaluate to one of %v but got %v", want, have)
}

// Declare compiles a variable and lets the expressions after it use it, of any type
// where it does not compile.
func (c *Compiler) Declare(name string, s Source) *Program {
	p := c.Compile(s)
	if _, again := c.values[name]; !again {
		c.names = append(c.names, name)
	}
	c.declared.Fields[name] = required(name, declType(p.gives))
	c.values[name] = p
	return p
}

// simple are the types that are the same to the compiler and to a declaration.
var simple = map[*cel.Type]*celtypes.DeclType{
	cel.AnyType: celtypes.AnyType, cel.BoolType: celtypes.BoolType, cel.BytesType: celtypes.BytesType,
	cel.DoubleType: celtypes.DoubleType, cel.DurationType: celtypes.DurationType, cel.IntType: celtypes.IntType,
	cel.NullType: celtypes.NullType, cel.StringType: celtypes.StringType, cel.TimestampType: celtypes.TimestampType,
	cel.UintType: celtypes.UintType,
}

// declType returns the type of a field that holds an expression's value.
func declType(t *cel.Type) *celtypes.DeclType {
	if t == nil || !meter.Declarable(t) {
		return celtypes.DynType
	}
	if d := simple[t]; d != nil {
		return d
	}
	if t.HasTrait(traits.ContainerType) && t.HasTrait(traits.IndexerType) {
		switch of := t.Parameters(); len(of) {
		case 1:
			return celtypes.NewListType(declType(of[0]), -1)
		case 2:
			return celtypes.NewMapType(declType(of[0]), declType(of[1]), -1)
		}
	}
	return celtypes.DynType
}
