package encryption

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	defaultTimeout   = 3 * time.Second
	defaultCacheSize = 1000
)

var (
	aesSizes = []int{16, 24, 32}
	boxSizes = []int{32}
)

// everything is the meaning of "*.*".
var everything = schema.GroupResource{Group: "*", Resource: "*"}

func validate(c *configuration, reload bool) (errs field.ErrorList) {
	root := field.NewPath("resources")
	if len(c.Resources) == 0 {
		return field.ErrorList{atLeastOne(root, root.String())}
	}
	names := map[string]bool{} // of KMS providers so far
	for i, r := range c.Resources {
		resources, providers := root.Index(i).Child("resources"), root.Index(i).Child("providers")
		if len(r.Resources) == 0 {
			errs = append(errs, atLeastOne(resources, resources.String()))
		}
		errs = append(errs, validateOverlap(resources, r.Resources)...)
		for j, name := range r.Resources {
			if reason := wrongName(name); reason != "" {
				errs = append(errs, field.Invalid(resources.Index(j), name, reason))
			}
		}
		if len(r.Providers) == 0 {
			errs = append(errs, atLeastOne(providers, providers.String()))
		}
		for j, p := range r.Providers {
			errs = append(errs, p.validate(providers.Index(j), names, reload)...)
		}
	}
	return errs
}

func atLeastOne(at *field.Path, what string) *field.Error {
	return field.Required(at, fmt.Sprintf("at least one %s is required", what))
}

func mandatory(at *field.Path, what, of string) *field.Error {
	return field.Required(at, fmt.Sprintf("%s is a mandatory field for a %s", what, of))
}

// validateOverlap: resources that are named twice, or by a wildcard of the same list too.
func validateOverlap(at *field.Path, names []string) (errs field.ErrorList) {
	var twice, overlap bool
	for i, a := range names {
		for j, b := range names {
			if i == j {
				continue
			}
			one, other := schema.ParseGroupResource(a), schema.ParseGroupResource(b)
			switch {
			case one == other && !twice: // the first pair alone: a third of the same may also overlap
				twice = true
			case one == everything, one.Group == other.Group && (one.Resource == "*" || other.Resource == "*"):
				overlap = true
			}
		}
	}
	if twice {
		errs = append(errs, field.Invalid(at, names, "the same resource cannot be specified multiple times"))
	}
	if overlap {
		errs = append(errs, field.Invalid(at, names, "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"))
	}
	return errs
}

// wrongName returns why a resource cannot be named so.
func wrongName(name string) string {
	gr := schema.ParseGroupResource(name)
	switch {
	case strings.ToLower(name) != name:
		return "resource name should not contain capital letters"
	case name == "*":
		return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
	case slices.Contains([]string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}, name):
		return "resources which do not have REST API/s cannot be encrypted"
	case gr.Group == "events.k8s.io":
		return "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
	case gr.Group == "extensions":
		return "'extensions' group has been removed and cannot be used for encryption"
	case gr.Group == "*" && gr.Resource != "*":
		return "encrypting the same resource across groups is not supported"
	}
	return ""
}

// kinds returns the names of the fields that are set.
func (p *provider) kinds() (set []string) {
	for name, is := range map[string]bool{
		"aesgcm": p.AESGCM != nil, "aescbc": p.AESCBC != nil, "secretbox": p.Secretbox != nil, "identity": p.Identity != nil, "kms": p.KMS != nil,
	} {
		if is {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	return set
}

func (p *provider) validate(at *field.Path, names map[string]bool, reload bool) (errs field.ErrorList) {
	switch kinds := p.kinds(); {
	case len(kinds) == 0:
		errs = append(errs, field.Invalid(at, "", "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"))
	case len(kinds) > 1:
		errs = append(errs, field.Invalid(at, strings.Join(kinds, ", "), "more than one provider specified in a single element, should split into different list elements"))
	}
	switch {
	case p.KMS != nil:
		errs = append(errs, p.KMS.validate(at.Child("kms"), names, reload)...)
		names[p.KMS.Name] = true
	case p.AESGCM != nil:
		errs = append(errs, p.AESGCM.validate(at.Child("aesgcm", "keys"), aesSizes)...)
	case p.AESCBC != nil:
		errs = append(errs, p.AESCBC.validate(at.Child("aescbc", "keys"), aesSizes)...)
	case p.Secretbox != nil:
		errs = append(errs, p.Secretbox.validate(at.Child("secretbox", "keys"), boxSizes)...)
	}
	return errs
}

func (l *keyList) validate(at *field.Path, sizes []int) (errs field.ErrorList) {
	if len(l.Keys) == 0 {
		return field.ErrorList{atLeastOne(at, "keys")}
	}
	for i, k := range l.Keys {
		at := at.Index(i)
		if k.Name == "" {
			errs = append(errs, mandatory(at.Child("name"), "name", "key"))
		}
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		switch at := at.Child("secret"); {
		case k.Secret == "":
			errs = append(errs, mandatory(at, "secret", "key"))
		case err != nil:
			errs = append(errs, field.Invalid(at, "REDACTED", "secrets must be base64 encoded"))
		case !slices.Contains(sizes, len(secret)):
			errs = append(errs, field.Invalid(at, "REDACTED", fmt.Sprintf("secret is not of the expected length, got %d, expected one of %v", len(secret), sizes)))
		}
	}
	return errs
}

func (k *kmsConfig) validate(at *field.Path, names map[string]bool, reload bool) (errs field.ErrorList) {
	name := at.Child("name")
	if k.Name == "" {
		errs = append(errs, mandatory(name, "name", "provider"))
	}
	if k.APIVersion != "v1" && strings.Contains(k.Name, ":") {
		errs = append(errs, field.Invalid(name, k.Name, fmt.Sprintf("invalid KMS provider name %s, must not contain ':'", k.Name)))
	}
	if (reload || k.APIVersion != "v1") && names[k.Name] {
		errs = append(errs, field.Invalid(name, k.Name, fmt.Sprintf("duplicate KMS provider name %s, names must be unique", k.Name)))
	}
	if k.Timeout.Duration <= 0 {
		errs = append(errs, field.Invalid(at.Child("timeout"), k.Timeout, "timeout should be a positive value"))
	}
	errs = append(errs, k.validateEndpoint(at.Child("endpoint"))...)
	switch {
	case k.APIVersion != "v1" && k.CacheSize != nil:
		errs = append(errs, field.Invalid(at.Child("cachesize"), *k.CacheSize, "cachesize is not supported in v2"))
	case k.APIVersion == "v1" && *k.CacheSize == 0:
		errs = append(errs, field.Invalid(at.Child("cachesize"), *k.CacheSize, "cachesize should be a positive value, or negative to disable"))
	}
	if k.APIVersion != "v1" && k.APIVersion != "v2" {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), k.APIVersion, "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"))
	}
	return errs
}

func (k *kmsConfig) validateEndpoint(at *field.Path) field.ErrorList {
	if k.Endpoint == "" {
		return field.ErrorList{field.Invalid(at, "", "endpoint is a mandatory field for a kms")}
	}
	u, err := url.Parse(k.Endpoint)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, k.Endpoint, fmt.Sprintf("invalid endpoint for kms provider, error: %v", err))}
	case u.Scheme != "unix":
		return field.ErrorList{field.Invalid(at, k.Endpoint, fmt.Sprintf("unsupported scheme %q for KMS provider, only unix is supported", u.Scheme))}
	}
	return nil
}
