package apply

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/view"
)

// Patch is one patch request of type JSON Patch, merge patch or strategic merge
// patch. It may be applied to several versions of an object, as an update loop does.
type Patch struct {
	Type       string // a media type: codecs.PatchJSON, PatchMerge or PatchStrategic
	Body       []byte
	Strictness codecs.Strictness
	JSON       codecs.Codec    // reads the patched document
	Types      codecjson.Codec // knows which fields the types have
	// Known is as in codecs.Expected, for patches that change the kind of an object.
	Known func(schema.GroupVersionKind) (obj runtime.Object, known bool)
}

// Change makes the patched object, neither defaulted nor validated. kind is the
// kind that current is an object of, encoded its JSON form in that version; nil
// makes Change encode it. current is not changed. The patched object may share
// values other than metadata with a current that has no Go type. The warnings are
// unknown and duplicate fields under codecs.Warn; under codecs.Strict they are an error.
//
// Errors: 400 for a body that is no patch, 413 for too many operations, 422 for a
// patch that does not fit the object or makes it something else; plain errors for
// bad strategic directives, which a stock server answers with 500; 413 for more work than
// there is a budget for, and the error of ctx once that has ended.
func (p *Patch) Change(ctx context.Context, kind schema.GroupVersionKind, current runtime.Object, encoded []byte) (runtime.Object, []string, error) {
	if p.Type == codecs.PatchMerge || p.Type == codecs.PatchStrategic {
		if out, ok := changeDirectly(p, current); ok {
			out.GetObjectKind().SetGroupVersionKind(kind)
			return out, nil, nil
		}
	}
	if out, ok := p.mergeTree(ctx, current, encoded); ok {
		return out, nil, nil
	}
	if p.Type == codecs.PatchStrategic {
		return p.changeTree(ctx, kind, current)
	}
	return p.changeDocument(ctx, kind, current, encoded)
}

// reportProblems turns unknown and duplicate fields into the errors or warnings of the client's fieldValidation.
func (p *Patch) reportProblems(patched runtime.Object, problems []string, value func() string) (runtime.Object, []string, error) {
	if len(problems) == 0 {
		return patched, nil, nil
	}
	switch p.Strictness {
	case codecs.Warn:
		return patched, problems, nil
	case codecs.Strict:
		return nil, nil, invalidPatch(value(), "strict decoding error: "+strings.Join(problems, ", "))
	}
	return patched, nil, nil
}

func invalidPatch(value, detail string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), value, detail),
	})
}

// unprocessable returns the error of a stock server for a patch that does not fit the object:
// without the reason, which it does not send.
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
		out = append(out, view.Unmark(e.Error()))
	}
	return out
}
