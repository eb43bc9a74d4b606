// Package accounts maintains the credentials of pods in each namespace: the default service account, the
// tokens in Secrets, and the CA certificate that pods trust.
package accounts

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	defaultAgent = "serviceaccount-controller" // field manager of Default's writes

	// DefaultAccount is the service account of pods that name none.
	DefaultAccount = "default"

	// longestBackoff is the maximum backoff of a namespace whose account cannot be created.
	longestBackoff = 15 * time.Second

	// atOnce is the number of namespaces that are reconciled concurrently, so that their writes share commits, even
	// those of the thousands of namespaces of a new server.
	atOnce = 16
)

// Default keeps the default service account of each namespace. Clients that may limit the content of a
// namespace can make that fail; it is retried, and no other namespace waits for it.
type Default struct{ reconcile.Base }

// Run works until ctx ends.
func (a *Default) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: a.Base, Reconcile: a.reconcile, Failure: "cannot create the default service account of a namespace", Workers: atOnce, Longest: longestBackoff}
	l.Sources = []reconcile.Source{l.Namespaces(), {
		Storage: "serviceaccounts", Scope: cache.Scope{Name: DefaultAccount},
		Gone: func(item *cache.Item) { l.Queue.Add(reconcile.Key{Namespace: item.Namespace}, 0) },
	}}
	return l.Run(ctx)
}

func (a *Default) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	if a.Cache.Get("serviceaccounts", key.Namespace, DefaultAccount) != nil || !lasts(&a.Base, key.Namespace) {
		return r, nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: DefaultAccount}}
	return r, unlessTerminating(a.API.Call(ctx, defaultAgent, http.MethodPost, "/api/v1/namespaces/"+key.Namespace+"/serviceaccounts", reconcile.JSON, account, nil))
}

// lasts reports whether a namespace is there and not being deleted.
func lasts(b *reconcile.Base, namespace string) bool {
	item := b.Cache.Get("namespaces", "", namespace)
	return item != nil && !item.Meta().Deleting
}

// unlessTerminating drops the error of a namespace that has begun to terminate in the meantime.
func unlessTerminating(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}
