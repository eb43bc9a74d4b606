package oidc

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// compiled are the expressions of a provider.
type compiled struct {
	username, groups, uid *expression
	extra                 map[string]*expression
	claimRules, userRules []rule
}

// Validate checks a list of providers. Their issuers must differ from one another and
// from those that are taken.
func Validate(providers []Provider, taken []string) field.ErrorList {
	root := field.NewPath("jwt")
	if len(providers) > maxProviders {
		return field.ErrorList{field.TooMany(root, len(providers), maxProviders)}
	}
	var errs field.ErrorList
	urls, discoveries := map[string]bool{}, map[string]bool{}
	for i := range providers {
		p, path := &providers[i], root.Index(i)
		_, more := p.compile(path, taken)
		errs = append(errs, more...)
		if urls[p.Issuer.URL] {
			errs = append(errs, field.Duplicate(path.Child("issuer", "url"), p.Issuer.URL))
		}
		urls[p.Issuer.URL] = true
		if d := p.Issuer.discovery(); d != "" {
			if discoveries[d] {
				errs = append(errs, field.Duplicate(path.Child("issuer", "discoveryURL"), d))
			}
			discoveries[d] = true
		}
	}
	return errs
}

const maxProviders = 64

func (i *Issuer) discovery() string {
	if i.DiscoveryURL == nil {
		return ""
	}
	return *i.DiscoveryURL
}

// compile checks one provider.
func (p *Provider) compile(path *field.Path, taken []string) (*compiled, field.ErrorList) {
	c := &compiled{extra: map[string]*expression{}}
	errs := p.Issuer.validate(path.Child("issuer"), taken)
	errs = append(errs, c.claims(p.ClaimValidationRules, path.Child("claimValidationRules"))...)
	errs = append(errs, c.mappings(&p.ClaimMappings, path.Child("claimMappings"))...)
	errs = append(errs, c.user(p.UserValidationRules, path.Child("userValidationRules"))...)
	return c, errs
}

func (i *Issuer) validate(path *field.Path, taken []string) field.ErrorList {
	var errs field.ErrorList
	if i.URL == "" {
		errs = append(errs, field.Required(path.Child("url"), "URL is required"))
	} else {
		errs = append(errs, validateURL(i.URL, taken, path.Child("url"))...)
	}
	if d := i.discovery(); d != "" {
		at := path.Child("discoveryURL")
		if i.URL != "" && strings.TrimRight(i.URL, "/") == strings.TrimRight(d, "/") {
			errs = append(errs, field.Invalid(at, d, "discoveryURL must be different from URL"))
		}
		errs = append(errs, validateURL(d, nil, at)...)
	}
	errs = append(errs, i.validateAudiences(path)...)
	if i.CertificateAuthority != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(i.CertificateAuthority)) {
		errs = append(errs, field.Invalid(path.Child("certificateAuthority"), "<omitted>", "data does not contain any valid RSA or ECDSA certificates"))
	}
	if e := i.Egress(); e != "" && e != "controlplane" && e != "cluster" {
		errs = append(errs, field.Invalid(path.Child("egressSelectorType"), e, "egress selector must be either controlplane or cluster"))
	}
	return errs
}

func validateURL(text string, taken []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if slices.Contains(taken, text) {
		errs = append(errs, field.Invalid(path, text, fmt.Sprintf("URL must not overlap with disallowed issuers: %s", slices.Sorted(slices.Values(taken)))))
	}
	u, err := url.Parse(text)
	if err != nil {
		return append(errs, field.Invalid(path, text, err.Error()))
	}
	for _, rule := range []struct {
		broken bool
		detail string
	}{
		{u.Scheme != "https", "URL scheme must be https"},
		{u.User != nil, "URL must not contain a username or password"},
		{u.RawQuery != "", "URL must not contain a query"},
		{u.Fragment != "", "URL must not contain a fragment"},
	} {
		if rule.broken {
			errs = append(errs, field.Invalid(path, text, rule.detail))
		}
	}
	return errs
}

func (i *Issuer) validateAudiences(issuer *field.Path) field.ErrorList {
	path, policy := issuer.Child("audiences"), issuer.Child("audienceMatchPolicy")
	if len(i.Audiences) == 0 {
		return field.ErrorList{field.Required(path, fmt.Sprintf("at least one %s is required", path))}
	}
	var errs field.ErrorList
	for n, a := range i.Audiences {
		if a == "" {
			errs = append(errs, field.Required(path.Index(n), "audience can't be empty"))
		}
		if slices.Contains(i.Audiences[:n], a) {
			errs = append(errs, field.Duplicate(path.Index(n), a))
		}
	}
	switch {
	case i.AudienceMatchPolicy == MatchAny:
	case len(i.Audiences) > 1:
		errs = append(errs, field.Invalid(policy, i.AudienceMatchPolicy, "audienceMatchPolicy must be MatchAny for multiple audiences"))
	case i.AudienceMatchPolicy != "":
		errs = append(errs, field.Invalid(policy, i.AudienceMatchPolicy, "audienceMatchPolicy must be empty or MatchAny for single audience"))
	}
	return errs
}

