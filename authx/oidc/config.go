// Package oidc authenticates by ID tokens of OpenID Connect providers: the configuration of a
// provider, the mapping of its claims to an identity, and the checks of both.
//
// It promises: no claim of a token is used before its signature is verified with
// a key from the provider's discovery; if a provider cannot be reached, its tokens are
// refused and no others.
package oidc

import (
	"context"
	"net"
)

// Provider is one issuer of tokens, with the field names of
// apiserver.config.k8s.io.
type Provider struct {
	Issuer               Issuer                `json:"issuer"`
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules,omitempty"`
	ClaimMappings        ClaimMappings         `json:"claimMappings"`
	UserValidationRules  []UserValidationRule  `json:"userValidationRules,omitempty"`

	// SigningAlgs are the accepted algorithms; none: RS256 alone.
	SigningAlgs []string `json:"-"`

	// Dial connects to the issuer; nil: directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`

	// Source identifies the client of a request, as in authx.GateConfig; nil: unknown.
	Source func(ctx context.Context) any `json:"-"`
}

// Issuer identifies the issuer and the audiences of tokens.
type Issuer struct {
	URL                  string   `json:"url"`
	DiscoveryURL         *string  `json:"discoveryURL,omitempty"`
	CertificateAuthority string   `json:"certificateAuthority,omitempty"` // PEM
	Audiences            []string `json:"audiences"`
	AudienceMatchPolicy  string   `json:"audienceMatchPolicy,omitempty"`
	EgressSelectorType   *string  `json:"egressSelectorType,omitempty"` // the network that the issuer is in
}

// Egress names the network of the issuer: controlplane or cluster. It is empty for a direct connection.
func (i *Issuer) Egress() string {
	if i.EgressSelectorType == nil {
		return ""
	}
	return *i.EgressSelectorType
}

// MatchAny is the only audience match policy.
const MatchAny = "MatchAny"

// ClaimValidationRule requires a value of a claim, or an expression to be true.
type ClaimValidationRule struct {
	Claim         string `json:"claim,omitempty"`
	RequiredValue string `json:"requiredValue,omitempty"`
	Expression    string `json:"expression,omitempty"`
	Message       string `json:"message,omitempty"`
}

// ClaimMappings map claims to an identity.
type ClaimMappings struct {
	Username Mapping        `json:"username"`
	Groups   Mapping        `json:"groups,omitempty"`
	UID      UIDMapping     `json:"uid"`
	Extra    []ExtraMapping `json:"extra,omitempty"`
}

// Mapping is a claim with a prefix, or an expression.
type Mapping struct {
	Claim      string  `json:"claim,omitempty"`
	Prefix     *string `json:"prefix,omitempty"`
	Expression string  `json:"expression,omitempty"`
}

// UIDMapping is a claim or an expression.
type UIDMapping struct {
	Claim      string `json:"claim,omitempty"`
	Expression string `json:"expression,omitempty"`
}

// ExtraMapping fills one key of an identity's extra.
type ExtraMapping struct {
	Key             string `json:"key"`
	ValueExpression string `json:"valueExpression"`
}

// UserValidationRule requires an expression about the identity to be true.
type UserValidationRule struct {
	Expression string `json:"expression"`
	Message    string `json:"message,omitempty"`
}
