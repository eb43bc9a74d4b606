package structural

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// maxWork bounds the work of the rules of one object that their estimated cost does not cover: steps of a
// meter, of which each rule may take meter.MaxSteps twice, and a step for each planBytes bytes of a rule, as
// it is planned again for each value.
const (
	maxWork     = 10_000_000
	maxRuleWork = 2 * meter.MaxSteps
	planBytes   = 2
)

// Bounds of texts, in bytes. All warnings of a response have fewer characters than the longest value in one, and a client
// sees far less of the errors.
const (
	maxWarnedValue = 16 << 10
	maxErrorText   = 16 << 20
)

// evaluation is one run of rules over an object.
type evaluation struct {
	ctx  context.Context
	of   release.Version
	left int64 // of the budget, in units of package cel
	work int   // that is left of maxWork
	over bool  // no more rules are run
	errs field.ErrorList
	text int // bytes of errs, without the values that they show
	warn func(string)
}

// add adds an error. The object is refused: when the texts of errors exceed the limit, no more rules are run.
func (e *evaluation) add(err *field.Error) {
	e.errs = append(e.errs, err)
	e.text += len(err.Field) + len(err.Detail)
	e.over = e.over || e.text > maxErrorText
}

// warnOf warns of an error. Of a long value it writes the beginning: each of many rules may be about the same value.
func (e *evaluation) warnOf(err *field.Error) {
	if text, ok := err.BadValue.(string); ok && len(text) > maxWarnedValue {
		shorter := *err
		shorter.BadValue = text[:maxWarnedValue]
		err = &shorter
	}
	e.warn(err.Error())
}

func (e *evaluation) stop(err *field.Error) {
	e.add(err)
	e.over = true
}

// counterpart is the old value that a value is compared with.
type counterpart struct {
	object *common.CorrelatedObject // nil: there is none for the value itself
	parent *common.CorrelatedObject // the nearest value around it that had one
}

// unchanged reports whether the value, or one that contains it, is unchanged.
func (c counterpart) unchanged() bool {
	if c.object != nil {
		return c.object.CachedDeepEqual()
	}
	return c.parent.CachedDeepEqual()
}

func (c counterpart) key(name string) counterpart {
	switch {
	case c.object == nil:
		return c
	case c.parent == nil && (name == "apiVersion" || name == "kind"): // objects are given these
		return counterpart{}
	}
	return counterpart{c.object.Key(name), c.object}
}

func (c counterpart) index(i int) counterpart {
	if c.object == nil {
		return c
	}
	return counterpart{c.object.Index(i), c.object}
}

// run runs the rules of a schema, then those of its parts.
func (r *ruleTree) run(e *evaluation, p *field.Path, v, old any, correlated counterpart) {
	if r == nil || v == nil || e.over {
		return
	}
	r.runSchemaRules(e, p, v, old, correlated)
	switch v := v.(type) {
	case []any:
		if r.items == nil {
			return
		}
		before, _ := old.([]any)
		var olds common.MapList // finds nothing, unless items have keys
		if len(before) > 0 {
			olds = common.MakeMapList(r.schema, before)
		}
		for i, item := range v {
			var was any
			if olds != nil {
				was = olds.Get(item)
			}
			r.items.run(e, p.Index(i), item, was, correlated.index(i))
		}
	case map[string]any:
		before, _ := old.(map[string]any)
		if r.uncorrelated {
			before = nil
		}
		if r.values != nil {
			for name, value := range v {
				r.values.run(e, p.Key(name), value, before[name], correlated.key(name))
			}
		}
		for _, name := range r.names {
			if value, ok := v[name]; ok {
				r.properties[name].run(e, p.Child(name), value, before[name], correlated.key(name))
			}
		}
	}
}

