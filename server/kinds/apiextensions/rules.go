package apiextensions

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Limits of the estimated cost of rules, in units of package cel.
const (
	maxRuleCost  = 10_000_000
	maxTotalCost = 100_000_000
)

// compiledAtOnce is the number of rules, and bytesAtOnce the number of their bytes, that are
// compiled between two checks whether a request still waits for them: one schema can have very
// many.
const (
	compiledAtOnce = 500
	bytesAtOnce    = 16 << 10
)

// atOnce returns how many of some rules are compiled before that check: at least one.
func atOnce(rules []apiext.ValidationRule) (n int) {
	for bytes := 0; n < min(len(rules), compiledAtOnce) && (n == 0 || bytes < bytesAtOnce); n++ {
		bytes += len(rules[n].Rule) + len(rules[n].MessageExpression)
	}
	return n
}

var ruleReasons = []apiext.FieldValueErrorReason{
	apiext.FieldValueDuplicate, apiext.FieldValueForbidden, apiext.FieldValueInvalid, apiext.FieldValueRequired,
}

func hasBreak(s string) bool { return strings.ContainsAny(s, "\r\n") }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// validateRuleTexts checks rules without compiling them.
func validateRuleTexts(s *apiext.JSONSchemaProps, p *field.Path) (errs field.ErrorList) {
	var tree *structuralschema.Structural
	for i := range rules.Until(&errs, s.XValidations) {
		r, at := &s.XValidations[i], p.Index(i)
		message := strings.TrimSpace(r.Message)
		switch {
		case blank(r.Rule):
			errs = append(errs, field.Required(at.Child("rule"), "rule is not specified"))
		case r.Message != "" && message == "":
			errs = append(errs, field.Invalid(at.Child("message"), r.Message, "must be non-empty if specified"))
		case hasBreak(message):
			errs = append(errs, field.Invalid(at.Child("message"), r.Message, "must not contain line breaks"))
		case hasBreak(strings.TrimSpace(r.Rule)) && message == "":
			errs = append(errs, field.Required(at.Child("message"), "message must be specified if rule contains line breaks"))
		}
		errs = rules.RequiredIf(errs, r.MessageExpression != "" && blank(r.MessageExpression), at.Child("messageExpression"), "messageExpression must be non-empty if specified")
		if r.Reason != nil && !slices.Contains(ruleReasons, *r.Reason) {
			errs = append(errs, field.NotSupported(at.Child("reason"), *r.Reason, ruleReasons))
		}
		if r.FieldPath == "" {
			continue
		}
		errs = rules.InvalidIf(errs, blank(r.FieldPath), at.Child("fieldPath"), r.FieldPath, "must be non-empty if specified")
		errs = rules.InvalidIf(errs, hasBreak(r.FieldPath), at.Child("fieldPath"), r.FieldPath, "must not contain line breaks")
		if tree == nil {
			if tree, _ = pathTree(s); tree == nil {
				continue // reported elsewhere
			}
		}
		if _, _, err := cel.ValidFieldPath(r.FieldPath, tree); err != nil {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), r.FieldPath, "must be a valid path"))
		}
	}
	return errs
}

