// Package serviceaccount issues and verifies service account tokens, and publishes their keys. It looks up
// the account of a signed token, and the object that the token is bound to, each time the token is used.
//
// A token ends with its account, or with the object to which it is bound, except for the minute for which all
// deleted objects still count; a bounded number of verified signatures is cached by the token's hash for a
// short time; each key is used only with its own algorithm, whatever a token names.
package serviceaccount

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/rowlock/rowlock/authx"
)

// LegacyIssuer issues the tokens that are stored in Secrets.
const LegacyIssuer = "kubernetes/serviceaccount"

// leeway bounds how far clocks may be apart.
const leeway = time.Minute

// Object describes an object that a token names.
type Object struct {
	UID     string
	Deleted time.Time // its deletionTimestamp; zero if it is not being deleted
}

// Secret is an Object, with the fields about the token stored in it.
type Secret struct {
	Object
	Token    []byte
	Invalid  bool   // marked as out of use
	LastUsed string // the day of the last use that is noted on it, as 2006-01-02
}

// LegacyUse is a use of a token that is stored in a Secret.
type LegacyUse struct {
	Namespace, Secret string
	Subject           string // the account, as a user
	LastUsed          string // of the Secret
	Invalid           bool   // and so refused
}

// Lookup finds live objects. found is false where there is none.
type Lookup interface {
	// Object finds a serviceaccount, pod, secret or node, by its plural.
	Object(ctx context.Context, plural, namespace, name string) (o Object, found bool, err error)
	Secret(ctx context.Context, namespace, name string) (s Secret, found bool, err error)
}

// Config defines which tokens are valid.
type Config struct {
	Issuers    []string // whose tokens are taken; the first issues
	Keys       Keys
	Audiences  []string // of the API
	Lookup     Lookup
	KeepLegacy bool // take tokens of Secrets without looking the Secrets up
	// LegacyUsed, if set, is called for each use of a token that is stored in a Secret.
	LegacyUsed func(ctx context.Context, use LegacyUse)
	// Extended, if set, is called for each use of a token that lives longer than its holder
	// requested; overdue is how long ago it should have been renewed, negative before.
	Extended func(ctx context.Context, subject string, overdue time.Duration)
	Clock    func() time.Time // nil: time.Now
	// Unsigned is the error for tokens without a valid signature; nil: that of old releases.
	Unsigned error
}

// Authenticator judges service account tokens.
type Authenticator struct {
	cfg      Config
	now      func() time.Time
	verified verified
}

// New makes an Authenticator.
func New(cfg Config) *Authenticator {
	a := &Authenticator{cfg: cfg, now: cfg.Clock}
	a.cfg.Unsigned = cmp.Or(a.cfg.Unsigned, errSignature)
	if a.now == nil {
		a.now = time.Now
	}
	a.verified.entries = map[[sha256.Size]byte]*accepted{}
	return a
}

// AuthenticateToken implements authx.TokenAuthenticator. Tokens of other issuers are not ours.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authx.Authenticated, bool, error) {
	now := a.now()
	hash := sha256.Sum256([]byte(token))
	known := a.verified.get(hash, now)
	if known == nil || !a.cfg.Keys.Has(known.key) { // the keys may have changed since
		issuer, ok := issuerOf(token)
		if !ok || issuer != LegacyIssuer && !slices.Contains(a.cfg.Issuers, issuer) {
			return nil, false, nil
		}
		c, key, err := a.verify(ctx, token)
		if err != nil {
			return nil, true, err
		}
		known = newAccepted(c, key)
		known.who.StillValid = func(ctx context.Context) bool { return a.cfg.Keys.Has(key) && a.stands(ctx, c, hash) }
	}
	shared, err := a.audiences(known.claims, audiences)
	if err != nil {
		return nil, true, err
	}
	if known.claims.Issuer == LegacyIssuer {
		err = a.checkLegacy(ctx, token, known.claims, now)
	} else {
		err = a.check(ctx, known.claims, now)
	}
	if err != nil {
		return nil, true, err
	}
	if len(token) <= longestKept {
		a.verified.put(hash, known, now)
	}
	if len(shared) == len(a.cfg.Audiences) && slices.Equal(shared, known.who.Audiences) {
		return known.who, true, nil
	}
	return &authx.Authenticated{Identity: known.who.Identity, Audiences: shared, StillValid: known.who.StillValid}, true, nil
}

// issuerOf reads the claimed issuer of a token. Nothing is verified.
func issuerOf(token string) (string, bool) {
	if strings.Count(token, ".") != 2 {
		return "", false
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", false
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	// The decoder of the claims matches names exactly, so this must too.
	if !bytes.Contains(data, []byte(`"iss"`)) || json.Unmarshal(data, &c) != nil {
		return "", false
	}
	return c.Issuer, true
}

// Errors whose text clients know.
var (
	errSignature = errors.New("square/go-jose: error in cryptographic primitive")
	errNoKeys    = errors.New("invalid signature, no keys found")
)

// algorithms are all that any key may have.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// verify checks the signature and reads the claims. It returns the ID of the key that signed them, too.
func (a *Authenticator) verify(ctx context.Context, token string) (*claims, string, error) {
	signed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(signed.Headers) != 1 {
		return nil, "", a.cfg.Unsigned
	}
	header := signed.Headers[0]
	keys := a.cfg.Keys.Find(ctx, header.KeyID)
	if len(keys) == 0 {
		return nil, "", errNoKeys
	}
	for i := range keys {
		key, c := &keys[i], &claims{}
		if header.Algorithm == string(key.Alg) && signed.Claims(key.Public, c) == nil {
			if c.Issuer != LegacyIssuer && !slices.Contains(a.cfg.Issuers, c.Issuer) {
				return nil, "", a.cfg.Unsigned
			}
			return c, key.ID, nil
		}
	}
	return nil, "", a.cfg.Unsigned
}

// audiences finds those that are both wanted and named by the token.
func (a *Authenticator) audiences(c *claims, wanted []string) ([]string, error) {
	named := []string(c.Audience)
	if len(named) == 0 {
		named = a.cfg.Audiences
	}
	if len(wanted) == 0 {
		wanted = a.cfg.Audiences
	}
	shared := authx.Intersect(named, wanted)
	if len(shared) == 0 && len(a.cfg.Audiences) > 0 {
		return nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", named, wanted)
	}
	return shared, nil
}
