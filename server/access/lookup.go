package access

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/release"
)

// API is the server's own API, called in process; server.Server is one.
type API interface {
	Call(ctx context.Context, agent, method, path, contentType string, body, into any) error
}

// Host gives authenticators access to the server.
type Host struct {
	Catalogue *kinds.Catalogue
	Cache     *cache.Cache
	Objects   *objects.Store
	API       API
}

// Unsigned returns the error of the service account authenticator for tokens without a valid signature; nil: its
// default.
func Unsigned(h Host) error {
	if h.Catalogue.Release().Has(release.JoseRenamed) {
		return errors.New("go-jose/go-jose: error in cryptographic primitive")
	}
	return nil
}

// Authentication is the result of Config.Authenticate.
type Authentication struct {
	Authenticator authx.Authenticator
	// Review verifies a token for a token review; see tokenverbs.Config. Nil: the server has no token
	// reviews.
	Review func(ctx context.Context, token string, audiences []string) (*authx.Authenticated, bool, error)
}

// Lookup gives authenticators the live objects of a server.
type Lookup struct{ host Host }

var (
	_ serviceaccount.Lookup = Lookup{}
	_ bootstrap.Lookup      = Lookup{}
)

// NewLookup makes a look-up of a server's objects.
func NewLookup(h Host) Lookup { return Lookup{h} }

// forAuthentication is the server's permit to read the objects to which credentials refer.
var forAuthentication = permits.OfServer("authentication")

// find decodes a live object of the core group; nil if there is none. If the cache does not have it, find
// asks the store.
func (l Lookup) find(ctx context.Context, plural, namespace, name string) (kinds.Object, error) {
	if name == "" {
		return nil, nil
	}
	at := objects.Place{Resource: l.host.Catalogue.Lookup("", "v1", plural), Namespace: namespace, Name: name}
	obj, _, err := l.host.Objects.Live(ctx, forAuthentication, at)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// Object implements serviceaccount.Lookup. It decodes only objects that are being deleted.
func (l Lookup) Object(ctx context.Context, plural, namespace, name string) (serviceaccount.Object, bool, error) {
	if item := l.host.Cache.Get(plural, namespace, name); item != nil && item.Err() == nil {
		if meta := item.Meta(); !meta.Deleting {
			return serviceaccount.Object{UID: meta.UID}, true, nil
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
func (l Lookup) Secret(ctx context.Context, namespace, name string) (serviceaccount.Secret, bool, error) {
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
func (l Lookup) BootstrapSecret(ctx context.Context, name string) (bootstrap.Secret, bool, error) {
	obj, err := l.find(ctx, "secrets", bootstrap.Namespace, name)
	if obj == nil || err != nil {
		return bootstrap.Secret{}, false, err
	}
	secret := obj.(*corev1.Secret)
	return bootstrap.Secret{Type: string(secret.Type), Data: secret.Data, Deleting: secret.DeletionTimestamp != nil}, true, nil
}