// runSchemaRules runs the rules of the schema, without those of its parts.
func (r *ruleTree) runSchemaRules(e *evaluation, p *field.Path, v, old any, correlated counterpart) {
	switch {
	case e.over:
		return
	case r.compileErr != nil:
		e.add(field.Invalid(p, r.kind, fmt.Sprintf("rule compiler initialization error: %v", r.compileErr)))
		return
	case len(r.rules) == 0:
		return
	case e.left <= 0:
		e.stop(r.tooExpensive(p))
		return
	case e.ctx.Err() != nil:
		e.stop(field.InternalError(p, e.ctx.Err()))
		return
	}
	vars := &ruleVars{self: common.UnstructuredToVal(v, r.schema)}
	if old != nil {
		vars.old = common.UnstructuredToVal(old, r.schema)
	}
	for i := range r.rules {
		if r.runRule(e, &r.rules[i], p, v, vars, correlated); e.over {
			return
		}
	}
}

func (r *ruleTree) tooExpensive(p *field.Path) *field.Error {
	return field.Invalid(p, r.kind, "validation failed due to running out of cost budget, no further validation rules will be run")
}

func (r *ruleTree) runRule(e *evaluation, c *rule, p *field.Path, v any, vars *ruleVars, correlated counterpart) {
	if c.Error != nil {
		e.add(field.Invalid(p, r.kind, fmt.Sprintf("rule compile error: %v", c.Error)))
		return
	}
	if c.Program == nil { // the rule is empty
		return
	}
	optional := c.OptionalOldSelf != nil && *c.OptionalOldSelf
	if c.UsesOldSelf && vars.old == nil && !optional {
		return
	}
	value, cost, err := evaluate(e, c.Program, c.Rule, vars.as(optional))
	switch {
	case errors.Is(err, errWork):
		e.stop(r.tooExpensive(p))
		return
	case cost == nil && e.ctx.Err() != nil:
		e.stop(field.InternalError(p, e.ctx.Err()))
		return
	case cost == nil:
		e.stop(field.InternalError(p, fmt.Errorf("runtime cost could not be calculated for validation rule: %v, no further validation rules will be run", messageOrRule(c.ValidationRule))))
		return
	case !e.spend(*cost):
		e.stop(r.tooExpensive(p))
		return
	case err != nil:
		r.reportFailure(e, c, p, err)
		return
	case value == types.True:
		return
	}
	if c.NormalizedRuleFieldPath != "" {
		p = p.Child(c.NormalizedRuleFieldPath)
	}
	ruleErr, over := r.ruleError(e, c, p, r.shown(e.of, v), vars)
	if !c.UsesOldSelf && correlated.unchanged() {
		e.warnOf(ruleErr)
	} else {
		e.add(ruleErr)
	}
	e.over = e.over || over
}

// errWork means that the rules of an object have too much to do together.
var errWork = errors.New("the rules of the object are too much work")

// evaluate runs a program. cost is nil if it is unknown. A program that exceeds the meter fails like one that
// exceeds its cost.
func evaluate(e *evaluation, program celgo.Program, text string, vars *ruleVars) (value ref.Val, cost *uint64, err error) {
	e.work -= 1 + len(text)/planBytes
	steps := min(e.work, maxRuleWork)
	vars.meter = meter.New(e.ctx, max(steps, 0))
	value, details, err := program.ContextEval(e.ctx, vars)
	e.work -= vars.meter.Used()
	switch {
	case e.work <= 0 && steps < maxRuleWork:
		return nil, nil, errWork
	case e.ctx.Err() != nil:
		return nil, nil, e.ctx.Err()
	case details == nil:
		return nil, nil, err
	case vars.meter.Over():
		err = errors.New(costsTooBig)
	}
	return value, details.ActualCost(), err
}

func (e *evaluation) spend(cost uint64) bool {
	if cost > math.MaxInt64 || int64(cost) > e.left {
		return false
	}
	e.left -= int64(cost)
	return true
}

// Prefixes of the errors of package cel.
const (
	noOverload  = "no such overload"
	costsTooBig = "operation cancelled: actual cost limit exceeded"
)

