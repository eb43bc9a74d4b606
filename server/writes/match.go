package writes

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

var metadataPath = field.NewPath("metadata")

// matchPath compares the name and namespace of an object with those of the path.
func matchPath(req *Request, obj metav1.Object) error {
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

// MatchNamespace checks that an object is in the namespace of the request's path, and sets its namespace.
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

// matchRevision compares the resource version that the client sent with the stored one.
func matchRevision(req *Request, obj kinds.Object, item *cache.Item) error {
	asked, err := askedRevision(obj)
	if err != nil {
		return err
	}
	switch {
	case asked == item.Revision, asked == 0 && unconditional(req):
		obj.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
		return nil
	case asked == 0:
		kind := schema.GroupKind{Group: req.Resource.Group, Kind: req.Resource.Plural}
		return status.Invalid(req.Resource.Release, kind, item.Name, field.ErrorList{
			field.Invalid(metadataPath.Child("resourceVersion"), uint64(0), "must be specified for an update"),
		})
	}
	return &staleError{asked: asked, err: apierrors.NewConflict(req.Resource.GroupResource(), item.Name, errors.New(status.Modified))}
}

// askedRevision returns the resource version that an update replaces; 0 if it names none.
func askedRevision(obj kinds.Object) (int64, error) {
	rv := obj.GetResourceVersion()
	if rv == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0, status.Plain((&strconv.NumError{Func: "ParseUint", Num: rv, Err: errors.Unwrap(err)}).Error())
	}
	return int64(min(n, math.MaxInt64)), nil // no revision is that large
}

func unconditional(req *Request) bool {
	if req.Sub != nil && req.Sub.Update != nil && req.Sub.Update.UnconditionalUpdate {
		return true
	}
	return req.Resource.Storage.UnconditionalUpdate
}

// staleError is a conflict with a resource version, or another precondition, that the client named.
type staleError struct {
	asked int64 // the revision up to which the cache must be complete for the conflict to count
	err   error
}

// PreconditionFailed marks an error of a client that means another object, or another state of it. A write that
// fails with it is tried again once, after every write of all servers has arrived.
func PreconditionFailed(err error) error { return &staleError{asked: math.MaxInt64, err: err} }

func (e *staleError) Error() string { return e.err.Error() }
func (e *staleError) Unwrap() error { return e.err }

// uidError compares the UID that a client expects with that of the object, which may be missing.
func uidError(req *Request, want, have types.UID) error {
	if want == "" || want == have {
		return nil
	}
	key := req.Resource.RegistryKey(req.place(req.Name).Namespace, req.Name)
	if req.DryRun { // a stock server checks it before it has read the key from etcd
		key = strings.TrimPrefix(key, "/registry")
	}
	return apierrors.NewConflict(req.Resource.GroupResource(), req.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
		key, want, have))
}
