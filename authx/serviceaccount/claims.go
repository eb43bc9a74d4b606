package serviceaccount

import (
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/rowlock/rowlock/authx"
)

// claims are the claims of all tokens of this package: those of JWT, those of bound tokens, and the flat ones
// of tokens stored in Secrets.
type claims struct {
	Audience  audience         `json:"aud,omitempty"`
	Expiry    *jwt.NumericDate `json:"exp,omitempty"`
	IssuedAt  *jwt.NumericDate `json:"iat,omitempty"`
	Issuer    string           `json:"iss,omitempty"`
	ID        string           `json:"jti,omitempty"`
	Bound     *bound           `json:"kubernetes.io,omitempty"`
	NotBefore *jwt.NumericDate `json:"nbf,omitempty"`
	Subject   string           `json:"sub,omitempty"`

	LegacyNamespace  string `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	LegacySecret     string `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	LegacyAccount    string `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	LegacyAccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

// audience is a list, even of one; other signers may write a string.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(data []byte) error { return (*jwt.Audience)(a).UnmarshalJSON(data) }

type bound struct {
	Namespace string           `json:"namespace,omitempty"`
	Node      *ref             `json:"node,omitempty"`
	Pod       *ref             `json:"pod,omitempty"`
	Secret    *ref             `json:"secret,omitempty"`
	Account   ref              `json:"serviceaccount,omitempty"`
	WarnAfter *jwt.NumericDate `json:"warnafter,omitempty"`
}

type ref struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

func refOf(r *authx.Ref) *ref {
	if r == nil {
		return nil
	}
	return &ref{Name: r.Name, UID: r.UID}
}

// Username returns the name of a service account as a user.
func Username(namespace, name string) string {
	return authx.ServiceAccountPrefix + namespace + ":" + name
}

// Groups returns the groups of the service accounts of a namespace.
func Groups(namespace string) []string {
	return []string{authx.GroupServiceAccounts, authx.GroupServiceAccounts + ":" + namespace}
}