// reportFailure reports a rule without a result.
func (r *ruleTree) reportFailure(e *evaluation, c *rule, p *field.Path, err error) {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, noOverload): // the types of values are known only now
		e.add(field.Invalid(p, r.kind, fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %v", text, messageOrRule(c.ValidationRule))))
	case strings.HasPrefix(text, costsTooBig):
		e.stop(field.Invalid(p, r.kind, fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %v", text, messageOrRule(c.ValidationRule))))
	default:
		e.add(field.Invalid(p, r.kind, fmt.Sprintf("%v evaluating rule: %v", text, messageOrRule(c.ValidationRule))))
	}
}

// ruleError reports a rule that does not hold; over is true if no more rules may run.
func (r *ruleTree) ruleError(e *evaluation, c *rule, p *field.Path, shown any, vars *ruleVars) (ruleErr *field.Error, over bool) {
	fixed := strings.TrimSpace(c.Message)
	if c.Message == "" {
		fixed = "failed rule: " + messageOrRule(c.ValidationRule)
	}
	if c.CompilationResult.MessageExpression == nil {
		return withReason(c, p, shown, fixed), false
	}
	source := c.ValidationRule.MessageExpression
	value, cost, err := evaluate(e, c.CompilationResult.MessageExpression, source, vars.as(false))
	switch {
	case errors.Is(err, errWork):
		return field.Invalid(p, r.kind, "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"), true
	case cost == nil:
		return field.InternalError(p, fmt.Errorf("runtime cost could not be calculated for messageExpression: %q", source)), true
	case !e.spend(*cost):
		return field.Invalid(p, r.kind, "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"), true
	case err != nil && strings.HasPrefix(err.Error(), costsTooBig):
		return field.Invalid(p, r.kind, fmt.Sprintf("no further validation rules will be run due to call cost exceeds limit for messageExpression: %q", source)), true
	case err != nil:
		return withReason(c, p, shown, fixed), false
	}
	if text, ok := value.Value().(string); ok {
		text = strings.TrimSpace(text)
		if text != "" && len(text) <= expr.MaxMessage && !strings.Contains(text, "\n") {
			return withReason(c, p, shown, text), false
		}
	}
	return withReason(c, p, shown, fixed), false
}

// shown returns the value in the error of a rule that does not hold: the value itself if it is a scalar, and up to
// release 1.32 its type.
func (r *ruleTree) shown(of release.Version, v any) any {
	switch {
	case !of.Has(release.ValuesInJSON):
		return r.kind
	case r.kind == "object" || r.kind == "array":
		return field.OmitValueType{}
	}
	return v
}

// withReason makes an error with the reason that the rule names.
func withReason(c *rule, p *field.Path, shown any, detail string) *field.Error {
	if c.Reason == nil {
		return field.Invalid(p, shown, detail)
	}
	switch *c.Reason {
	case apiextensionsv1.FieldValueForbidden:
		return field.Forbidden(p, detail)
	case apiextensionsv1.FieldValueRequired:
		return field.Required(p, detail)
	case apiextensionsv1.FieldValueDuplicate:
		return field.Duplicate(p, shown)
	}
	return field.Invalid(p, shown, detail)
}

// messageOrRule returns a rule's message or, without one, its text.
func messageOrRule(r *apiextensionsv1.ValidationRule) string {
	if r.Message != "" {
		return strings.TrimSpace(r.Message)
	}
	return strings.TrimSpace(r.Rule)
}

// ruleVars are the variables of rules: self, and oldSelf where there is one.
type ruleVars struct {
	self, old ref.Val
	meter     *meter.Meter
}

// as gives the variables to a rule whose oldSelf is optional, or to one whose is not.
func (s *ruleVars) as(optional bool) *ruleVars {
	if !optional {
		return s
	}
	old := types.OptionalNone
	if s.old != nil {
		old = types.OptionalOf(s.old)
	}
	return &ruleVars{self: s.self, old: old}
}

// ResolveName and Parent implement interpreter.Activation.
func (s *ruleVars) ResolveName(name string) (any, bool) {
	switch name {
	case "self":
		return s.self, true
	case "oldSelf":
		return s.old, s.old != nil
	case meter.Name:
		return s.meter, true
	}
	return nil, false
}

func (s *ruleVars) Parent() interpreter.Activation { return nil }
