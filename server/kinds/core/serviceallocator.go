package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// The pools of services' claims.
const (
	addressPool = "serviceips"
	portPool    = "serviceports"
)

var (
	errTaken     = errors.New("is already allocated")
	errExhausted = errors.New("range is full")
)

// ServiceAllocator hands out the addresses and node ports of services.
type ServiceAllocator struct {
	families []corev1.IPFamily // the first one is the default
	networks map[corev1.IPFamily]network
	ports    portRange
	ranges   *ranges // nil: there are no other networks, and addresses are not shown
	spent    spent
	strict   bool            // addresses have one form
	release  release.Version // of the wording of errors, and of the agent that makes addresses
}

// OfRelease sets the release of the wording of errors and of the agent that makes addresses. It is called before anything is allocated.
func (a *ServiceAllocator) OfRelease(v release.Version) *ServiceAllocator {
	a.release = v
	return a
}

// Strictly sets whether addresses have one form. It is called before anything is allocated.
func (a *ServiceAllocator) Strictly(strict bool) *ServiceAllocator {
	a.strict = strict
	return a
}

// FollowRanges takes the networks from ServiceCIDRs, and the taken addresses from IPAddresses. It
// is called before anything is allocated.
func (a *ServiceAllocator) FollowRanges() *ServiceAllocator {
	a.ranges = &ranges{}
	return a
}

// NewServiceAllocator makes an allocator over one network a family, the default
// one first, and the ports from first to last.
func NewServiceAllocator(networks []netip.Prefix, first, last int32) *ServiceAllocator {
	a := &ServiceAllocator{networks: make(map[corev1.IPFamily]network), ports: portRange{first, last}}
	for _, prefix := range networks {
		f := corev1.IPv4Protocol
		if prefix.Addr().Is6() {
			f = corev1.IPv6Protocol
		}
		a.families = append(a.families, f)
		a.networks[f] = network{prefix.Masked()}
	}
	return a
}

// Plan implements kinds.Allocator.
func (a *ServiceAllocator) Plan(_ context.Context, obj, old kinds.Object, claims kinds.Claims, dry bool) (take, release []kinds.Claim, err error) {
	s, _ := obj.(*corev1.Service)
	was, _ := old.(*corev1.Service)
	p := &allocation{a: a, dry: dry, claims: claims, taken: make(map[kinds.Claim]bool)}
	switch {
	case s == nil && was == nil:
	case s == nil:
		p.releaseAddresses(was.Spec.ClusterIPs...)
		p.releasePorts(was)
	case was == nil:
		p.owner = s.Namespace + "/" + s.Name
		err = p.create(s)
	default:
		p.owner = s.Namespace + "/" + s.Name
		err = p.update(s, was)
	}
	return p.take, p.release, err
}

// allocation lists the claims that one write of a service takes and releases.
type allocation struct {
	a             *ServiceAllocator
	claims        kinds.Claims
	dry           bool // a dry run, which like that of a stock server detects neither taken addresses nor ports out of range
	owner         string
	taken         map[kinds.Claim]bool // by this write, without owner
	take, release []kinds.Claim
}

// claim reserves one address or port of a pool.
func (p *allocation) claim(pool, name string) error {
	id := kinds.Claim{Pool: pool, Name: name}
	if p.taken[id] || p.claims.Taken(pool, name) {
		return errTaken
	}
	p.taken[id] = true
	p.take = append(p.take, kinds.Claim{Pool: pool, Name: name, Owner: p.owner})
	return nil
}

func (p *allocation) giveBack(pool, name string) {
	p.release = append(p.release, kinds.Claim{Pool: pool, Name: name, Owner: p.owner})
}

// pick tries the numbers below size until one can be taken: the upper part first, which leaves the lower part
// for clients that choose their own. It starts at random, so that concurrent writes seldom pick the same.
func pick(size, lower int, take func(int) bool) (int, bool) {
	for _, part := range [][2]int{{lower, size}, {0, min(lower, size)}} {
		n := part[1] - part[0]
		if n <= 0 {
			continue
		}
		start := rand.IntN(n)
		for i := range n {
			if k := part[0] + (start+i)%n; take(k) {
				return k, true
			}
		}
	}
	return 0, false
}

func (p *allocation) create(s *corev1.Service) error {
	syncAddresses(s, nil)
	if err := p.a.settleFamilies(s, nil); err != nil {
		return err
	}
	if err := p.addresses(s); err != nil {
		return err
	}
	if needsNodePorts(s) {
		if err := p.firstPorts(s); err != nil {
			return err
		}
	}
	if needsHealthPort(s) {
		return p.healthPort(s)
	}
	return nil
}

