package writes

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
)

// recency ensures that a write which stores nothing is answered by what all servers had written before the request. A commit
// needs no such check: it fails if another server has changed the object.
type recency struct {
	caughtUp bool // an attempt has waited for every write of all servers
}

// check must be called before a refusal, the answer to a dry run, or an answer that nothing has changed. After the first call,
// items are newer than the request, and their later changes do not matter.
func (r *recency) check(ctx context.Context, w *Writer, p permits.Permit, at objects.Place, item *cache.Item) error {
	if r.caughtUp {
		return nil
	}
	r.caughtUp = true
	return w.Objects.Current(ctx, p, at, item)
}

// refused reports whether an error refuses a write because of its content or that of the object.
func refused(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || errors.As(err, new(*staleError)) {
		return false
	}
	code := answer.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
