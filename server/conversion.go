package server

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/kinds/custom"
	outward "github.com/rowlock/rowlock/server/webhook"
)

// converter makes what converts the objects of a definition; nil where versions
// differ in nothing but their names.
func (s *Server) converter(crd *apiextensionsv1.CustomResourceDefinition) custom.Converter {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return nil
	}
	at := c.Webhook.ClientConfig
	target := outward.Target{CABundle: string(at.CABundle)}
	if at.URL != nil {
		target.URL = *at.URL
	}
	if svc := at.Service; svc != nil {
		target.Service = outward.Service{Namespace: svc.Namespace, Name: svc.Name}
		if svc.Path != nil {
			target.Service.Path = *svc.Path
		}
		if svc.Port != nil {
			target.Service.Port = *svc.Port
		}
	}
	client := s.webhookClient()
	return &custom.Webhook{
		Versions: c.Webhook.ConversionReviewVersions,
		Post:     func(ctx context.Context, body []byte) ([]byte, error) { return client.Post(ctx, target, body) },
	}
}
