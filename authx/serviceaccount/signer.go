package serviceaccount

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"github.com/rowlock/rowlock/authx"
)

// Signatures makes tokens of claims: JSON, which it signs.
type Signatures interface {
	Sign(ctx context.Context, claims []byte) (token string, err error)
}

// Signer issues tokens.
type Signer struct {
	issuer string
	by     Signatures
}

// NewSigner makes a Signer for an issuer.
func NewSigner(issuer string, by Signatures) *Signer { return &Signer{issuer: issuer, by: by} }

// Local signs with a key of this process.
type Local struct {
	key    Key
	signer jose.Signer
}

// NewLocal makes a Local of a private key.
func NewLocal(key crypto.Signer) (*Local, error) {
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
	return &Local{key: public, signer: s}, nil
}

// Key returns the public half of the key.
func (l *Local) Key() Key { return l.key }

// Sign implements Signatures.
func (l *Local) Sign(_ context.Context, claims []byte) (string, error) { return l.sign(claims) }

func (l *Local) sign(claims []byte) (string, error) {
	signed, err := l.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// IssueForSecret signs a token that is good as long as a Secret holds it, and its account
// is there. It never ends by itself, so signers of other processes are not asked for one.
func (l *Local) IssueForSecret(namespace, account, uid, secret string) (string, error) {
	data, err := json.Marshal(claims{
		Issuer: LegacyIssuer, Subject: Username(namespace, account),
		LegacyNamespace: namespace, LegacySecret: secret, LegacyAccount: account, LegacyAccountUID: uid,
	})
	var token string
	if err == nil {
		token, err = l.sign(data)
	}
	if err != nil {
		return "", fmt.Errorf("signing a service account token for a secret: %w", err)
	}
	return token, nil
}

// Issue signs a token. id is its unique number, which every use of it shows.
func (s *Signer) Issue(ctx context.Context, g *authx.Grant) (token, id string, err error) {
	id = uuid.NewString()
	data, err := json.Marshal(claims{
		Audience: g.Audiences, Issuer: s.issuer, ID: id, Subject: Username(g.Namespace, g.Account.Name),
		Expiry: date(g.Expires), IssuedAt: date(g.Issued), NotBefore: date(g.Issued),
		Bound: &bound{
			Namespace: g.Namespace, Account: *refOf(&g.Account),
			Pod: refOf(g.Pod), Node: refOf(g.Node), Secret: refOf(g.Secret), WarnAfter: date(g.WarnAfter),
		},
	})
	if err == nil {
		token, err = s.by.Sign(ctx, data)
	}
	if err != nil {
		return "", "", fmt.Errorf("failed to generate token: %w", err)
	}
	return token, id, nil
}

// date returns nil for the zero time.
func date(t time.Time) *jwt.NumericDate {
	if t.IsZero() {
		return nil
	}
	return jwt.NewNumericDate(t)
}
