package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/apply/jsonpatch"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

// mutations are a policy in the form that changes objects.
type mutations struct {
	variables  *expr.Compiler
	conditions *conditions.List // nil: there are none
	list       []mutation
}

// mutation is a mutation of a policy.
type mutation struct {
	*expr.Program
	patches bool // it makes a JSON patch, and not an apply configuration
}

// compileMutations never fails: an invalid expression fails when it is evaluated.
func compileMutations(s *admissionregistrationv1.MutatingAdmissionPolicySpec, ignores bool) *mutations {
	offer := expr.Offer{Params: s.ParamKind != nil, Authorizer: true}
	composer := expr.NewComposer(release.Default)
	c := &mutations{variables: composer}
	for _, v := range s.Variables {
		composer.Declare(v.Name, expr.Source{Text: v.Expression, Offer: offer, Stored: true})
	}
	if len(s.MatchConditions) > 0 {
		c.conditions = conditions.Compile(composer, offer, s.MatchConditions, ignores)
	}
	offer.Mutation = true
	for _, m := range s.Mutations {
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			c.list = append(c.list, mutation{Program: composer.Compile(expr.Source{Text: m.ApplyConfiguration.Expression, Offer: offer, Gives: expr.Configuration, Stored: true})})
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			c.list = append(c.list, mutation{Program: composer.Compile(expr.Source{Text: m.JSONPatch.Expression, Offer: offer, Gives: expr.Patch, Stored: true}), patches: true})
		}
	}
	return c
}

// subject is the object that a mutation changes, in the version of a target.
type subject struct {
	obj     runtime.Object
	target  criteria.Target
	empty   func() runtime.Object
	codec   jsoncodec.Codec
	schemas *schema.Schemas
	largest int // maximum size of the result in bytes
}

// change returns the object that a mutation makes of another; nil where it leaves it alone. The
// errors of a policy are plain ones; others are API statuses.
func (m *mutation) change(ctx context.Context, in *expr.Input, variables *expr.Compiler, s *subject) (runtime.Object, error) {
	if err := m.Fault(); err != nil {
		return nil, err
	}
	r, err := expr.Evaluate(ctx, in, variables, true, expr.Budget).Run(m.Program)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return nil, err
	}
	if m.patches {
		ops, err := expr.Operations(ctx, r.Value)
		if err != nil {
			return nil, err
		}
		return s.patch(ctx, ops)
	}
	fields, err := expr.Tree(ctx, r.Value)
	if err != nil {
		return nil, err
	}
	return s.apply(fields)
}

// apply merges fields into the object.
func (s *subject) apply(fields map[string]any) (runtime.Object, error) {
	fields["apiVersion"], fields["kind"] = s.target.Kind.ToAPIVersionAndKind()
	tree, err := ownership.Overlay(s.schemas, s.obj, fields)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", plain(err))
	}
	document, err := s.codec.Append(nil, tree)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	return s.read(document)
}

// operation is an operation of a JSON patch in its JSON form.
type operation struct {
	Op    string           `json:"op"`
	Path  string           `json:"path"`
	From  string           `json:"from,omitempty"`
	Value *json.RawMessage `json:"value,omitempty"`
}

// patch applies the operations of a JSON patch. If a test operation fails, the patch does not apply.
func (s *subject) patch(ctx context.Context, list []expr.Operation) (runtime.Object, error) {
	out := make([]operation, len(list))
	for i, o := range list {
		out[i] = operation{Op: o.Op, Path: o.Path, From: o.From}
		if o.HasValue {
			value, err := s.codec.Append(nil, o.Value)
			if err != nil {
				return nil, err
			}
			out[i].Value = (*json.RawMessage)(&value)
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	ops, err := apply.DecodeOperations(text)
	if err != nil {
		return nil, plain(err)
	}
	document, err := s.codec.Append(nil, s.obj)
	if err != nil {
		return nil, fmt.Errorf("failed to create JSON patch: %w", err)
	}
	document, err = ops.Apply(document, budget.New(ctx, "the patch of a mutating policy"))
	switch {
	case errors.Is(err, jsonpatch.ErrTest):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("JSON Patch: %w", plain(err))
	}
	return s.read(document)
}

// read makes an object of the result of a mutation.
func (s *subject) read(document []byte) (runtime.Object, error) {
	if len(document) > s.largest {
		return nil, fmt.Errorf("the object would have %d bytes, and %d are allowed", len(document), s.largest)
	}
	obj := s.empty()
	if _, err := codecs.Weigh(s.codec, document, obj); err != nil {
		return nil, plain(err)
	}
	problems, err := s.codec.Decode(document, obj, codecs.Warn)
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("strict decoding error: %s", strings.Join(problems, ", "))
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if got := obj.GetObjectKind().GroupVersionKind(); got != s.target.Kind {
		return nil, apierrors.NewInternalError(fmt.Errorf("a mutating policy made the object a %v", got))
	}
	return obj, nil
}

// plain turns an error about the request into one about the result of a policy.
func plain(err error) error {
	var st apierrors.APIStatus
	if errors.As(err, &st) {
		return errors.New(st.Status().Message)
	}
	return err
}
