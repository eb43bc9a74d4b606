package writes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

var forOrphans = permits.OfServer("new objects whose namespace or definition is gone")

// undoFor is how long undoOrphan tries to delete an object, whether or not its client still waits.
const undoFor = 10 * time.Second

// undoOrphan deletes a new object again, and returns why, if its namespace or its definition had been deleted before the object was
// stored, or if the definition has begun to remove its objects since the request came. Admission looks for the namespace before
// webhooks are called, and does not wait for the writes of other servers; when a commit returns, the cache has all earlier writes.
func (w *Writer) undoOrphan(ctx context.Context, req *Request, item *cache.Item, obj kinds.Object) error {
	why := w.orphaned(req, item)
	if why == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
	defer cancel()
	own := *req
	own.Permit = forOrphans
	for created := item.Created(); item.Created() == created; {
		_, err := w.erase(ctx, &own, item, obj)
		if err == nil {
			break
		}
		if err := w.Objects.AwaitConflict(ctx, err); err != nil {
			return fmt.Errorf("deleting an object whose namespace or definition is gone: %w", err)
		}
		obj, item, err = w.Objects.Live(ctx, forOrphans, own.place(item.Name))
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return err
		}
	}
	return why
}

// orphaned returns why a new object must be deleted again; nil: it may stay.
func (w *Writer) orphaned(req *Request, item *cache.Item) error {
	if !req.Resource.HasGoType() { // the commit has followed the definitions
		if r := w.Objects.Home(req.Resource.Storage); r == nil || r.Ending && !req.Resource.Ending {
			return apierrors.NewForbidden(req.Resource.GroupResource(), item.Name, errors.New(EndingText))
		}
	}
	if w.AnyNamespace || item.Namespace == "" || w.Objects.NamespaceExisted(item) {
		return nil
	}
	return apierrors.NewNotFound(corev1.Resource("namespaces"), item.Namespace)
}
