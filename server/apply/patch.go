package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/server/apply/document"
	"github.com/rowlock/rowlock/server/apply/merge"
)

// maxOperations bounds the length of a JSON Patch.
const maxOperations = 10000

// Patch is one patch request of type JSON Patch, merge patch or strategic merge
// patch. It may be applied to several versions of an object, as an update loop does.
type Patch struct {
	Type       string // a media type: codecs.PatchJSON, PatchMerge or PatchStrategic
	Body       []byte
	Strictness codecs.Strictness
	JSON       codecs.Codec // reads the patched document
	// Known is that of codecs.Expected, for patches that make an object one of another kind.
	Known func(schema.GroupVersionKind) (obj runtime.Object, known bool)
}

// Change makes the patched object, neither defaulted nor validated. kind is the
// kind that current is an object of, encoded its JSON form in that version; nil
// makes Change encode it. current is not changed. The warnings are unknown and
// duplicate fields under codecs.Warn; under codecs.Strict they are an error.
//
// Errors: 400 for a body that is no patch, 413 for too many operations, 422 for a
// patch that does not fit the object or makes it something else; plain errors for
// bad strategic directives, which a stock server answers with 500; 413 for more work than
// there is a budget for, and the error of ctx once that has ended.
func (p *Patch) Change(ctx context.Context, kind schema.GroupVersionKind, current runtime.Object, encoded []byte) (runtime.Object, []string, error) {
	if p.Type == codecs.PatchStrategic || p.Type == codecs.PatchMerge {
		if patched, ok := p.quick(current); ok {
			patched.GetObjectKind().SetGroupVersionKind(kind)
			return patched, nil, nil
		}
	}
	if p.Type == codecs.PatchStrategic {
		return p.strategic(kind, current)
	}
	return p.document(ctx, kind, current, encoded)
}

// document applies a patch to the JSON of the whole object.
func (p *Patch) document(ctx context.Context, kind schema.GroupVersionKind, current runtime.Object, encoded []byte) (runtime.Object, []string, error) {
	if encoded == nil {
		current.GetObjectKind().SetGroupVersionKind(kind)
		var err error
		if encoded, err = p.JSON.Encode(nil, current); err != nil {
			return nil, nil, fmt.Errorf("encoding the object to patch: %w", err)
		}
	}
	var out []byte
	var problems []string
	var err error
	switch p.Type {
	case codecs.PatchJSON:
		out, problems, err = p.operations(ctx, encoded)
	case codecs.PatchMerge:
		out, problems, err = p.merge(ctx, encoded)
	default:
		err = fmt.Errorf("unknown patch type %q", p.Type)
	}
	if err != nil {
		return nil, nil, err
	}
	patched := newLike(current)
	if _, err := codecs.Weigh(p.JSON, out, patched); err != nil {
		return nil, nil, err
	}
	found, err := p.decode(kind, out, patched)
	if err != nil {
		return nil, nil, invalidPatch(string(out), err.Error())
	}
	return p.judge(patched, append(problems, found...), func() string { return string(out) })
}

// judge turns unknown and duplicate fields into what the client asked for.
func (p *Patch) judge(patched runtime.Object, problems []string, value func() string) (runtime.Object, []string, error) {
	if len(problems) == 0 {
		return patched, nil, nil
	}
	switch p.Strictness {
	case codecs.Warn:
		return patched, problems, nil
	case codecs.Strict:
		return nil, nil, invalidPatch(value(), strictError(problems))
	}
	return patched, nil, nil
}

func strictError(problems []string) string {
	return "strict decoding error: " + strings.Join(problems, ", ")
}

func invalidPatch(value, detail string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), value, detail),
	})
}

// jsonPatchOp is the form of a JSON Patch operation, for strict decoding.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func (p *Patch) operations(ctx context.Context, encoded []byte) (out []byte, problems []string, err error) {
	if p.Strictness != codecs.Ignore {
		var ops []jsonPatchOp
		strict, err := kjson.UnmarshalStrict(p.Body, &ops)
		if err != nil {
			// Clients see the Go type in this message; a stock server's is named so.
			text := strings.ReplaceAll(err.Error(), "apply.jsonPatchOp", "handlers.jsonPatchOp")
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + text)
		}
		for _, e := range strict {
			problems = append(problems, "json patch "+e.Error())
		}
	}
	ops, err := DecodeOperations(p.Body)
	if err != nil {
		return nil, nil, err
	}
	out, err = ops.Apply(encoded, budget.New(ctx, "the JSON patch"))
	if err != nil {
		if ended(err) {
			return nil, nil, err
		}
		return nil, nil, unprocessable(err)
	}
	return out, problems, nil
}

