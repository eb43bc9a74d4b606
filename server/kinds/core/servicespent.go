package core

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/rowlock/rowlock/server/kinds"
)

// spent remembers exhausted networks, and with the zero prefix the ports. To detect that takes a look at each
// address of a network, which is not repeated until one is released. So a search costs a step for each
// address that is taken, and there is at most one failed search for each release.
type spent struct {
	mu sync.Mutex
	at map[netip.Prefix]removed
}

// removed are the numbers that change when something is given back.
type removed struct{ addresses, shown, ports int64 }

// maxSpent bounds how many removed networks are remembered.
const maxSpent = 4096

func (s *spent) holds(of netip.Prefix, now removed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.at[of]
	return ok && at == now
}

func (s *spent) add(of netip.Prefix, now removed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil || len(s.at) >= maxSpent {
		s.at = map[netip.Prefix]removed{}
	}
	s.at[of] = now
}

// anyIn takes any address of a network, by its number.
func (p *allocation) anyIn(n network, take func(i int) bool) (int, error) {
	now := removed{addresses: p.claims.Removed(addressPool)} // read before the addresses are
	if p.a.ranges != nil {
		now.shown = p.claims.Removed(IPAddressStorage)
	}
	return p.any(n.prefix, now, n.size(), n.lower(), take)
}

// any reserves one of size addresses of a network, or of the ports, unless it is known that none is
// left.
func (p *allocation) any(of netip.Prefix, now removed, size, lower int, take func(i int) bool) (int, error) {
	if p.a.spent.holds(of, now) {
		return 0, errExhausted
	}
	i, ok := pick(size, lower, take)
	if ok {
		return i, nil
	}
	if !slices.ContainsFunc(p.take, func(c kinds.Claim) bool { return within(of, c) }) { // those are not taken yet
		p.a.spent.add(of, now)
	}
	return 0, errExhausted
}

// within reports whether a claim is one of a network, or of the ports.
func within(of netip.Prefix, c kinds.Claim) bool {
	if c.Pool == portPool {
		return !of.IsValid()
	}
	addr, err := netip.ParseAddr(c.Name)
	return err == nil && of.IsValid() && of.Contains(addr)
}
