package objects

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Unreadable is the error for an object whose stored value cannot be read: the answer of a stock server with
// the gate AllowUnsafeMalformedObjectDeletion.
type Unreadable struct {
	key      string
	revision int64
	sealed   bool // it cannot be decrypted
	listed   bool // found by a list
	cause    error
}

// Corrupt returns the error for an item. It does not name the provider and the key that encrypted the object:
// they are in the log and in the health check only.
func Corrupt(r *kinds.Resource, it *cache.Item) error { return unreadable(r, it) }

func unreadable(r *kinds.Resource, it *cache.Item) *Unreadable {
	e := &Unreadable{key: itemKey(r, it), revision: it.Revision, sealed: it.Sealed(), cause: it.Err()}
	if unsealed, ok := errors.AsType[*sqlstore.UnsealError](it.Err()); ok {
		e.cause = unsealed.Err
	}
	return e
}

// Error implements error.
func (e *Unreadable) Error() string { return e.Status().Message }

// Unwrap returns the cause.
func (e *Unreadable) Unwrap() error { return e.cause }

// Status implements apierrors.APIStatus.
func (e *Unreadable) Status() metav1.Status { return internal(errors.New(e.detail())) }

// Plain returns the answer without the gate: for a value that cannot be decrypted, a stock server returns
// only the cause.
func (e *Unreadable) Plain() error {
	switch {
	case !e.sealed:
		return e
	case e.listed:
		return apierrors.NewInternalError(fmt.Errorf("unable to transform key %q: %w", e.key, e.cause))
	}
	return apierrors.NewInternalError(e.cause)
}

func internal(err error) metav1.Status { return apierrors.NewInternalError(err).ErrStatus }

// detail returns the text of a stock server's storage.
func (e *Unreadable) detail() string {
	what := fmt.Sprintf("object not decodable revision=%d", e.revision)
	if e.sealed {
		what = "data from the storage is not transformable revision=0"
	}
	return fmt.Sprintf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %s: %v", e.key, what, e.cause)
}

// CorruptList returns the error for a list with unreadable objects; nil if there are none. With all set it names
// each of them, because they may be deleted unread; otherwise the first.
func CorruptList(r *kinds.Resource, items []*cache.Item, all bool) error {
	const most = 100
	var causes []metav1.StatusCause
	for _, it := range items {
		if it.Err() == nil {
			continue
		}
		if !all {
			first := unreadable(r, it)
			first.listed = true
			return first
		}
		if len(causes) == most {
			causes = append(causes, metav1.StatusCause{
				Type: metav1.CauseTypeUnexpectedServerResponse, Message: "too many errors, the list is truncated",
			})
			break
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: itemKey(r, it),
			Message: unreadable(r, it).detail(),
		})
	}
	if len(causes) == 0 {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("failed to read one or more %s from the storage", r.GroupResource()),
		Details: &metav1.StatusDetails{Group: r.Group, Kind: r.Plural, Causes: causes},
	}}
}

// itemKey returns the key of an item in a stock server's storage.
func itemKey(r *kinds.Resource, it *cache.Item) string {
	key := "/registry/" + r.Storage.Key + "/"
	if it.Namespace != "" {
		key += it.Namespace + "/"
	}
	return key + it.Name
}
