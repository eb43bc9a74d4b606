package serviceaccount

import (
	"crypto"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"github.com/rowlock/rowlock/authx"
)

// Signer issues tokens.
type Signer struct {
	issuer string
	key    Key
	signer jose.Signer
}

// NewSigner makes a Signer that speaks as issuer and signs with key.
func NewSigner(issuer string, key crypto.Signer) (*Signer, error) {
	public, err := NewKey(key.Public())
	if err != nil {
		return nil, err
	}
	s, err := jose.NewSigner(jose.SigningKey{
		Algorithm: public.Alg,
		Key:       jose.JSONWebKey{Algorithm: string(public.Alg), Key: cryptosigner.Opaque(key), KeyID: public.ID, Use: "sig"},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a signer of service account tokens: %w", err)
	}
	return &Signer{issuer: issuer, key: public, signer: s}, nil
}

// Key is the public half of the signing key.
func (s *Signer) Key() Key { return s.key }

// Issue signs a token. id is its unique number, which every use of it shows.
func (s *Signer) Issue(g *authx.Grant) (token, id string, err error) {
	id = uuid.NewString()
	c := claims{
		Audience: g.Audiences, Issuer: s.issuer, ID: id, Subject: Username(g.Namespace, g.Account.Name),
		Expiry: date(g.Expires), IssuedAt: date(g.Issued), NotBefore: date(g.Issued),
		Bound: &bound{
			Namespace: g.Namespace, Account: *refOf(&g.Account),
			Pod: refOf(g.Pod), Node: refOf(g.Node), Secret: refOf(g.Secret), WarnAfter: date(g.WarnAfter),
		},
	}
	token, err = jwt.Signed(s.signer).Claims(c).Serialize()
	if err != nil {
		return "", "", fmt.Errorf("signing a service account token: %w", err)
	}
	return token, id, nil
}

// date is nil for the zero time.
func date(t time.Time) *jwt.NumericDate {
	if t.IsZero() {
		return nil
	}
	return jwt.NewNumericDate(t)
}

// IssueForSecret signs a token that is good as long as a Secret holds it, and its account
// is there. It never ends by itself.
func (s *Signer) IssueForSecret(namespace, account, uid, secret string) (string, error) {
	token, err := jwt.Signed(s.signer).Claims(claims{
		Issuer: LegacyIssuer, Subject: Username(namespace, account),
		LegacyNamespace: namespace, LegacySecret: secret, LegacyAccount: account, LegacyAccountUID: uid,
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing a service account token for a secret: %w", err)
	}
	return token, nil
}
