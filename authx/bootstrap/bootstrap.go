// Package bootstrap authenticates by bootstrap tokens: Secrets of kube-system by
// which machines join a cluster.
//
// It promises: secrets are compared in constant time; a token whose Secret is invalid
// is unknown, and the error gives no reason.
package bootstrap

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/authx"
)

// The form of Secrets with bootstrap tokens.
const (
	Namespace  = "kube-system"
	NamePrefix = "bootstrap-token-"
	SecretType = "bootstrap.kubernetes.io/token"

	KeyID         = "token-id"
	KeySecret     = "token-secret"
	KeyExpiration = "expiration"
	KeyAuth       = "usage-bootstrap-authentication"
	KeySigning    = "usage-bootstrap-signing"
	KeyGroups     = "auth-extra-groups"

	userPrefix   = "system:bootstrap:"
	defaultGroup = "system:bootstrappers"
)

var (
	tokenForm = regexp.MustCompile(`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)
	groupForm = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)
)

// Secret is the needed part of a stored Secret.
type Secret struct {
	Type     string
	Data     map[string][]byte
	Deleting bool
}

// Lookup finds a live Secret of kube-system; found is false where there is none.
type Lookup interface {
	BootstrapSecret(ctx context.Context, name string) (s Secret, found bool, err error)
}

// Authenticator judges bootstrap tokens.
type Authenticator struct {
	Secrets Lookup
	Clock   func() time.Time // nil: time.Now
	Gate    *authx.Gate      // bounds the look-ups in flight, which may have to wait for the store; nil: no bound
}

// AuthenticateToken implements authx.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return nil, false, nil
	}
	id, secret := parts[1], parts[2]
	leave, err := a.Gate.Enter(ctx)
	if err != nil {
		return nil, true, err
	}
	defer leave()
	s, _, err := a.Secrets.BootstrapSecret(ctx, NamePrefix+id)
	if err != nil {
		return nil, true, err
	}
	hash := sha256.Sum256([]byte(secret))
	who := s.identity(id, hash)
	if who == nil || Expired(s.Data, a.now()) {
		return nil, false, nil
	}
	stands := func(ctx context.Context) bool {
		s, _, err := a.Secrets.BootstrapSecret(ctx, NamePrefix+id)
		if err != nil {
			return true
		}
		now := s.identity(id, hash)
		return now != nil && now.Covers(who)
	}
	return &authx.Authenticated{Identity: who, StillValid: stands}, true, nil
}

// identity returns the user of the token that has an ID, and a secret with a hash. It returns nil if the Secret does not authenticate
// that token, as one that does not exist. When the token expires does not count.
func (s *Secret) identity(id string, hash [sha256.Size]byte) *authx.Identity {
	stored := sha256.Sum256(s.Data[KeySecret])
	if s.Deleting || s.Type != SecretType || subtle.ConstantTimeCompare(stored[:], hash[:]) != 1 || string(s.Data[KeyID]) != id || string(s.Data[KeyAuth]) != "true" {
		return nil
	}
	groups, ok := groups(s.Data)
	if !ok {
		return nil
	}
	return &authx.Identity{Name: userPrefix + id, Groups: groups}
}

func (a *Authenticator) now() time.Time {
	if a.Clock == nil {
		return time.Now()
	}
	return a.Clock()
}

// Expired reports whether a token has expired. One with an invalid time has.
func Expired(data map[string][]byte, now time.Time) bool {
	left, ends := Remaining(data, now)
	return ends && left <= 0
}

// Remaining returns how long a token lives on; ends is false for one without an end.
func Remaining(data map[string][]byte, now time.Time) (left time.Duration, ends bool) {
	text := string(data[KeyExpiration])
	if text == "" {
		return 0, false
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, true
	}
	return until.Sub(now), true
}

// groups returns the default one and those that the Secret adds, all in order.
func groups(data map[string][]byte) ([]string, bool) {
	all := []string{defaultGroup}
	if extra := string(data[KeyGroups]); extra != "" {
		for g := range strings.SplitSeq(extra, ",") {
			if !groupForm.MatchString(g) {
				return nil, false
			}
			all = append(all, g)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), true
}
