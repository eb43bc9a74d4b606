package apiextensions

import (
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

func validateConversion(c *apiext.CustomResourceConversion, t tolerance, p *field.Path) field.ErrorList {
	errs := validateChoice(c.Strategy, p.Child("strategy"), apiext.NoneConverter, apiext.WebhookConverter)
	client, reviews := p.Child("webhookClientConfig"), p.Child("conversionReviewVersions")
	if c.Strategy != apiext.WebhookConverter {
		const unasked = "should not be set when strategy is not set to Webhook"
		errs = rules.ForbiddenIf(errs, c.WebhookClientConfig != nil, client, unasked)
		return rules.ForbiddenIf(errs, len(c.ConversionReviewVersions) > 0, reviews, unasked)
	}
	if c.WebhookClientConfig == nil {
		errs = append(errs, field.Required(client, "required when strategy is set to Webhook"))
	} else {
		errs = append(errs, validateClient(c.WebhookClientConfig, t, client)...)
	}
	return append(errs, rules.ReviewVersions(c.ConversionReviewVersions, t.oddReviews, "", reviews)...)
}

func validateClient(c *apiext.WebhookClientConfig, t tolerance, p *field.Path) (errs field.ErrorList) {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(p, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = rules.WebhookURL(*c.URL, p.Child("url"))
	default:
		s := c.Service
		errs = rules.WebhookService(s.Namespace, s.Name, s.Path, s.Port, p.Child("service"))
	}
	if len(c.CABundle) > 0 && !t.badBundle {
		if err := rules.CABundle(c.CABundle); err != nil {
			errs = append(errs, field.Invalid(p.Child("caBundle"), c.CABundle, err.Error()))
		}
	}
	return errs
}
