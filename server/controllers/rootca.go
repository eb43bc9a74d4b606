package controllers

import (
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

const (
	rootCAMap = "kube-root-ca.crt"
	rootCAKey = "ca.crt"

	descriptionAnnotation = "kubernetes.io/description"

	rootCAText = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
	// rootCAAgent is the field manager of what this controller writes.
	rootCAAgent = "root-ca-certificate-publisher-controller"
)

// RootCA puts the certificates that pods check the server with into a ConfigMap of
// each namespace.
type RootCA struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	PEM   func() ([]byte, error) // the certificates; asked again every Every
	Every time.Duration          // 0: a minute
	Retry time.Duration          // how soon a failure is tried again; 0: 1 second
	Rest  time.Duration          // for how long it leaves a change alone
	Moves Moves                  // of the clock
	Queue *Queue                 // nil: the work is not measured

	refused refused // by namespace
}

// Run works until ctx ends.
func (r *RootCA) Run(ctx context.Context) error {
	if r.Every == 0 {
		r.Every = time.Minute
	}
	if r.Retry == 0 {
		r.Retry = time.Second
	}
	r.refused = refused{first: r.Retry, longest: mostRest}
	return again(ctx, r.Retry, r.follow)
}

// follow looks at all namespaces, then at those where something changes, until it is
// time to read the certificates again (true) or they cannot be read (false).
func (r *RootCA) follow(ctx context.Context) bool {
	pem, err := r.PEM()
	if err != nil {
		r.Log.Warn("cannot read the authority that pods are to trust", "error", err)
		return false
	}
	changes := &round{cache: r.Cache, every: r.Every, retry: r.Retry, refused: &r.refused, moves: r.Moves, settled: settled{rest: r.Rest}, together: several}
	changes.again = func(key objectKey) { r.ensure(ctx, key.namespace, string(pem)) }
	changes.sources = []source{
		changes.namespaces(),
		{storage: "configmaps", scope: cache.Scope{Name: rootCAMap}, changed: func(batch []cache.Delivery) {
			for _, d := range batch {
				changes.see(objectKey{namespace: d.Item().Namespace})
			}
		}},
	}
	changes.run(ctx)
	return true
}

// ensure makes or mends the ConfigMap of a namespace, unless the namespace is going.
// What cannot be written, as those who may change ConfigMaps there can bring about, is
// tried again later and later, and holds up no other namespace.
func (r *RootCA) ensure(ctx context.Context, namespace, pem string) {
	key, revision := objectKey{namespace: namespace}, int64(0)
	if item := r.Cache.Get("configmaps", namespace, rootCAMap); item != nil {
		revision = item.Revision
	}
	if r.refused.waits(key, revision, time.Now()) {
		return
	}
	r.Queue.Add(1)
	if r.Queue.Work(func() bool { return r.settle(ctx, namespace, pem) }) {
		r.refused.forget(key)
	} else {
		r.refused.add(key, revision, time.Now())
	}
}

func (r *RootCA) settle(ctx context.Context, namespace, pem string) bool {
	if ns := r.Cache.Get("namespaces", "", namespace); ns == nil || ns.Meta().Deleting {
		return true
	}
	method, path := http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps"
	data := map[string]string{rootCAKey: pem}
	var m corev1.ConfigMap
	if item := r.Cache.Get("configmaps", namespace, rootCAMap); item != nil && item.Corrupt == nil && json.Unmarshal(item.JSON(), &m) == nil {
		if maps.Equal(m.Data, data) && len(m.Annotations[descriptionAnnotation]) > 0 {
			return true
		}
		method, path = http.MethodPut, path+"/"+rootCAMap
	} else {
		m = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rootCAMap, Namespace: namespace}}
	}
	m.Data, m.BinaryData = data, nil
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[descriptionAnnotation] = rootCAText
	err := r.API.Call(ctx, rootCAAgent, method, path, "application/json", &m, nil)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return true // what others did comes as a change
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), ctx.Err() != nil:
		return true
	}
	r.Log.Warn("cannot publish the authority that pods are to trust", "namespace", namespace, "error", err)
	return false
}
