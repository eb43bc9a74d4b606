package apiextensions

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// knownReviews are the versions of conversion reviews that this server can write.
var knownReviews = []string{"v1", "v1beta1"}

func anyKnownReview(versions []string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(knownReviews, v) })
}

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
	return append(errs, validateReviews(c.ConversionReviewVersions, t, reviews)...)
}

func validateClient(c *apiext.WebhookClientConfig, t tolerance, p *field.Path) (errs field.ErrorList) {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(p, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = validateWebhookURL(*c.URL, p.Child("url"))
	default:
		errs = validateWebhookService(c.Service, p.Child("service"))
	}
	if len(c.CABundle) > 0 && !t.badBundle {
		if err := certificates(c.CABundle); err != nil {
			errs = append(errs, field.Invalid(p.Child("caBundle"), c.CABundle, "unable to load root certificates: "+err.Error()))
		}
	}
	return errs
}

func validateWebhookURL(text string, p *field.Path) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(p, "url must be a valid URL: "+err.Error()+form)}
	}
	for _, c := range []struct {
		wrong       bool
		part, words string
	}{
		{u.Scheme != "https", u.Scheme, "'https' is the only allowed URL scheme" + form},
		{u.Host == "", u.Host, "host must be specified" + form},
		{u.User != nil, u.User.String(), "user information is not permitted in the URL"},
		{u.Fragment != "", u.Fragment, "fragments are not permitted in the URL"},
		{u.RawQuery != "", u.RawQuery, "query parameters are not permitted in the URL"},
	} {
		if c.wrong {
			errs = append(errs, field.Invalid(p, c.part, c.words))
		}
	}
	return errs
}

// validateWebhookService checks a reference to a Service. A stock server swaps the two parts of its name in
// errors.
func validateWebhookService(s *apiext.ServiceReference, p *field.Path) (errs field.ErrorList) {
	errs = rules.RequiredIf(errs, s.Namespace == "", p.Child("name"), "")
	errs = rules.RequiredIf(errs, s.Name == "", p.Child("namespace"), "")
	if msgs := validation.IsValidPortNum(int(s.Port)); len(msgs) > 0 {
		errs = append(errs, field.Invalid(p.Child("port"), s.Port, "port is not valid: "+strings.Join(msgs, ", ")))
	}
	if s.Path != nil {
		for _, msg := range pathMistakes(*s.Path) {
			errs = append(errs, field.Invalid(p.Child("path"), *s.Path, msg))
		}
	}
	return errs
}

// pathMistakes returns the faults of the path of a webhook behind a Service.
func pathMistakes(path string) (msgs []string) {
	switch {
	case path == "" || path == "/":
		return nil
	case path == "//":
		return []string{"segment[0] may not be empty"}
	case path[0] != '/':
		msgs = append(msgs, "must start with a '/'")
	}
	for i, segment := range strings.Split(strings.TrimSuffix(path[1:], "/"), "/") {
		if segment == "" {
			msgs = append(msgs, fmt.Sprintf("segment[%d] may not be empty", i))
			continue
		}
		for _, msg := range validation.IsDNS1123Subdomain(segment) {
			msgs = append(msgs, fmt.Sprintf("segment[%d]: %v", i, msg))
		}
	}
	return msgs
}

func validateReviews(versions []string, t tolerance, p *field.Path) (errs field.ErrorList) {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(p, "")}
	}
	seen := rules.Seen[string]{}
	for i, v := range versions {
		if seen.Again(v) {
			errs = append(errs, field.Invalid(p.Index(i), v, "duplicate version"))
			continue
		}
		for _, msg := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(p.Index(i), v, msg))
		}
	}
	if !t.oddReviews && !anyKnownReview(versions) {
		errs = append(errs, field.Invalid(p, versions, "must include at least one of "+strings.Join(knownReviews, ", ")))
	}
	return errs
}

// certificates returns why a bundle holds none, nil if it holds any.
func certificates(bundle []byte) error {
	if x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return nil
	}
	for len(bundle) > 0 {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return errors.New("unable to parse bytes as PEM block")
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("failed to parse certificate: %w", err)
		}
	}
	return errors.New("no valid certificate authority data seen")
}
