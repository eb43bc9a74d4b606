package writes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

var forOrphans = permits.OfServer("new objects whose namespace is gone")

// undoFor is how long undoOrphan tries to delete an object, whether or not its client still waits.
const undoFor = 10 * time.Second

// undoOrphan deletes a new object again, and returns the 404 of its namespace, if the namespace had been deleted before the object
// was stored. Admission looks for the namespace before webhooks are called, and does not wait for the writes of other servers;
// when a commit returns, the cache has all earlier writes.
func (w *Writer) undoOrphan(ctx context.Context, req *Request, item *cache.Item, obj kinds.Object) error {
	if w.AnyNamespace || item.Namespace == "" || w.Objects.NamespaceExisted(item) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
	defer cancel()
	own := *req
	own.Permit = forOrphans
	missing := apierrors.NewNotFound(corev1.Resource("namespaces"), item.Namespace)
	for created := item.Created; item.Created == created; {
		_, err := w.erase(ctx, &own, item, obj)
		if err == nil {
			break
		}
		if err := w.Objects.Overtaken(ctx, err); err != nil {
			return fmt.Errorf("deleting an object whose namespace is gone: %w", err)
		}
		obj, item, err = w.Objects.Live(ctx, forOrphans, own.place(item.Name))
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return err
		}
	}
	return missing
}
