package clientcert

import (
	"crypto/x509"
	"sync"
	"weak"
)

// remembered bounds the certificates in the cache.
const remembered = 4096

// memory caches parsed certificates, by identity. It does not keep
// them alive.
type memory[T any] struct {
	mu sync.RWMutex
	m  map[weak.Pointer[x509.Certificate]]T
}

func (m *memory[T]) get(c *x509.Certificate) (T, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.m[weak.Make(c)]
	return v, ok
}

func (m *memory[T]) put(c *x509.Certificate, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = make(map[weak.Pointer[x509.Certificate]]T)
	}
	if len(m.m) >= remembered {
		for p := range m.m {
			if p.Value() == nil {
				delete(m.m, p)
			}
		}
		if len(m.m) >= remembered {
			clear(m.m)
		}
	}
	m.m[weak.Make(c)] = v
}
