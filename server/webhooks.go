package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/aggregator/endpoints"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/webhook"
)

// converter makes the converter for the objects of a definition; it is nil if versions differ only in their
// names.
func (s *Server) converter(crd *apiextensionsv1.CustomResourceDefinition) custom.Converter {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return nil
	}
	at := c.Webhook.ClientConfig
	target := webhook.Target{CABundle: string(at.CABundle)}
	if at.URL != nil {
		target.URL = *at.URL
	}
	if svc := at.Service; svc != nil {
		target.Service = webhook.Service{Namespace: svc.Namespace, Name: svc.Name}
		if svc.Path != nil {
			target.Service.Path = *svc.Path
		}
		if svc.Port != nil {
			target.Service.Port = *svc.Port
		}
	}
	return &custom.Webhook{
		Versions: c.Webhook.ConversionReviewVersions,
		Post:     func(ctx context.Context, body []byte) ([]byte, error) { return s.webhooks.Post(ctx, target, body) },
	}
}

// webhookAgent is the User-Agent of webhook calls.
const webhookAgent = "kube-apiserver-admission"

// services resolves Services. direct connects to endpoints of Services instead of the Services' addresses.
func services(r plugins.Reader, index *endpoints.Index, direct bool) *webhook.Resolver {
	return &webhook.Resolver{
		Service: func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
			return find[*corev1.Service](ctx, r, "services", namespace, name)
		},
		Endpoints: func(ctx context.Context, namespace, name string) (*corev1.Endpoints, error) {
			return find[*corev1.Endpoints](ctx, r, "endpoints", namespace, name)
		},
		Slices: func(_ context.Context, namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
			return slicesOf(r, index.Of(namespace, name))
		},
		Direct: direct,
	}
}

// find returns an object of a built-in kind, or nil.
func find[T kinds.Object](ctx context.Context, r plugins.Reader, storage, namespace, name string) (found T, err error) {
	obj, err := r.Get(ctx, storage, namespace, name)
	if err == nil && obj != nil {
		found, _ = obj.(T)
	}
	return found, err
}

// slicesOf returns the endpoint slices of a Service.
func slicesOf(r plugins.Reader, found *endpoints.Slices) ([]*discoveryv1.EndpointSlice, error) {
	if found == nil {
		return nil, nil
	}
	list := make([]*discoveryv1.EndpointSlice, 0, len(found.Items))
	for _, item := range found.Items {
		slice := &discoveryv1.EndpointSlice{}
		if _, err := r.Cache.JSON().Decode(item.JSON(), slice, codecs.Ignore); err != nil {
			return nil, fmt.Errorf("endpoint slice %s/%s: %w", item.Namespace, item.Name, err)
		}
		list = append(list, slice)
	}
	return list, nil
}
