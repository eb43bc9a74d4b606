package rules

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WebhookURL checks the URL of a webhook.
func WebhookURL(text string, p *field.Path) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(p, "url must be a valid URL: "+err.Error()+form)}
	}
	errs = InvalidIf(errs, u.Scheme != "https", p, u.Scheme, "'https' is the only allowed URL scheme"+form)
	errs = InvalidIf(errs, u.Host == "", p, u.Host, "host must be specified"+form)
	errs = InvalidIf(errs, u.User != nil, p, u.User.String(), "user information is not permitted in the URL")
	errs = InvalidIf(errs, u.Fragment != "", p, u.Fragment, "fragments are not permitted in the URL")
	return InvalidIf(errs, u.RawQuery != "", p, u.RawQuery, "query parameters are not permitted in the URL")
}

// WebhookService checks a reference to the Service of a webhook. Like a stock server it swaps namespace and name in errors.
func WebhookService(namespace, name string, path *string, port int32, p *field.Path) (errs field.ErrorList) {
	errs = RequiredIf(errs, namespace == "", p.Child("name"), "")
	errs = RequiredIf(errs, name == "", p.Child("namespace"), "")
	if msgs := validation.IsValidPortNum(int(port)); len(msgs) > 0 {
		errs = append(errs, field.Invalid(p.Child("port"), port, "port is not valid: "+strings.Join(msgs, ", ")))
	}
	if path == nil || *path == "" || *path == "/" {
		return errs
	}
	at := p.Child("path")
	if *path == "//" {
		return append(errs, field.Invalid(at, *path, "segment[0] may not be empty"))
	}
	errs = InvalidIf(errs, (*path)[0] != '/', at, *path, "must start with a '/'")
	i := 0
	for segment := range strings.SplitSeq(strings.TrimSuffix((*path)[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(at, *path, fmt.Sprintf("segment[%d] may not be empty", i)))
		} else {
			for _, msg := range validation.IsDNS1123Subdomain(segment) {
				errs = append(errs, field.Invalid(at, *path, fmt.Sprintf("segment[%d]: %v", i, msg)))
			}
		}
		if i++; len(errs) > MaxErrors {
			break
		}
	}
	return errs
}

// reviewVersions are the versions of reviews that the server can send to webhooks.
var reviewVersions = []string{"v1", "v1beta1"}

// KnowsReview reports whether the server can send reviews in one of the versions.
func KnowsReview(versions []string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(reviewVersions, v) })
}

// ReviewVersions checks the versions of reviews that a webhook accepts. missing is the detail of the error if there are none. With
// tolerant, the server need not know any of them.
func ReviewVersions(versions []string, tolerant bool, missing string, p *field.Path) (errs field.ErrorList) {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(p, missing)}
	}
	seen := Seen[string]{}
	for i, v := range Until(&errs, versions) {
		if seen.Again(v) {
			errs = append(errs, field.Invalid(p.Index(i), v, "duplicate version"))
			continue
		}
		errs = append(errs, ServiceLabel(v, p.Index(i))...)
	}
	return InvalidIf(errs, !tolerant && !KnowsReview(versions), p, versions, "must include at least one of "+strings.Join(reviewVersions, ", "))
}

// CABundle returns an error unless a PEM bundle has a certificate.
func CABundle(bundle []byte) error {
	if x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return nil
	}
	err := errors.New("no valid certificate authority data seen")
	for len(bundle) > 0 {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			err = errors.New("unable to parse bytes as PEM block")
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, bad := x509.ParseCertificate(block.Bytes); bad != nil {
			err = fmt.Errorf("failed to parse certificate: %w", bad)
			break
		}
	}
	return fmt.Errorf("unable to load root certificates: %w", err)
}
