package tokenwebhook

import (
	"crypto/sha256"
	"sync"
	"time"
)

// remembered is how many answers are remembered at most.
const remembered = 8192

// answers remembers verdicts for a while.
type answers struct {
	ttl time.Duration
	now func() time.Time

	mu sync.Mutex
	m  map[[sha256.Size]byte]answer
}

type answer struct {
	verdict
	until time.Time
}

func (a *answers) get(key [sha256.Size]byte) (verdict, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.m[key]
	if !ok || a.now().After(e.until) {
		return verdict{}, false
	}
	return e.verdict, true
}

func (a *answers) put(key [sha256.Size]byte, v verdict) {
	if a.ttl <= 0 {
		return
	}
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.m == nil {
		a.m = make(map[[sha256.Size]byte]answer)
	}
	if len(a.m) >= remembered {
		for k, e := range a.m {
			if now.After(e.until) {
				delete(a.m, k)
			}
		}
		if len(a.m) >= remembered {
			clear(a.m)
		}
	}
	a.m[key] = answer{v, now.Add(a.ttl)}
}