func (c *compiled) claims(rules []ClaimValidationRule, root *field.Path) field.ErrorList {
	var errs field.ErrorList
	claims, expressions := map[string]bool{}, map[string]bool{}
	for i, r := range rules {
		path := root.Index(i)
		switch {
		case r.Claim != "" && r.Expression != "":
			errs = append(errs, field.Invalid(path, r.Claim, "claim and expression can't both be set"))
		case r.Claim != "":
			if r.Message != "" {
				errs = append(errs, field.Invalid(path.Child("message"), r.Message, "message can't be set when claim is set"))
			}
			if claims[r.Claim] {
				errs = append(errs, field.Duplicate(path.Child("claim"), r.Claim))
			}
			claims[r.Claim] = true
		case r.Expression != "":
			if r.RequiredValue != "" {
				errs = append(errs, field.Invalid(path.Child("requiredValue"), r.RequiredValue, "requiredValue can't be set when expression is set"))
			}
			if expressions[r.Expression] {
				errs = append(errs, field.Duplicate(path.Child("expression"), r.Expression))
				continue
			}
			expressions[r.Expression] = true
			e, err := compile(r.Expression, claimsVariable, true)
			if err != nil {
				errs = append(errs, field.Invalid(path.Child("expression"), r.Expression, err.Error()))
				continue
			}
			c.claimRules = append(c.claimRules, rule{e, r.Message})
		default:
			errs = append(errs, field.Required(path, "claim or expression is required"))
		}
	}
	return errs
}

func (c *compiled) mappings(m *ClaimMappings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	mapping := func(m *Mapping, path *field.Path, required bool) (e *expression) {
		e, more := m.compile(path, required)
		errs = append(errs, more...)
		return e
	}
	c.username = mapping(&m.Username, path.Child("username"), true)
	c.groups = mapping(&m.Groups, path.Child("groups"), false)
	switch {
	case m.UID.Claim != "" && m.UID.Expression != "":
		errs = append(errs, field.Invalid(path.Child("uid"), "", "claim and expression can't both be set"))
	case m.UID.Expression != "":
		var err error
		if c.uid, err = compile(m.UID.Expression, claimsVariable, false); err != nil {
			errs = append(errs, field.Invalid(path.Child("uid", "expression"), m.UID.Expression, err.Error()))
		}
	}
	errs = append(errs, c.extras(m.Extra, path.Child("extra"))...)
	if c.username != nil && c.username.uses("email") && !c.verifiesEmail() {
		errs = append(errs, field.Invalid(path.Child("username", "expression"), m.Username.Expression,
			"claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"))
	}
	return errs
}

func (m *Mapping) compile(path *field.Path, required bool) (*expression, field.ErrorList) {
	switch {
	case m.Claim != "" && m.Expression != "":
		return nil, field.ErrorList{field.Invalid(path, "", "claim and expression can't both be set")}
	case m.Claim != "":
		if m.Prefix == nil {
			return nil, field.ErrorList{field.Required(path.Child("prefix"), "prefix is required when claim is set. It can be set to an empty string to disable prefixing")}
		}
	case m.Expression != "":
		if m.Prefix != nil {
			return nil, field.ErrorList{field.Invalid(path.Child("prefix"), *m.Prefix, "prefix can't be set when expression is set")}
		}
		e, err := compile(m.Expression, claimsVariable, false)
		if err != nil {
			return nil, field.ErrorList{field.Invalid(path.Child("expression"), m.Expression, err.Error())}
		}
		return e, nil
	case required:
		return nil, field.ErrorList{field.Required(path, "claim or expression is required")}
	}
	return nil, nil
}

// verifiesEmail reports whether something looks at email_verified.
func (c *compiled) verifiesEmail() bool {
	const claim = "email_verified"
	if c.username.uses(claim) || slices.ContainsFunc(c.claimRules, func(r rule) bool { return r.uses(claim) }) {
		return true
	}
	for _, e := range c.extra {
		if e.uses(claim) {
			return true
		}
	}
	return false
}

func (c *compiled) extras(list []ExtraMapping, root *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, m := range list {
		path := root.Index(i)
		key := path.Child("key")
		errs = append(errs, utilvalidation.IsDomainPrefixedPath(key, m.Key)...)
		if m.Key != strings.ToLower(m.Key) {
			errs = append(errs, field.Invalid(key, m.Key, "key must be lowercase"))
		}
		if reserved(m.Key) {
			errs = append(errs, field.Invalid(key, m.Key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"))
		}
		if seen[m.Key] {
			errs = append(errs, field.Duplicate(key, m.Key))
			continue
		}
		seen[m.Key] = true
		if m.ValueExpression == "" {
			errs = append(errs, field.Required(path.Child("valueExpression"), "valueExpression is required"))
			continue
		}
		e, err := compile(m.ValueExpression, claimsVariable, false)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("valueExpression"), m.ValueExpression, err.Error()))
			continue
		}
		c.extra[m.Key] = e
	}
	return errs
}

func reserved(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(d string) bool {
		return domain == d || strings.HasSuffix(domain, "."+d)
	})
}

func (c *compiled) user(rules []UserValidationRule, root *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range rules {
		path := root.Index(i).Child("expression")
		if r.Expression == "" {
			errs = append(errs, field.Required(path, "expression is required"))
			continue
		}
		if seen[r.Expression] {
			errs = append(errs, field.Duplicate(path, r.Expression))
			continue
		}
		seen[r.Expression] = true
		e, err := compile(r.Expression, userVariable, true)
		if err != nil {
			errs = append(errs, field.Invalid(path, r.Expression, err.Error()))
			continue
		}
		c.userRules = append(c.userRules, rule{e, r.Message})
	}
	return errs
}