func (p *allocation) update(s, old *corev1.Service) error {
	keepAllocated(s, old)
	syncAddresses(s, old)
	if err := p.a.settleFamilies(s, old); err != nil {
		return err
	}
	if err := p.changeAddresses(s, old); err != nil {
		return err
	}
	switch {
	case needsNodePorts(s):
		if err := p.changePorts(s, old); err != nil {
			return err
		}
	case needsNodePorts(old):
		for _, port := range unique(nodePorts(old)) {
			p.giveBack(portPool, portName(port))
		}
	}
	switch {
	case needsHealthPort(s) && !needsHealthPort(old):
		return p.healthPort(s)
	case !needsHealthPort(s) && needsHealthPort(old):
		p.giveBack(portPool, portName(old.Spec.HealthCheckNodePort))
	}
	return nil
}

func unique(ports []int32) []int32 {
	var list []int32
	seen := make(map[int32]bool)
	for _, p := range ports {
		if !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	return list
}

func (p *allocation) releaseAddresses(ips ...string) {
	for _, ip := range ips {
		if addr, ok := parseAddress(ip); ok {
			p.giveBack(addressPool, addr.String())
			if p.a.ranges != nil {
				p.giveBack(IPAddressStorage, addr.String())
			}
		}
	}
}

// releasePorts gives back all ports of a service.
func (p *allocation) releasePorts(s *corev1.Service) {
	if !needsNodePorts(s) {
		return
	}
	ports := nodePorts(s)
	if needsHealthPort(s) && s.Spec.HealthCheckNodePort != 0 {
		ports = append(ports, s.Spec.HealthCheckNodePort)
	}
	for _, port := range unique(ports) {
		p.giveBack(portPool, portName(port))
	}
}

func (a *ServiceAllocator) invalid(s *corev1.Service, errs ...*field.Error) error {
	return status.Invalid(a.release, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
}

// parseAddress reads an address, with leading zeros if need be.
func parseAddress(text string) (netip.Addr, bool) {
	ip := netutils.ParseIPSloppy(text)
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

func portName(port int32) string { return strconv.Itoa(int(port)) }

// network is the addresses that services of a family can have: all of a prefix but
// the first one and, for IPv4, the last one.
type network struct{ prefix netip.Prefix }

// maxAddresses bounds how many addresses of a network are used unasked.
const maxAddresses = 1 << 20

func (n network) size() int {
	bits := n.prefix.Addr().BitLen() - n.prefix.Bits()
	if bits > 20 {
		return maxAddresses
	}
	size := 1<<bits - 1
	if n.prefix.Addr().Is4() {
		size--
	}
	return max(size, 0)
}

// lower returns how many addresses the allocator uses last unless a client requests one.
func (n network) lower() int { return min(max(16, n.size()/16), 256) }

// at returns the i-th allocatable address.
func (n network) at(i int) netip.Addr {
	b := n.prefix.Addr().AsSlice()
	carry := i + 1
	for k := len(b) - 1; k >= 0 && carry > 0; k-- {
		carry += int(b[k])
		b[k] = byte(carry)
		carry >>= 8
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

func (n network) contains(addr netip.Addr) bool {
	if !n.prefix.Contains(addr) || addr == n.prefix.Addr() {
		return false
	}
	return !addr.Is4() || n.prefix.Contains(addr.Next())
}

func (p *allocation) address(f corev1.IPFamily, ip string) (string, error) {
	if p.a.ranges != nil {
		return p.rangeAddress(f, ip)
	}
	n := p.a.networks[f]
	if ip == "" {
		i, err := p.anyIn(n, func(i int) bool { return p.claim(addressPool, n.at(i).String()) == nil })
		if err != nil {
			return "", err
		}
		return n.at(i).String(), nil
	}
	addr, ok := parseAddress(ip)
	if !ok || !n.contains(addr) {
		return "", outside(addr, n)
	}
	if p.dry {
		return ip, nil
	}
	if err := p.claim(addressPool, addr.String()); err != nil {
		return "", fmt.Errorf("provided IP %w", err)
	}
	return ip, nil
}

func outside(addr netip.Addr, n network) error {
	return fmt.Errorf("the provided IP (%v) is not in the valid range. The range of valid IPs is %s", addr, n.prefix)
}

// portRange is the ports that services can have on nodes.
type portRange struct{ first, last int32 }

func (r portRange) String() string { return fmt.Sprintf("%d-%d", r.first, r.last) }

// port takes the requested port.
func (p *allocation) port(port int32) error {
	if r := p.a.ports; !p.dry && (port < r.first || port > r.last) {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", r)
	}
	if err := p.claim(portPool, portName(port)); err != nil {
		return fmt.Errorf("provided port %w", err)
	}
	return nil
}

func (p *allocation) anyPort() (int32, error) {
	r := p.a.ports
	size := int(r.last-r.first) + 1
	now := removed{ports: p.claims.Removed(portPool)} // read before the ports are
	i, err := p.any(netip.Prefix{}, now, size, min(max(16, size/32), 128), func(i int) bool { return p.claim(portPool, portName(r.first+int32(i))) == nil })
	return r.first + int32(i), err
}
