package objects

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// Corrupt is the refusal of an object whose stored value cannot be read.
func Corrupt(r *kinds.Resource, it *cache.Item) error {
	return apierrors.NewInternalError(unreadable(r, it))
}

func unreadable(r *kinds.Resource, it *cache.Item) error {
	what := "decodable"
	if it.Sealed {
		what = "transformable"
	}
	return fmt.Errorf("StorageError: corrupt object, Code: 1, Key: %s, ResourceVersion: %d, AdditionalErrorMsg: "+
		"data from the storage is not %s revision=%d: %w", itemKey(r, it), it.Revision, what, it.Revision, it.Corrupt)
}

// CorruptList is the refusal of a list with objects that cannot be read; nil where there
// is none. With all it names each of them, as those may be deleted unread; else the first.
func CorruptList(r *kinds.Resource, items []*cache.Item, all bool) error {
	const most = 100
	var causes []metav1.StatusCause
	for _, it := range items {
		if it.Corrupt == nil {
			continue
		}
		if !all {
			return Corrupt(r, it)
		}
		if len(causes) == most {
			causes = append(causes, metav1.StatusCause{
				Type: metav1.CauseTypeUnexpectedServerResponse, Message: "too many errors, the list is truncated",
			})
			break
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: itemKey(r, it),
			Message: unreadable(r, it).Error(),
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

// itemKey names an item as the store of a stock server does.
func itemKey(r *kinds.Resource, it *cache.Item) string {
	key := "/registry/" + r.Storage.Key + "/"
	if it.Namespace != "" {
		key += it.Namespace + "/"
	}
	return key + it.Name
}
