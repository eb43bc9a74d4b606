// Package status is the only place where errors become the API's Status. An unexpected error answers 500
// without its text, so that nothing internal leaks; an expected one has the code, reason, message and details
// of a stock server.
package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/sqlstore"
)

// Modified is the text of a conflict between two writers.
const Modified = "the object has been modified; please apply your changes to the latest version and try again"

const notAllowed = "the server does not allow this method on the requested resource"

// Of converts an error. resource names the requested resource if the error only has a key of the store.
// unknown means that the answer does not contain the error's text, which belongs in the log.
func Of(err error, resource schema.GroupResource) (st *metav1.Status, unknown bool) {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		return finish(new(api.Status())), false
	}
	if e := fromStore(err, resource); e != nil {
		return finish(new(e.Status())), false
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return TooLarge(tooLarge.Limit), false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return finish(new(apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0).Status())), false
	}
	s := apierrors.NewInternalError(errors.New("the error was written to the server's log")).Status()
	s.Details = nil
	return finish(&s), true
}

// fromStore maps the store's errors, or returns nil.
func fromStore(err error, gr schema.GroupResource) *apierrors.StatusError {
	var (
		notFound  *sqlstore.NotFoundError
		exists    *sqlstore.ExistsError
		conflict  *sqlstore.ConflictError
		compacted *sqlstore.CompactedError
		future    *sqlstore.FutureError
		corrupt   *sqlstore.CorruptError
		sealing   *sqlstore.SealError
	)
	switch {
	case errors.As(err, &sealing): // first: the error that it wraps is not that of this request
		return unsealed(sealing)
	case errors.As(err, &notFound):
		return apierrors.NewNotFound(named(gr, notFound.Key), notFound.Key.Name)
	case errors.As(err, &exists):
		return apierrors.NewAlreadyExists(named(gr, exists.Key), exists.Key.Name)
	case errors.As(err, &conflict):
		return apierrors.NewConflict(named(gr, conflict.Key), conflict.Key.Name, errors.New(Modified))
	case errors.As(err, &compacted):
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", compacted.Revision, compacted.Floor))
	case errors.As(err, &future):
		return Future(future.Revision, future.Head)
	case errors.As(err, &corrupt) && corrupt.Key == (sqlstore.Key{}):
		return unavailable("the store is damaged, as the server's log says in detail")
	case errors.As(err, &corrupt):
		return apierrors.NewInternalError(fmt.Errorf("the stored object %s cannot be read", corrupt.Key))
	case errors.Is(err, sqlstore.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError("the object is too large to be stored")
	case errors.Is(err, sqlstore.ErrUncertain):
		return apierrors.NewTimeoutError("the outcome of the write is unknown", 1)
	case errors.Is(err, sqlstore.ErrFull):
		return unavailable("the store is full")
	case errors.Is(err, sqlstore.ErrGone):
		return unavailable("the store's database is not where it was, or its disk failed: nothing can be written")
	case errors.Is(err, sqlstore.ErrReadOnly):
		return unavailable("the store is read-only")
	case errors.Is(err, sqlstore.ErrRefused):
		return unavailable("the store's database refuses what the server needs to do, as the server's log says in detail")
	case errors.Is(err, sqlstore.ErrRewound):
		return unavailable("the database has gone back to an older state: all objects are loaded anew, please try again")
	case errors.Is(err, sqlstore.ErrLeadLost):
		return unavailable("another server runs the controller now")
	case errors.Is(err, sqlstore.ErrUnavailable), errors.Is(err, sqlstore.ErrBusy), errors.Is(err, sqlstore.ErrClosed):
		return unavailable("the store is not available, please try again")
	}
	return nil
}

// unsealed returns the answer to a write whose value cannot be encrypted: the reason, without the provider and the
// key. Its text is always that the key is unavailable, whatever a plugin's text, because the server detects this
// failure by it.
func unsealed(e *sqlstore.SealError) *apierrors.StatusError {
	if away := sqlstore.ErrKeyUnavailable; errors.Is(e.Err, away) && !strings.Contains(e.Err.Error(), away.Error()) {
		return apierrors.NewInternalError(fmt.Errorf("%w: %w", away, e.Err))
	}
	return apierrors.NewInternalError(e.Err)
}

// named prefers the resource name in the request.
func named(gr schema.GroupResource, k sqlstore.Key) schema.GroupResource {
	if gr.Resource != "" {
		return gr
	}
	return schema.ParseGroupResource(k.Resource)
}

func unavailable(text string) *apierrors.StatusError {
	e := apierrors.NewServiceUnavailable(text)
	e.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return e
}

// Future returns the answer to a version that the server has not seen yet.
func Future(asked, current int64) *apierrors.StatusError {
	e := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return e
}

// Show makes a 500 of an error whose text a client may read, such as why a patch is invalid. API statuses,
// and the end of a request, stay as they are.
func Show(err error) error {
	var api apierrors.APIStatus
	if errors.As(err, &api) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Plain(err.Error())
}

// Plain returns a 500 without a reason but with the text of the error, for errors that stock servers show and
// clients match.
func Plain(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message,
	}}
}

// NoResource returns the 404 for a version, resource or subresource that is not served.
func NoResource() *apierrors.StatusError {
	return bare(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// NotAllowed returns the 405 for a method that a resource does not have.
func NotAllowed() *apierrors.StatusError {
	return bare(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, notAllowed)
}

func bare(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	}}
}

// TooLarge returns the 413 for a request body over limit bytes.
func TooLarge(limit int64) *metav1.Status {
	return finish(new(apierrors.NewRequestEntityTooLargeError("limit is " + strconv.FormatInt(limit, 10)).Status()))
}

// finish sets the fields that every Status has. Another server may have chosen the code: one that cannot be that of an
// answer counts as missing.
func finish(s *metav1.Status) *metav1.Status {
	s.Kind, s.APIVersion = "Status", "v1"
	if s.Status == "" {
		s.Status = metav1.StatusFailure
	}
	limit(s)
	if s.Code < http.StatusOK || s.Code > 999 {
		s.Code = http.StatusInternalServerError
		if s.Status == metav1.StatusSuccess {
			s.Code = http.StatusOK
		}
	}
	return s
}
