package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// conversionFor bounds how long a webhook may take to convert objects.
const conversionFor = 30 * time.Second

// Webhook converts objects by asking a webhook.
type Webhook struct {
	Versions []string // of ConversionReview that the webhook knows, best first
	// Post sends a review and returns the answer.
	Post func(ctx context.Context, body []byte) ([]byte, error)
}

// Convert implements Converter. Errors have the texts of a stock server, and never those of the webhook
// itself: clients do not see its answer.
func (w *Webhook) Convert(ctx context.Context, to schema.GroupVersion, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	from := objs[0].GroupVersionKind()
	review, err := w.review(to, objs)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, conversionFor)
	defer cancel()
	answer, err := w.Post(within, body)
	if err != nil && ctx.Err() != nil { // the request is over: that is not the webhook's failure
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %v", from, err)
	}
	made, err := converted(review, answer)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %v", from, err)
	}
	if len(made) != len(objs) {
		return nil, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(made), len(objs))
	}
	out := make([]*unstructured.Unstructured, len(objs))
	for i := range made {
		if out[i], err = accept(objs[i], made[i].Raw, to); err == nil {
			continue
		}
		what := "invalid object"
		var metadata *metadataError
		var other *typeError
		switch {
		case errors.As(err, &metadata):
			what = "invalid metadata"
		case errors.As(err, &other) && len(objs) == 1:
			what += " at index 0"
		}
		switch {
		case len(objs) > 1 && metadata != nil:
			what += fmt.Sprintf(" in object at index %d", i)
		case len(objs) > 1:
			what = fmt.Sprintf("invalid converted object at index %d", i)
		}
		return nil, fmt.Errorf("conversion webhook for %v returned %s: %w", from, what, err)
	}
	return out, nil
}

// review returns the request to the webhook, in the first supported version of its list.
func (w *Webhook) review(to schema.GroupVersion, objs []*unstructured.Unstructured) (*apiextensionsv1.ConversionReview, error) {
	for _, version := range w.Versions {
		if version != "v1" && version != "v1beta1" {
			continue
		}
		r := &apiextensionsv1.ConversionReview{
			Request:  &apiextensionsv1.ConversionRequest{UID: types.UID(uuid.NewString()), DesiredAPIVersion: to.String()},
			Response: &apiextensionsv1.ConversionResponse{},
		}
		r.SetGroupVersionKind(schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: version, Kind: "ConversionReview"})
		for _, u := range objs {
			data, err := u.MarshalJSON()
			if err != nil {
				return nil, err
			}
			r.Request.Objects = append(r.Request.Objects, runtime.RawExtension{Raw: data})
		}
		return r, nil
	}
	return nil, errors.New("no supported conversion review versions")
}

// converted finds the objects in an answer. The kind in the older version of the review was never checked.
func converted(asked *apiextensionsv1.ConversionReview, answer []byte) ([]runtime.RawExtension, error) {
	got := &apiextensionsv1.ConversionReview{}
	if err := utiljson.Unmarshal(answer, got); err != nil {
		return nil, err
	}
	strict := asked.GroupVersionKind().Version == "v1"
	switch {
	case strict && got.GroupVersionKind() != asked.GroupVersionKind():
		return nil, fmt.Errorf("expected webhook response of %v, got %v", asked.GroupVersionKind(), got.GroupVersionKind())
	case got.Response == nil:
		return nil, errors.New("no response provided")
	case strict && got.Response.UID != asked.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", asked.Request.UID, got.Response.UID)
	case got.Response.Result.Status == metav1.StatusSuccess:
		return got.Response.ConvertedObjects, nil
	case got.Response.Result.Message != "":
		return nil, errors.New(got.Response.Result.Message)
	}
	return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", got.Response.Result.Status)
}

// metadataError returns why the metadata that a webhook returned is invalid.
type metadataError struct{ error }

func (e *metadataError) Unwrap() error { return e.error }

// typeError is the error for an object of another version or kind.
type typeError struct{ error }

func (e *typeError) Unwrap() error { return e.error }

// accept takes a converted object, which may differ in everything but its identity: of its metadata only
// labels and annotations are taken.
func accept(was *unstructured.Unstructured, data []byte, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if got := u.GroupVersionKind().GroupVersion(); got != to {
		return nil, &typeError{fmt.Errorf("invalid groupVersion (expected %v, received %v)", to, got)}
	}
	if want, got := was.GetKind(), u.GetKind(); want != got {
		return nil, &typeError{fmt.Errorf("invalid kind (expected %v, received %v)", want, got)}
	}
	for _, f := range []struct{ name, want, got string }{
		{"name", was.GetName(), u.GetName()},
		{"namespace", was.GetNamespace(), u.GetNamespace()},
		{"UID", string(was.GetUID()), string(u.GetUID())},
	} {
		if f.want != f.got {
			return nil, fmt.Errorf("must have the same %s: %v != %v", f.name, f.want, f.got)
		}
	}
	return u, restore(was, u)
}

// restore gives a converted object the metadata that it had, but for labels and
// annotations.
func restore(was, u *unstructured.Unstructured) error {
	given, ok := u.Object["metadata"]
	if !ok {
		return &metadataError{errors.New("missing metadata in converted object")}
	}
	now, ok := given.(map[string]any)
	if !ok {
		return &metadataError{fmt.Errorf("invalid metadata of type %T in converted object", given)}
	}
	before, _ := was.Object["metadata"].(map[string]any)
	kept := runtime.DeepCopyJSON(before)
	if kept == nil {
		kept = map[string]any{}
	}
	for name, validate := range map[string]func(map[string]string) field.ErrorList{
		"labels": func(m map[string]string) field.ErrorList {
			return metav1validation.ValidateLabels(m, field.NewPath("metadata", "labels"))
		},
		"annotations": func(m map[string]string) field.ErrorList {
			return apivalidation.ValidateAnnotations(m, field.NewPath("metadata", "annotation"))
		},
	} {
		if err := replaceTexts(kept, now, name, validate); err != nil {
			return &metadataError{err}
		}
	}
	u.Object["metadata"] = kept
	return nil
}

// replaceTexts replaces a map of texts in metadata by that of a webhook.
func replaceTexts(kept, now map[string]any, name string, validate func(map[string]string) field.ErrorList) error {
	given := now[name]
	if given == nil {
		delete(kept, name)
		return nil
	}
	texts, ok := given.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, given)
	}
	before, _ := kept[name].(map[string]any)
	changed := len(before) != len(texts)
	all := make(map[string]string, len(texts))
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
		}
		all[key] = text
		changed = changed || before[key] != value
	}
	if changed {
		if errs := validate(all); len(errs) > 0 {
			return rules.Aggregate(errs)
		}
	}
	kept[name] = texts
	return nil
}
