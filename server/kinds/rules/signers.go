package rules

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The longest name of a signer, and the longest domain in it.
const (
	maxSignerPath   = 571
	maxSignerDomain = 253
)

// TrustBundleName validates the name of a ClusterTrustBundle: the signer's name, with colons for slashes,
// precedes a free part, and no other bundle's name has that form.
func TrustBundleName(signer, name string, prefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	before := strings.ReplaceAll(signer, "/", ":") + ":"
	free, ok := strings.CutPrefix(name, before)
	if !ok {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, before)}
	}
	return apivalidation.NameIsDNSSubdomain(free, prefix)
}

// SignerName checks the name of a signer: "example.com/path"; the domain is of at least two labels.
func SignerName(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	const form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
	segments := strings.Split(name, "/")
	if len(segments) != 2 {
		return field.ErrorList{field.Invalid(p, name, form)}
	}
	domain, path := segments[0], segments[1]
	var errs field.ErrorList
	if len(domain) > maxSignerDomain {
		errs = append(errs, field.TooLong(p, "", maxSignerDomain))
	}
	labels := strings.Split(domain, ".")
	errs = append(errs, firstFault(p, domain, labels, validation.IsDNS1123Label)...)
	errs = InvalidIf(errs, len(labels) < 2, p, domain, "should be a domain with at least two segments separated by dots")
	errs = append(errs, firstFault(p, path, strings.Split(path, "."), validation.IsDNS1123Subdomain)...)
	if len(name) > maxSignerPath {
		errs = append(errs, field.TooLong(p, "", maxSignerPath))
	}
	return errs
}

// firstFault returns the errors of the first invalid label of a part of a signer's name.
func firstFault(p *field.Path, part string, labels []string, check func(string) []string) (errs field.ErrorList) {
	for _, label := range labels {
		for _, m := range check(label) {
			errs = append(errs, field.Invalid(p, part, fmt.Sprintf("validating label %q: %s", label, m)))
		}
		if len(errs) > 0 {
			break
		}
	}
	return errs
}
