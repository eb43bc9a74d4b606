package webhook

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/meter"
)

// Conditions are expressions about a request. All of them must hold for the service
// to be asked.
type Conditions []*Condition

// Condition is one expression.
type Condition struct {
	text    string
	program cel.Program
}

// interruptEvery is the number of steps of a comprehension between two checks of the context.
const interruptEvery = 100

// Compile makes a condition. Its error is for the author of the expression.
func Compile(text string, selectors bool) (*Condition, error) {
	env, err := environments[selectors]()
	if err != nil {
		return nil, err
	}
	if err := meter.Vet(text); err != nil {
		return nil, fmt.Errorf("compilation failed: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues != nil {
		return nil, fmt.Errorf("compilation failed: %s", issues.String())
	}
	if t := ast.OutputType(); t != cel.BoolType {
		return nil, fmt.Errorf("must evaluate to %v but got %v", cel.BoolType, t)
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	return &Condition{text: text, program: program}, nil
}

// environments declare the variable request, with and without selectors. They are made when the first
// expression is compiled.
var environments = map[bool]func() (*cel.Env, error){
	true:  sync.OnceValues(func() (*cel.Env, error) { return environmentOf(true) }),
	false: sync.OnceValues(func() (*cel.Env, error) { return environmentOf(false) }),
}

func environmentOf(selectors bool) (*cel.Env, error) {
	request := requestType(selectors)
	base, err := meter.Extend(meter.Environment(version.MajorMinor(1, 32)))
	if err != nil {
		return nil, err
	}
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("request", request.CelType())},
		DeclTypes:         []*apiservercel.DeclType{request},
	})
	if err != nil {
		return nil, fmt.Errorf("making the environment of match conditions: %w", err)
	}
	return set.StoredExpressionsEnv(), nil
}

// requestType returns the spec of a SubjectAccessReview v1.
func requestType(selectors bool) *apiservercel.DeclType {
	text := apiservercel.StringType
	texts := apiservercel.NewListType(text, -1)
	object := func(name string, types map[string]*apiservercel.DeclType) *apiservercel.DeclType {
		fields := make(map[string]*apiservercel.DeclField, len(types))
		for name, t := range types {
			fields[name] = apiservercel.NewDeclField(name, t, false, nil, nil)
		}
		return apiservercel.NewObjectType("kubernetes."+name, fields)
	}
	resource := map[string]*apiservercel.DeclType{
		"namespace": text, "verb": text, "group": text, "version": text, "resource": text, "subresource": text, "name": text,
	}
	if selectors {
		requirement := object("SelectorRequirement", map[string]*apiservercel.DeclType{"key": text, "operator": text, "values": texts})
		selector := map[string]*apiservercel.DeclType{"rawSelector": text, "requirements": apiservercel.NewListType(requirement, -1)}
		resource["fieldSelector"] = object("FieldSelectorAttributes", selector)
		resource["labelSelector"] = object("LabelSelectorAttributes", selector)
	}
	return object("SubjectAccessReviewSpec", map[string]*apiservercel.DeclType{
		"resourceAttributes":    object("ResourceAttributes", resource),
		"nonResourceAttributes": object("NonResourceAttributes", map[string]*apiservercel.DeclType{"path": text, "verb": text}),
		"user":                  text, "uid": text, "groups": texts,
		"extra": apiservercel.NewMapType(text, texts, -1),
	})
}

// hold reports whether all conditions hold. One that is false decides, whatever errors the others have.
func (list Conditions) hold(ctx context.Context, a *authx.Attributes) (bool, error) {
	variables := map[string]any{"request": requestOf(a), meter.Name: meter.New(ctx, meter.MaxSteps)}
	var errs []error
	for _, c := range list {
		out, _, err := c.program.ContextEval(ctx, variables)
		if err != nil {
			errs = append(errs, fmt.Errorf("cel evaluation error: expression '%s' resulted in error: %w", c.text, err))
			continue
		}
		holds, ok := out.Value().(bool)
		if !ok {
			errs = append(errs, fmt.Errorf("cel evaluation error: expression '%s' eval result value should be bool but got %v", c.text, out.Type()))
			continue
		}
		if !holds {
			return false, nil
		}
	}
	return len(errs) == 0, utilerrors.NewAggregate(errs)
}

// requestOf returns the request for expressions: empty attributes of a resource are present, a selector without
// known requirements is not.
func requestOf(a *authx.Attributes) map[string]any {
	r := map[string]any{"user": "", "uid": "", "groups": []string{}, "extra": map[string][]string{}}
	if u := a.User; u != nil {
		r["user"], r["uid"] = u.Name, u.UID
		if u.Groups != nil {
			r["groups"] = u.Groups
		}
		if u.Extra != nil {
			r["extra"] = u.Extra
		}
	}
	if !a.ResourceRequest {
		r["nonResourceAttributes"] = map[string]string{"path": a.Path, "verb": a.Verb}
		return r
	}
	resource := map[string]any{
		"namespace": a.Namespace, "verb": a.Verb, "group": a.APIGroup, "version": a.APIVersion,
		"resource": a.Resource, "subresource": a.Subresource, "name": a.Name,
	}
	if list := fieldRequirements(a.FieldRequirements); len(list) > 0 {
		out := make([]map[string]any, len(list))
		for i, q := range list {
			out[i] = map[string]any{"key": q.Key, "operator": string(q.Operator), "values": q.Values}
		}
		resource["fieldSelector"] = map[string]any{"requirements": out}
	}
	if list := labelRequirements(a.LabelRequirements); len(list) > 0 {
		out := make([]map[string]any, len(list))
		for i, q := range list {
			values := q.Values
			if values == nil {
				values = []string{}
			}
			out[i] = map[string]any{"key": q.Key, "operator": string(q.Operator), "values": values}
		}
		resource["labelSelector"] = map[string]any{"requirements": out}
	}
	r["resourceAttributes"] = resource
	return r
}
