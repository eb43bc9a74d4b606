package accounts

import (
	"context"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	rootCAAgent = "root-ca-certificate-publisher-controller" // field manager of RootCA's writes

	// RootCAMap is the ConfigMap that RootCA keeps in each namespace.
	RootCAMap = "kube-root-ca.crt"
	rootCAKey = "ca.crt"

	descriptionAnnotation = "kubernetes.io/description"
	rootCAText            = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// RootCA publishes the authority that pods verify the server with, in a ConfigMap of each namespace.
type RootCA struct {
	reconcile.Base
	Authority reconcile.Authority
}

// Run works until ctx ends.
func (c *RootCA) Run(ctx context.Context) error {
	l := &reconcile.Loop{
		Base: c.Base, Begin: c.Authority.Begin, Resync: c.Authority.Resync(), Workers: atOnce, MaxDebounceFactor: 1,
		Reconcile: c.reconcile, Failure: "cannot publish the authority that pods trust",
	}
	l.Sources = []reconcile.Source{l.Namespaces(), {
		Storage: "configmaps", Scope: cache.Scope{Name: RootCAMap},
		Changed: func(d cache.Delivery) { l.Queue.Add(reconcile.Key{Namespace: d.Item().Namespace}, d.Revision()) },
	}}
	return l.Run(ctx)
}

// reconcile creates or corrects the ConfigMap of a namespace, unless the namespace is being deleted.
func (c *RootCA) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	if !lasts(&c.Base, key.Namespace) {
		return r, nil
	}
	method, path := http.MethodPost, "/api/v1/namespaces/"+key.Namespace+"/configmaps"
	data := map[string]string{rootCAKey: string(c.Authority.PEM)}
	var m corev1.ConfigMap
	if reconcile.Decode(c.Cache.Get("configmaps", key.Namespace, RootCAMap), &m) {
		if maps.Equal(m.Data, data) && len(m.Annotations[descriptionAnnotation]) > 0 {
			return r, nil
		}
		method, path = http.MethodPut, path+"/"+RootCAMap
	} else {
		m = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RootCAMap, Namespace: key.Namespace}}
	}
	m.Data, m.BinaryData = data, nil
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, descriptionAnnotation, rootCAText)
	return r, unlessTerminating(c.API.Call(ctx, rootCAAgent, method, path, reconcile.JSON, &m, nil))
}
