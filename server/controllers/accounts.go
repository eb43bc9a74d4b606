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

// mostAccountRest is how long a namespace is left alone at most whose account cannot be made.
const mostAccountRest = 15 * time.Second

// Accounts sees to it that each namespace has its default service account. Where it cannot be
// made, as those can bring about who may limit what a namespace holds, it is tried again later
// and later, and no other namespace waits for that.
type Accounts struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Queue *Queue        // nil: the work is not measured

	refused refused // by namespace
}

// Run works until ctx ends.
func (a *Accounts) Run(ctx context.Context) error {
	if a.Retry == 0 {
		a.Retry = time.Second
	}
	a.refused = refused{first: a.Retry, longest: mostAccountRest}
	return again(ctx, a.Retry, func(ctx context.Context) bool {
		a.follow(ctx)
		return true
	})
}

// follow looks at all namespaces, then at those where something changes, until the watchers
// are cut off.
func (a *Accounts) follow(ctx context.Context) {
	changes := &round{cache: a.Cache, every: time.Hour, retry: a.Retry, refused: &a.refused, together: several}
	changes.again = func(key objectKey) { a.ensure(ctx, key) }
	changes.sources = []source{
		changes.namespaces(),
		{storage: "serviceaccounts", scope: cache.Scope{Name: defaultAccount}, changed: func(batch []cache.Delivery) {
			for _, d := range batch {
				if d.Type == cache.Deleted {
					changes.see(objectKey{namespace: d.Item().Namespace})
				}
			}
		}},
	}
	changes.run(ctx)
}

// ensure makes the account where it is missing, unless the namespace is going.
func (a *Accounts) ensure(ctx context.Context, key objectKey) {
	if a.refused.waits(key, 0, time.Now()) {
		return
	}
	a.Queue.Add(1)
	if a.Queue.Work(func() bool { return a.settle(ctx, key.namespace) }) {
		a.refused.forget(key)
	} else if ctx.Err() == nil {
		a.refused.add(key, 0, time.Now())
	}
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
