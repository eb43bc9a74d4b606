package clusterinfo

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const cleanerAgent = "token-cleaner" // field manager of TokenCleaner's writes

// TokenCleaner deletes Secrets of bootstrap tokens that have expired.
type TokenCleaner struct{ reconcile.Base }

// Run works until ctx ends.
func (c *TokenCleaner) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: c.Base, Reconcile: c.reconcile, Failure: "cannot delete an expired bootstrap token"}
	tokens := l.Objects("secrets", isToken)
	tokens.Scope = cache.Scope{Namespace: metav1.NamespaceSystem}
	l.Sources = []reconcile.Source{tokens}
	return l.Run(ctx)
}

func (c *TokenCleaner) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	item := c.Cache.Get("secrets", key.Namespace, key.Name)
	token := tokenOf(item)
	if token == nil {
		return r, nil
	}
	switch left, ends := bootstrap.Remaining(token.Data, c.Now()); {
	case !ends:
		return r, nil
	case left > 0:
		return reconcile.Result{After: left}, nil
	}
	return r, c.Delete(ctx, cleanerAgent, "/api/v1/namespaces/"+key.Namespace+"/secrets/"+key.Name, item)
}

func isToken(item *cache.Item) bool { return strings.HasPrefix(item.Name, bootstrap.NamePrefix) }

// tokenOf returns the Secret of a bootstrap token; nil: invalid.
func tokenOf(item *cache.Item) *corev1.Secret {
	s := &corev1.Secret{}
	if !reconcile.Decode(item, s) || s.Type != bootstrap.SecretType {
		return nil
	}
	return s
}
