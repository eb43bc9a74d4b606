package writes

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var metadataPath = field.NewPath("metadata")

// MatchPath compares the name and namespace of an object with those of the path.
func MatchPath(req *Request, obj metav1.Object) error {
	if err := namespaceError(req, obj); err != nil {
		return err
	}
	name := obj.GetName()
	if name == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", req.Name))
	}
	if name != req.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, req.Name))
	}
	return nil
}

// namespaceError compares the namespace of an object with that of the path.
func namespaceError(req *Request, obj metav1.Object) error {
	if ns := obj.GetNamespace(); req.Resource.Namespaced && ns != "" && ns != req.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// MatchNamespace checks that an object is of the namespace of the request's path, and
// fills it in.
func MatchNamespace(req *Request, obj metav1.Object) error {
	if !req.Resource.Namespaced {
		obj.SetNamespace("")
		return nil
	}
	if err := namespaceError(req, obj); err != nil {
		return err
	}
	obj.SetNamespace(req.Namespace)
	return nil
}
