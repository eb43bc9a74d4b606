package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

// accountTokensAgent is the field manager of what this controller writes.
const accountTokensAgent = "tokens-controller"

// accountTokenMark stands in the stored form of each Secret that is to hold a token.
var accountTokenMark = []byte(`"type":"` + string(corev1.SecretTypeServiceAccountToken) + `"`)

// AccountTokens fills Secrets of the type kubernetes.io/service-account-token: with a
// token of the service account that they name, the authority of the API, and the name of
// their namespace. A Secret whose account is not there, or is another one of that name,
// is deleted.
//
// Who may create such a Secret gets a token of any account in its namespace, as with a
// stock controller-manager. It costs one signature and one write for each.
type AccountTokens struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	// Issue signs a token of an account that is good as long as a Secret holds it.
	Issue func(namespace, account, uid, secret string) (string, error)
	PEM   func() ([]byte, error) // the authority; asked again every Every
	Every time.Duration          // 0: a minute
	Retry time.Duration          // how soon a failure is tried again; 0: 1 second
	Rest  time.Duration          // for how long it leaves a change alone
	Moves Moves                  // of the clock
	Queue *Queue                 // nil: the work is not measured

	refused refused
}

// Run works until ctx ends.
func (a *AccountTokens) Run(ctx context.Context) error {
	if a.Every == 0 {
		a.Every = time.Minute
	}
	if a.Retry == 0 {
		a.Retry = time.Second
	}
	a.refused = refused{first: a.Retry, longest: mostRest}
	return again(ctx, a.Retry, a.follow)
}

// follow looks at all such Secrets, then at those that change or whose account does,
// until it is time to read the authority again (true) or it cannot be read (false).
func (a *AccountTokens) follow(ctx context.Context) bool {
	pem, err := a.PEM()
	if err != nil {
		a.Log.Warn("cannot read the authority that Secrets of tokens hold", "error", err)
		return false
	}
	changes := &round{cache: a.Cache, every: a.Every, retry: a.Retry, refused: &a.refused, moves: a.Moves, settled: settled{rest: a.Rest}}
	changes.again = func(key objectKey) {
		a.Queue.Add(1)
		a.Queue.Work(func() bool { return a.settle(ctx, key.namespace, key.name, pem) })
	}
	look := func(item *cache.Item) bool {
		key := objectKey{item.Namespace, item.Name}
		if item.Corrupt == nil && bytes.Contains(item.JSON(), accountTokenMark) && !a.refused.waits(key, item.Revision, time.Now()) {
			changes.see(key)
		}
		return true
	}
	changes.sources = []source{
		{storage: "secrets", there: look, changed: func(batch []cache.Delivery) {
			for _, d := range batch {
				if d.Type != cache.Deleted {
					look(d.Item())
				}
			}
		}},
		{storage: "serviceaccounts", changed: func(batch []cache.Delivery) {
			namespaces := map[string]bool{} // each is looked through once, however many accounts of it come and go
			for _, d := range batch {
				if d.Type != cache.Modified { // one that comes, one that goes
					namespaces[d.Item().Namespace] = true
				}
			}
			for namespace := range namespaces {
				a.Cache.Snapshot("secrets").Ascend(namespace, namespace, "", func(item *cache.Item) bool { return look(item) && ctx.Err() == nil })
			}
		}},
	}
	changes.run(ctx)
	return true
}

// settle does it. What cannot be written, which one who may write the Secret can bring
// about, is tried again later and later, and holds up nobody.
func (a *AccountTokens) settle(ctx context.Context, namespace, name string, pem []byte) bool {
	var secret corev1.Secret
	key := objectKey{namespace, name}
	item := a.Cache.Get("secrets", namespace, name)
	if item == nil || item.Corrupt != nil || json.Unmarshal(item.JSON(), &secret) != nil || secret.Type != corev1.SecretTypeServiceAccountToken || secret.DeletionTimestamp != nil {
		a.refused.forget(key)
		return true
	}
	account, wanted := secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey]
	if account == "" {
		a.refused.forget(key)
		return true
	}
	if a.Cache.WaitFor(ctx, item.Revision) != nil { // an account that was made before is there then
		return true
	}
	uid, ok := a.uid(namespace, account)
	if !ok { // until the account can be read, nobody knows whose token it is
		a.refused.add(key, item.Revision, time.Now())
		return false
	}
	path := "/api/v1/namespaces/" + namespace + "/secrets/" + name
	var err error
	if uid == "" || wanted != "" && wanted != uid {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}}
		err = a.API.Call(ctx, accountTokensAgent, http.MethodDelete, path, "application/json", &options, nil)
	} else {
		var filled *corev1.Secret
		if filled, err = a.fill(&secret, account, uid, pem); err == nil && filled != nil {
			err = a.API.Call(ctx, accountTokensAgent, http.MethodPut, path, "application/json", filled, nil)
		}
	}
	switch {
	case err == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err), ctx.Err() != nil:
		a.refused.forget(key)
		return true // what others did comes as a change
	}
	a.refused.add(key, item.Revision, time.Now())
	a.Log.Warn("cannot settle the Secret of a token", "namespace", namespace, "name", name, "error", err)
	return false
}

// uid is that of an account; empty: it is not there. Not ok: it cannot be read.
func (a *AccountTokens) uid(namespace, account string) (uid string, ok bool) {
	item := a.Cache.Get("serviceaccounts", namespace, account)
	if item == nil {
		return "", true
	}
	var partial metav1.PartialObjectMetadata
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), &partial) != nil {
		return "", false
	}
	return string(partial.UID), true
}

// fill is a Secret with what it lacks, or nil if it lacks nothing. A token that it has
// stays.
func (a *AccountTokens) fill(secret *corev1.Secret, account, uid string, pem []byte) (*corev1.Secret, error) {
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	if len(data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := a.Issue(secret.Namespace, account, uid, secret.Name)
		if err != nil {
			return nil, err
		}
		data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	data[corev1.ServiceAccountRootCAKey] = pem
	data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	if maps.EqualFunc(data, secret.Data, bytes.Equal) && secret.Annotations[corev1.ServiceAccountUIDKey] == uid {
		return nil, nil
	}
	filled := secret.DeepCopy()
	filled.Data = data
	metav1.SetMetaDataAnnotation(&filled.ObjectMeta, corev1.ServiceAccountUIDKey, uid)
	return filled, nil
}
