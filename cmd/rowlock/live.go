package main

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
)

// live shows authenticators the objects of the server that they serve, which is
// made after them.
type live struct{ server atomic.Pointer[server.Server] }

// find decodes a live object of the core group; nil where there is none. What the
// cache does not have the store is asked for.
func (l *live) find(ctx context.Context, plural, namespace, name string) (kinds.Object, error) {
	s := l.server.Load()
	if s == nil || name == "" {
		return nil, nil
	}
	at := objects.Place{Resource: s.Config().Catalogue.Lookup("", "v1", plural), Namespace: namespace, Name: name}
	obj, _, err := s.Verbs.Objects.Live(ctx, permits.OfServer("authentication"), at)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// Object implements serviceaccount.Lookup. What is not being deleted is not decoded.
func (l *live) Object(ctx context.Context, plural, namespace, name string) (serviceaccount.Object, bool, error) {
	if s := l.server.Load(); s != nil {
		if item := s.Cache.Get(plural, namespace, name); item != nil && item.Corrupt == nil {
			if meta := item.Meta(); !meta.Deleting {
				return serviceaccount.Object{UID: meta.UID}, true, nil
			}
		}
	}
	obj, err := l.find(ctx, plural, namespace, name)
	if obj == nil || err != nil {
		return serviceaccount.Object{}, false, err
	}
	return describe(obj), true, nil
}

func describe(obj kinds.Object) serviceaccount.Object {
	o := serviceaccount.Object{UID: string(obj.GetUID())}
	if t := obj.GetDeletionTimestamp(); t != nil {
		o.Deleted = t.Time
	}
	return o
}

// Secret implements serviceaccount.Lookup.
func (l *live) Secret(ctx context.Context, namespace, name string) (serviceaccount.Secret, bool, error) {
	obj, err := l.find(ctx, "secrets", namespace, name)
	if obj == nil || err != nil {
		return serviceaccount.Secret{}, false, err
	}
	secret := obj.(*corev1.Secret)
	return serviceaccount.Secret{
		Object: describe(secret), Token: secret.Data[corev1.ServiceAccountTokenKey],
		Invalid: secret.Labels[legacyInvalidLabel] != "", LastUsed: secret.Labels[legacyUsedLabel],
	}, true, nil
}

// BootstrapSecret implements bootstrap.Lookup.
func (l *live) BootstrapSecret(ctx context.Context, name string) (bootstrap.Secret, bool, error) {
	obj, err := l.find(ctx, "secrets", bootstrap.Namespace, name)
	if obj == nil || err != nil {
		return bootstrap.Secret{}, false, err
	}
	secret := obj.(*corev1.Secret)
	return bootstrap.Secret{Type: string(secret.Type), Data: secret.Data, Deleting: secret.DeletionTimestamp != nil}, true, nil
}
