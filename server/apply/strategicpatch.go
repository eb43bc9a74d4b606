package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	kjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/codecs/view"
	"github.com/rowlock/rowlock/server/apply/strategic"
)

// changeTree applies a strategic merge patch to the whole object as a tree.
func (p *Patch) changeTree(ctx context.Context, kind schema.GroupVersionKind, current runtime.Object) (runtime.Object, []string, error) {
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
	merged, err := strategic.Merge(budget.New(ctx, "the strategic merge patch"), tree, patch, reflect.TypeOf(current).Elem())
	if err != nil {
		return nil, nil, strategicError(err)
	}
	p.Types.View().MarkTree(merged, reflect.TypeOf(current))
	patched := newLike(current)
	value := func() string { return view.Unmark(fmt.Sprintf("%+v", patch)) }
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
	return p.reportProblems(patched, problems, value)
}

// strategicError gives the errors of a merge the codes that a stock server gives them.
func strategicError(err error) error {
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat),
		errors.Is(err, strategic.ErrNoScalar):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists),
		errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return unprocessable(err)
	}
	return err
}
