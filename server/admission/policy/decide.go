package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// maxNote limits the bytes of an audit annotation.
const maxNote = 10 * 1024

// compiled is a policy in the form that decides.
type compiled struct {
	variables   *expr.Compiler
	conditions  *conditions.List // nil: there are none
	validations []validation
	notes       []note
	ignores     bool // failures
}

type validation struct {
	*expr.Program
	message *expr.Program // nil: the fixed text
	text    string
	reason  metav1.StatusReason
}

type note struct {
	*expr.Program
	key string
}

// compile never fails: an invalid expression fails when it is evaluated.
func compile(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) *compiled {
	offer := expr.Offer{Params: s.ParamKind != nil, Authorizer: true}
	composer := expr.NewComposer(release.Default)
	c := &compiled{variables: composer, ignores: s.FailurePolicy != nil && *s.FailurePolicy == admissionregistrationv1.Ignore}
	for _, v := range s.Variables {
		composer.Declare(v.Name, expr.Source{Text: v.Expression, Offer: offer, Stored: true})
	}
	if len(s.MatchConditions) > 0 {
		c.conditions = conditions.Compile(composer, offer, s.MatchConditions, c.ignores)
	}
	for _, v := range s.Validations {
		one := validation{
			Program: composer.Compile(expr.Source{Text: v.Expression, Offer: offer, Gives: expr.Bool, Stored: true}),
			text:    strings.TrimSpace(v.Message), reason: metav1.StatusReasonInvalid,
		}
		if v.Reason != nil {
			one.reason = *v.Reason
		}
		if v.MessageExpression != "" {
			one.message = composer.Compile(expr.Source{Text: v.MessageExpression, Offer: expr.Offer{Params: offer.Params}, Gives: expr.String, Stored: true})
		}
		c.validations = append(c.validations, one)
	}
	for _, a := range s.AuditAnnotations {
		c.notes = append(c.notes, note{key: a.Key, Program: composer.Compile(expr.Source{Text: a.ValueExpression, Offer: offer, Gives: expr.StringOrNull, Stored: true})})
	}
	return c
}

// decision is the result of one validation.
type decision struct {
	denied  bool
	fault   bool // it could not be evaluated
	message string
	reason  metav1.StatusReason
	took    time.Duration
}

// annotated is the result of one audit annotation: a value, an error, or neither.
type annotated struct {
	key, value, fault string
	took              time.Duration
}

type result struct {
	decisions   []decision
	annotations []annotated
}

// failed returns the decision for an expression that could not be evaluated.
func (c *compiled) failed(message string) decision {
	return decision{denied: !c.ignores, fault: true, message: message}
}

// decide evaluates the policy for one set of parameters.
func (c *compiled) decide(ctx context.Context, in *expr.Input, op admission.Operation) result {
	if c.conditions != nil {
		meant, err := c.conditions.Match(ctx, in, op)
		if err != nil {
			return result{decisions: []decision{c.failed(err.Error())}}
		}
		if !meant {
			return result{}
		}
	}
	found, left, err := c.validate(ctx, in)
	if err != nil {
		return result{decisions: []decision{c.failed(err.Error())}}
	}
	r := result{decisions: c.judge(ctx, in, found, left)}
	if r.annotations, err = c.annotate(ctx, in); err != nil {
		return result{decisions: []decision{c.failed(err.Error())}}
	}
	return r
}

// finding is the value of a validation's expression.
type finding struct {
	expr.Result
	took time.Duration
}

func (c *compiled) validate(ctx context.Context, in *expr.Input) ([]finding, int64, error) {
	e := expr.Evaluate(ctx, in, c.variables, true, expr.Budget)
	found := make([]finding, len(c.validations))
	for i := range c.validations {
		began := time.Now()
		r, err := e.Run(c.validations[i].Program)
		if err != nil {
			return nil, 0, err
		}
		found[i] = finding{r, time.Since(began)}
	}
	return found, e.Left(), nil
}

// judge turns findings into decisions. It evaluates messages of refusals only.
func (c *compiled) judge(ctx context.Context, in *expr.Input, found []finding, left int64) []decision {
	out := make([]decision, len(found))
	messages := expr.Evaluate(ctx, in, c.variables, false, left)
	var spent error
	for i := range found {
		d, v := &out[i], &c.validations[i]
		switch {
		case found[i].Err != nil:
			*d = c.failed(found[i].Err.Error())
		case found[i].Value == types.True:
		case spent != nil:
			*d = c.failed(fmt.Sprintf("failed messageExpression: %s", spent))
		default:
			*d = decision{denied: true, reason: v.reason, message: v.text}
			if v.message != nil {
				var text string
				if text, spent = message(messages, v.message); spent != nil {
					*d = c.failed(fmt.Sprintf("failed messageExpression: %s", spent))
				} else if text != "" {
					d.message = text
				}
			}
			if d.message == "" {
				d.message = "failed expression: " + strings.TrimSpace(v.Text)
			}
		}
		d.took = found[i].took
	}
	return out
}

// message evaluates a message. An unusable one is empty; an error means that the budget is used up.
func message(e *expr.Evaluation, p *expr.Program) (string, error) {
	r, err := e.Run(p)
	if err != nil || r.Err != nil {
		return "", err
	}
	text, _ := r.Value.Value().(string)
	text = strings.TrimSpace(text)
	if len(text) > expr.MaxMessage || strings.Contains(text, "\n") {
		return "", nil
	}
	return text, nil
}

func (c *compiled) annotate(ctx context.Context, in *expr.Input) ([]annotated, error) {
	if len(c.notes) == 0 {
		return nil, nil
	}
	e := expr.Evaluate(ctx, in, c.variables, true, expr.Budget)
	out := make([]annotated, len(c.notes))
	for i, n := range c.notes {
		began := time.Now()
		r, err := e.Run(n.Program)
		if err != nil {
			return nil, err
		}
		a := &out[i]
		a.key, a.took = n.key, time.Since(began)
		if r.Err == nil {
			r.Err = a.take(r.Value.Value(), n.Text)
		} else if c.ignores {
			r.Err = nil
		}
		if r.Err != nil {
			a.fault = r.Err.Error()
		}
	}
	return out, nil
}

// take takes the value of an annotation; null is none.
func (a *annotated) take(value any, text string) error {
	switch v := value.(type) {
	case string:
		a.value = strings.TrimSpace(v)
		if len(a.value) > maxNote {
			a.value = strings.ToValidUTF8(a.value[:maxNote], "")
		}
		return nil
	default:
		if value == types.NullValue.Value() {
			return nil
		}
		return errors.New("valueExpression '" + text + "' resulted in unsupported return type: " + fmt.Sprintf("%T", value) + ". Return type must be either string or null.")
	}
}
