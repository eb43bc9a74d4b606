package serviceaccount

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/rowlock/rowlock/authx"
)

// Verified signatures are remembered this long, and this many at most.
const (
	rememberFor = 10 * time.Second
	remembered  = 8192
	// Longer tokens are verified each time: an entry is as long as the token, whose length its holder
	// chooses.
	longestKept = 8 << 10
)

// accepted is a token whose signature is good.
type accepted struct {
	claims *claims
	key    string // the ID of the key that signed it
	who    *authx.Authenticated
	until  time.Time
}

// newAccepted makes the identity once, for all uses of a token that a key has signed.
func newAccepted(c *claims, key string) *accepted {
	id := &authx.Identity{}
	if c.Bound != nil && c.Issuer != LegacyIssuer {
		id.Name, id.UID = Username(c.Bound.Namespace, c.Bound.Account.Name), c.Bound.Account.UID
		id.Groups, id.Extra = Groups(c.Bound.Namespace), extra(c)
	} else {
		id.Name, id.UID = Username(c.LegacyNamespace, c.LegacyAccount), c.LegacyAccountUID
		id.Groups = Groups(c.LegacyNamespace)
	}
	id.Groups = append(id.Groups, authx.GroupAuthenticated)
	return &accepted{claims: c, key: key, who: &authx.Authenticated{Identity: id, Audiences: c.Audience}}
}

func extra(c *claims) map[string][]string {
	m := map[string][]string{}
	if c.ID != "" {
		m[authx.CredentialID] = []string{"JTI=" + c.ID}
	}
	if pod := c.Bound.Pod; pod != nil && pod.Name != "" && pod.UID != "" {
		m[authx.PodName], m[authx.PodUID] = []string{pod.Name}, []string{pod.UID}
	}
	if node := c.Bound.Node; node != nil && node.Name != "" {
		m[authx.NodeName] = []string{node.Name}
		if node.UID != "" {
			m[authx.NodeUID] = []string{node.UID}
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// verified remembers tokens by their hash.
type verified struct {
	mu      sync.RWMutex
	entries map[[sha256.Size]byte]*accepted
}

func (v *verified) get(hash [sha256.Size]byte, now time.Time) *accepted {
	v.mu.RLock()
	e := v.entries[hash]
	v.mu.RUnlock()
	if e == nil || now.After(e.until) {
		return nil
	}
	return e
}

// put remembers a token that is new, or whose time was over.
func (v *verified) put(hash [sha256.Size]byte, e *accepted, now time.Time) {
	if !e.until.IsZero() {
		return // it came from here
	}
	e.until = now.Add(rememberFor)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.entries) >= remembered {
		for h, old := range v.entries {
			if now.After(old.until) {
				delete(v.entries, h)
			}
		}
		if len(v.entries) >= remembered {
			clear(v.entries)
		}
	}
	v.entries[hash] = e
}