// compile compiles the rules of a schema, and adds up their costs.
func (w *walk) compile(ctx context.Context, s *apiext.JSONSchemaProps, at place) {
	p := at.path.Child("x-kubernetes-validations")
	types, err := at.rules.types()
	if err != nil {
		w.rules = append(w.rules, field.InternalError(p, fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %w", err)))
		return
	}
	base, err := expr.Base(w.t.release)
	if err != nil {
		w.rules = append(w.rules, field.InternalError(p, err))
		return
	}
	part := *types.tree
	for from, to := 0, 0; from < len(s.XValidations); from = to {
		to = from + atOnce(s.XValidations[from:])
		if err := ctx.Err(); err != nil {
			w.rules = append(w.rules, field.InternalError(p, err))
			return
		}
		if w.typing > maxTyping {
			return
		}
		if w.typing += w.weights.of(types.decl).sum(); w.typing > maxTyping {
			w.rules = append(w.rules, field.Forbidden(p, tooMuchTyping))
			return
		}
		part.XValidations = slices.Clone(types.tree.XValidations[from:to])
		vetted := make([]bool, len(part.XValidations))
		for i := range part.XValidations {
			vetted[i] = w.vet(&part.XValidations[i], &s.XValidations[from+i], p.Index(from+i))
		}
		results, err := cel.Compile(&part, types.decl, celconfig.PerCallLimit, base, w.t)
		if err != nil {
			w.rules = append(w.rules, field.InternalError(p, err))
			return
		}
		for i := range results {
			if vetted[i] {
				w.compiled(&results[i], &s.XValidations[from+i], at, p.Index(from+i))
			}
		}
	}
}

// vet removes expressions from a rule that cannot be compiled at a reasonable cost, and reports
// whether its rule expression remains. Errors show the rule as reported.
func (w *walk) vet(r *apiextensionsv1.ValidationRule, reported *apiext.ValidationRule, p *field.Path) bool {
	if err := meter.Vet(r.MessageExpression); err != nil {
		w.rules = append(w.rules, field.Invalid(p.Child("messageExpression"), *reported, "messageExpression compilation failed: "+meter.Abridge(err.Error())))
		r.MessageExpression = ""
	}
	if err := meter.Vet(r.Rule); err != nil {
		w.rules = append(w.rules, field.Invalid(p.Child("rule"), *reported, "compilation failed: "+meter.Abridge(err.Error())))
		r.Rule = ""
	}
	return r.Rule != ""
}

func (w *walk) compiled(c *cel.CompilationResult, r *apiext.ValidationRule, at place, p *field.Path) {
	rule, message := p.Child("rule"), p.Child("messageExpression")
	times := c.MaxCardinality
	if at.rules.most != nil {
		times = *at.rules.most
	}
	w.charge(rule, "estimated rule cost", product(c.MaxCost, times))
	if c.Error != nil {
		if c.Error.Type == apiservercel.ErrorTypeRequired {
			w.rules = append(w.rules, field.Required(rule, c.Error.Detail))
		} else {
			w.rules = append(w.rules, field.Invalid(rule, *r, meter.Abridge(c.Error.Detail)))
		}
	}
	switch {
	case c.MessageExpressionError != nil:
		w.rules = append(w.rules, field.Invalid(message, *r, meter.Abridge(c.MessageExpressionError.Detail)))
	case c.MessageExpression != nil:
		w.charge(message, "estimated messageExpression cost", c.MessageExpressionMaxCost)
	}
	switch {
	case c.UsesOldSelf && at.loose != nil:
		w.rules = append(w.rules, field.Invalid(rule, r.Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", at.loose)))
	case !c.UsesOldSelf && r.OptionalOldSelf != nil:
		w.rules = append(w.rules, field.Invalid(p.Child("optionalOldSelf"), *r.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
	}
}

func (w *walk) charge(p *field.Path, what string, cost uint64) {
	if !w.unpriced && cost > maxRuleCost {
		w.rules = append(w.rules, field.Forbidden(p, tooCostly(what, cost, maxRuleCost)))
	}
	w.cost.add(p, cost)
}

// tooCostly returns by how much a cost is above its limit.
func tooCostly(what string, cost, limit uint64) string {
	factor := fmt.Sprintf("%.1fx", float64(cost)/float64(limit))
	if times := float64(cost) / float64(limit); times > 100 {
		factor = "more than 100x" // it grows with a power, and no number means anything
	} else if times < 1.5 {
		factor = fmt.Sprintf("%fx", times) // not 1.0x
	}
	return what + " exceeds budget by factor of " + factor + " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}

// totalCost is the cost of all rules of a schema together, with the most expensive ones.
type totalCost struct {
	sum   uint64
	worst []ruleCost // the four most expensive, which are at least a hundredth of the limit
}

type ruleCost struct {
	path *field.Path
	cost uint64
}

func (t *totalCost) add(p *field.Path, cost uint64) {
	if t.sum += cost; t.sum < cost {
		t.sum = math.MaxUint64
	}
	if cost < maxTotalCost/100 {
		return
	}
	t.worst = append(t.worst, ruleCost{p, cost})
	slices.SortStableFunc(t.worst, func(a, b ruleCost) int {
		switch {
		case a.cost > b.cost:
			return -1
		case a.cost < b.cost:
			return 1
		}
		return 0
	})
	t.worst = t.worst[:min(4, len(t.worst))]
}

func (t *totalCost) validate(p *field.Path) (errs field.ErrorList) {
	if t.sum <= maxTotalCost {
		return nil
	}
	for _, r := range t.worst {
		errs = append(errs, field.Forbidden(r.path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	return append(errs, field.Forbidden(p, tooCostly("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", t.sum, maxTotalCost)))
}
