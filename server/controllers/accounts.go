package controllers

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

// accountsAgent is the field manager of what this controller writes.
const accountsAgent = "serviceaccount-controller"

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

// Accounts sees to it that each namespace has its default service account.
type Accounts struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Queue *Queue        // nil: the work is not measured
}

// Run works until ctx ends.
func (a *Accounts) Run(ctx context.Context) error {
	return again(ctx, a.Retry, func(ctx context.Context) bool {
		a.follow(ctx)
		return false
	})
}

// follow looks at all namespaces, then at those where something changes. It returns
// when a look failed, or the watchers were cut off, so that Run begins again.
func (a *Accounts) follow(ctx context.Context) {
	namespaces, snapshot := a.Cache.WatchNow("namespaces", cache.Scope{})
	defer namespaces.Stop()
	accounts, _ := a.Cache.WatchNow("serviceaccounts", cache.Scope{Name: defaultAccount})
	defer accounts.Stop()
	ok := true
	snapshot.Ascend("", "", "", func(item *cache.Item) bool {
		ok = a.ensure(ctx, item.Name)
		return ok
	})
	var batch []cache.Delivery
	for ok {
		for w, namespaceOf := range map[*cache.Watcher]func(*cache.Item) string{
			namespaces: func(i *cache.Item) string { return i.Name },
			accounts:   func(i *cache.Item) string { return i.Namespace },
		} {
			var err error
			if batch, _, err = w.Take(ctx, batch); err != nil {
				return
			}
			for _, d := range batch {
				// A namespace that comes, an account that goes.
				if (w == namespaces) != (d.Type == cache.Deleted) {
					ok = a.ensure(ctx, namespaceOf(d.Item())) && ok
				}
			}
		}
		select {
		case <-namespaces.Ready():
		case <-accounts.Ready():
		case <-ctx.Done():
			return
		}
	}
}

// ensure makes the account where it is missing, unless the namespace is going.
func (a *Accounts) ensure(ctx context.Context, namespace string) bool {
	a.Queue.add(1)
	return a.Queue.work(func() bool { return a.settle(ctx, namespace) })
}

func (a *Accounts) settle(ctx context.Context, namespace string) bool {
	if a.Cache.Get("serviceaccounts", namespace, defaultAccount) != nil {
		return true
	}
	if ns := a.Cache.Get("namespaces", "", namespace); ns == nil || ns.Meta().Deleting {
		return true
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultAccount}}
	err := a.API.Call(ctx, accountsAgent, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts", "application/json", account, nil)
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	a.Log.Warn("cannot make the default service account", "namespace", namespace, "error", err)
	return false
}
