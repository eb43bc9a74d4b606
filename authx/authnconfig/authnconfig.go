// Package authnconfig reads the authentication configuration file and follows its
// changes.
//
// It promises: a file takes effect whole or not at all; while a changed file is invalid
// the last good one stays; the anonymous part never changes after the start.
package authnconfig

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx/configfile"
	"github.com/rowlock/rowlock/authx/oidc"
	"github.com/rowlock/rowlock/authx/remote"
)

// Configuration is an AuthenticationConfiguration of apiserver.config.k8s.io.
type Configuration struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	JWT        []oidc.Provider `json:"jwt"`
	Anonymous  *Anonymous      `json:"anonymous,omitempty"`
}

// Anonymous reports whether, and where, requests without credentials are welcome.
type Anonymous struct {
	Enabled    bool        `json:"enabled"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a path that is open to anonymous requests.
type Condition struct {
	Path string `json:"path"`
}

// Paths returns the paths of all conditions; nil if there are no conditions.
func (a *Anonymous) Paths() []string {
	var paths []string
	for _, c := range a.Conditions {
		paths = append(paths, c.Path)
	}
	return paths
}

const kind = "AuthenticationConfiguration"

// Rules are a server's requirements for its file.
type Rules struct {
	Taken []string // issuers that no provider may be
	V1    bool     // the file may be of the version v1, and have fields that came later; errors are shorter

	// Egress connects to the issuers of a network; nil if the gate of issuers in other networks is off. It may return nil.
	Egress func(network string) remote.Dial
}

// Parse reads and validates the text of a file.
func (r Rules) Parse(data []byte) (*Configuration, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, errors.New("empty config data")
	}
	versions := []string{"v1beta1", "v1alpha1"}
	if r.V1 {
		versions = append(versions, "v1")
	}
	c := &Configuration{}
	if err := configfile.Decode(data, kind, versions, c); err != nil {
		return nil, err
	}
	if err := c.validate(r); err != nil {
		return nil, err
	}
	for i := range c.JWT {
		if e := c.JWT[i].Issuer.Egress(); e != "" {
			c.JWT[i].Dial = r.Egress(e)
		}
		c.JWT[i].SigningAlgs = oidc.Algorithms() // the file has no list of its own
	}
	return c, nil
}

// conditions are shown by the names that clients of stock servers know.
type conditions []Condition

func (list conditions) String() string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("apiserver.AnonymousAuthCondition{Path:%q}", c.Path))
	}
	return "[]apiserver.AnonymousAuthCondition{" + strings.Join(parts, ", ") + "}"
}

// shorter are details of errors in releases after 1.32.
var shorter = map[string]string{
	"URL is required":                                   "",
	"audience can't be empty":                           "",
	"valueExpression is required":                       "",
	"expression is required":                            "",
	"key must be lowercase":                             "must be lowercase",
	"message can't be set when claim is set":            "may not be specified when claim is set",
	"requiredValue can't be set when expression is set": "may not be specified when expression is set",
	"prefix can't be set when expression is set":        "may not be specified when expression is set",
}

func (c *Configuration) validate(r Rules) error {
	errs := oidc.Validate(c.JWT, r.Taken)
	for i := range c.JWT {
		issuer, at := &c.JWT[i].Issuer, field.NewPath("jwt").Index(i).Child("issuer", "egressSelectorType")
		switch {
		case issuer.EgressSelectorType != nil && !r.V1:
			return fmt.Errorf("strict decoding error: unknown field %q", at)
		case issuer.Egress() != "" && r.Egress == nil:
			errs = append(errs, field.Invalid(at, issuer.Egress(), "egress selector is not supported when StructuredAuthenticationConfigurationEgressSelector feature gate is disabled"))
		}
	}
	for _, err := range errs {
		if text, ok := shorter[err.Detail]; ok && r.V1 {
			err.Detail = text
		}
	}
	if a := c.Anonymous; a != nil && !a.Enabled && len(a.Conditions) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("anonymous", "conditions"), conditions(a.Conditions), "enabled should be set to true when conditions are defined"))
	}
	return errs.ToAggregate()
}
