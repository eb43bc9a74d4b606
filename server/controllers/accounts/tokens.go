package accounts

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// tokensAgent is the field manager of writes of Tokens.
const tokensAgent = "tokens-controller"

// tokens selects Secrets of the token type by the only field of core.SecretFields, which the cache knows without unpacking them.
var tokens = cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: string(corev1.SecretTypeServiceAccountToken)}})

// Tokens fills Secrets of the type kubernetes.io/service-account-token: with a token of the service account that they
// name, the authority of the API, and the name of their namespace. It deletes a Secret whose account does not exist, or
// has another UID.
//
// Clients that may create such a Secret get a token of any account in its namespace, as with a stock
// controller-manager. It costs one signature and one write for each.
type Tokens struct {
	reconcile.Base
	Authority reconcile.Authority
	// Issue signs a token of an account that is good as long as a Secret holds it.
	Issue func(namespace, account, uid, secret string) (string, error)
}

// Run works until ctx ends.
func (t *Tokens) Run(ctx context.Context) error {
	l := &reconcile.Loop{
		Base: t.Base, Begin: t.Authority.Begin, Resync: t.Authority.Resync(), MaxDebounceFactor: 1,
		Failure: "cannot fill or delete the Secret of a token",
	}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key.Name != "" {
			return r, t.reconcile(ctx, key)
		}
		t.Cache.Snapshot("secrets").Ascend(key.Namespace, "", "", func(item *cache.Item) bool {
			if holdsToken(item) {
				l.Queue.Add(reconcile.KeyOf(item), 0)
			}
			return ctx.Err() == nil
		})
		return r, nil
	}
	l.Sources = []reconcile.Source{l.Objects("secrets", holdsToken), {
		Storage: "serviceaccounts",
		Changed: func(d cache.Delivery) {
			if d.Type != cache.Modified { // created or deleted: one reconcile checks all Secrets of the namespace
				l.Queue.AddAfter(reconcile.Key{Namespace: d.Item().Namespace}, 0)
			}
		},
	}}
	return l.Run(ctx)
}

func holdsToken(item *cache.Item) bool {
	return item.Err() == nil && tokens.Match(item)
}

func (t *Tokens) reconcile(ctx context.Context, key reconcile.Key) error {
	var secret corev1.Secret
	item := t.Cache.Get("secrets", key.Namespace, key.Name)
	if !reconcile.Decode(item, &secret) || secret.Type != corev1.SecretTypeServiceAccountToken || secret.DeletionTimestamp != nil {
		return nil
	}
	account, wanted := secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey]
	if account == "" {
		return nil
	}
	if t.Cache.WaitFor(ctx, item.Revision) != nil { // the cache may show Secrets before accounts of the same commit
		return nil
	}
	var named metav1.PartialObjectMetadata
	if there := t.Cache.Get("serviceaccounts", key.Namespace, account); there != nil && !reconcile.Decode(there, &named) {
		return errors.New("its service account cannot be read") // the account's UID is unknown until then
	}
	path := "/api/v1/namespaces/" + key.Namespace + "/secrets/" + key.Name
	if uid := string(named.UID); uid == "" || wanted != "" && wanted != uid {
		return t.Delete(ctx, tokensAgent, path, item)
	}
	filled, err := t.fill(&secret, account, string(named.UID))
	if err != nil || filled == nil {
		return err
	}
	return t.API.Call(ctx, tokensAgent, http.MethodPut, path, reconcile.JSON, filled, nil)
}

// fill returns a Secret with its missing parts, or nil if none is missing. An existing token stays.
func (t *Tokens) fill(secret *corev1.Secret, account, uid string) (*corev1.Secret, error) {
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	if len(data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := t.Issue(secret.Namespace, account, uid, secret.Name)
		if err != nil {
			return nil, err
		}
		data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	data[corev1.ServiceAccountRootCAKey] = t.Authority.PEM
	data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	if maps.EqualFunc(data, secret.Data, bytes.Equal) && secret.Annotations[corev1.ServiceAccountUIDKey] == uid {
		return nil, nil
	}
	secret.Data = data
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, corev1.ServiceAccountUIDKey, uid)
	return secret, nil
}