// ended tells the errors of a budget, which say enough themselves.
func ended(err error) bool {
	var api apierrors.APIStatus
	return errors.As(err, &api) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// DecodeOperations reads a JSON Patch that came from elsewhere. How much it can do is
// bounded. Errors: 400 for what is no patch, 413 for too many operations.
func DecodeOperations(body []byte) (document.Patch, error) {
	ops, err := document.Decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(ops) > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(ops)))
	}
	return ops, nil
}

func (p *Patch) merge(ctx context.Context, encoded []byte) (out []byte, problems []string, err error) {
	if p.Strictness != codecs.Ignore {
		var tree map[string]any
		strict, err := kjson.UnmarshalStrict(p.Body, &tree)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
		problems = texts(strict)
	}
	out, err = document.Merge(encoded, p.Body, budget.New(ctx, "the merge patch"))
	if errors.Is(err, document.ErrNoPatch) {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return out, problems, err
}

// decode reads a patched document. The patch may have touched its kind.
func (p *Patch) decode(kind schema.GroupVersionKind, document []byte, into runtime.Object) ([]string, error) {
	got, err := p.JSON.Kind(document)
	if err != nil {
		return nil, err
	}
	if _, custom := into.(*unstructured.Unstructured); custom {
		return p.JSON.Decode(document, into, p.Strictness)
	}
	if got.Kind == "" {
		got.Kind = kind.Kind
	}
	if got.Kind == kind.Kind && got.GroupVersion().Empty() {
		// Without a version nothing in the document has a meaning.
		return p.undecodable(document)
	}
	if got != kind {
		if err := (codecs.Expected{GVK: kind, Known: p.Known}).Misfit(p.JSON, got, document); err != nil {
			return nil, err
		}
	}
	problems, err := p.JSON.Decode(document, into, p.Strictness)
	into.GetObjectKind().SetGroupVersionKind(kind)
	return problems, err
}

// undecodable reports every field of a document that has no version.
func (p *Patch) undecodable(document []byte) ([]string, error) {
	if p.Strictness == codecs.Ignore {
		return nil, nil
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	var problems []string
	for _, name := range sortedKeys(tree) {
		if name != "kind" && name != "apiVersion" {
			problems = append(problems, fmt.Sprintf("unknown field %q", name))
		}
	}
	return problems, nil
}

// strategic applies a strategic merge patch to the whole object as a tree.
func (p *Patch) strategic(kind schema.GroupVersionKind, current runtime.Object) (runtime.Object, []string, error) {
	if _, custom := current.(*unstructured.Unstructured); custom {
		return nil, nil, unprocessable(errors.New("strategic merge patch is not supported for custom resources"))
	}
	current.GetObjectKind().SetGroupVersionKind(kind)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the object to patch: %w", err)
	}
	patch := map[string]any{}
	var problems []string
	if p.Strictness == codecs.Ignore {
		err = kjson.UnmarshalCaseSensitivePreserveInts(p.Body, &patch)
	} else {
		var strict []error
		strict, err = kjson.UnmarshalStrict(p.Body, &patch)
		problems = texts(strict)
	}
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	merged, err := merge.Strategic(tree, patch, reflect.TypeOf(current).Elem())
	if err != nil {
		return nil, nil, strategicError(err)
	}
	patched := newLike(current)
	value := func() string { return fmt.Sprintf("%+v", patch) }
	if err := quantities.CheckTree(merged, reflect.TypeOf(patched)); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(merged, patched, p.Strictness != codecs.Ignore)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		problems = append(problems, texts(strict.Errors())...)
	} else if err != nil {
		return nil, nil, invalidPatch(value(), err.Error())
	}
	patched.GetObjectKind().SetGroupVersionKind(kind)
	return p.judge(patched, problems, value)
}

func strategicError(err error) error {
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat),
		errors.Is(err, merge.ErrNoScalar):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists),
		errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return unprocessable(err)
	}
	return err
}

// unprocessable is how a stock server says that a patch does not fit the object:
// without the reason, which it holds back.
func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

func newLike(obj runtime.Object) runtime.Object {
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{}
	}
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
}

func texts(errs []error) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}
