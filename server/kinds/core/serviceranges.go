package core

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// With the gate MultiCIDRServiceAllocator the networks of service addresses are those of ServiceCIDRs, and
// each address is an IPAddress, which is created and deleted in the commit of its Service. The rows that hold
// addresses without the gate are kept as well: if the gate is turned off again, every used address is still
// taken.

// IPAddressStorage and ServiceCIDRStorage are where these objects are stored.
const (
	IPAddressStorage   = "ipaddresses.networking.k8s.io"
	ServiceCIDRStorage = "servicecidrs.networking.k8s.io"
)

// The ServiceCIDR of the networks that the server was started with, and the labels of
// IPAddresses that Services hold.
const (
	DefaultServiceCIDR = "kubernetes"
	LabelFamily        = "ipaddress.kubernetes.io/ip-family"
	LabelManagedBy     = "ipaddress.kubernetes.io/managed-by"
	ManagedByAllocator = "ipallocator.k8s.io"
)

const allocatorAgent = "kube-apiserver" // field manager of the IPAddresses of Services

var errOtherNetwork = errors.New("the provided network does not match the current range")

// addressFields are the fields of an IPAddress that its maker owns.
const addressFields = `{"f:metadata":{"f:labels":{".":{},"f:` + LabelFamily + `":{},"f:` + LabelManagedBy + `":{}}},` +
	`"f:spec":{"f:parentRef":{".":{},"f:name":{},"f:namespace":{},"f:resource":{}}}}`

// ServiceAddress returns the IPAddress of a Service.
func ServiceAddress(addr netip.Addr, namespace, name string) *networkingv1.IPAddress {
	family := corev1.IPv4Protocol
	if addr.Is6() {
		family = corev1.IPv6Protocol
	}
	a := &networkingv1.IPAddress{}
	a.Name = addr.String()
	a.Labels = map[string]string{LabelFamily: string(family), LabelManagedBy: ManagedByAllocator}
	a.Spec.ParentRef = &networkingv1.ParentReference{Resource: "services", Namespace: namespace, Name: name}
	return a
}

// NetworksVersion returns the group and version in which a server of a release writes IPAddresses and ServiceCIDRs.
func NetworksVersion(v release.Version) string {
	if gv := networkingv1.SchemeGroupVersion; v.Introduced(gv.WithKind("IPAddress")) {
		return gv.String()
	}
	return networkingv1.GroupName + "/v1beta1"
}

// newServiceAddress returns the IPAddress of a Service that is being written, with the metadata that a write
// through the API by its manager would give it.
func newServiceAddress(addr netip.Addr, owner string, v release.Version) *networkingv1.IPAddress {
	namespace, name, _ := strings.Cut(owner, "/")
	a := ServiceAddress(addr, namespace, name)
	a.UID = types.UID(uuid.NewString())
	a.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	a.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: v.Agent(allocatorAgent), Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: NetworksVersion(v),
		Time: &a.CreationTimestamp, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(addressFields)},
	}}
	return a
}

// ranges know the networks of ServiceCIDRs. They are read once a change of any of them,
// each once a change of its own.
type ranges struct {
	mu       sync.Mutex
	known    map[string]serviceRange // by name
	changed  int64                   // the state of all of them that known is of
	families map[corev1.IPFamily][]network
}

type serviceRange struct {
	revision int64
	networks []network
	ready    bool
}

// of returns the networks of a family that may be used, in order of the names of their
// ServiceCIDRs; without a default ServiceCIDR those that the server was started with too.
// They must not be changed.
func (r *ranges) of(f corev1.IPFamily, claims kinds.Claims, own map[corev1.IPFamily]network) []network {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The number is read before the objects, so that it is never that of a later state.
	if changed := claims.Changed(ServiceCIDRStorage); r.families == nil || changed != r.changed {
		r.read(claims, own)
		r.changed = changed
	}
	return r.families[f]
}

func (r *ranges) read(claims kinds.Claims, own map[corev1.IPFamily]network) {
	now, standing, seen := make(map[string]serviceRange, len(r.known)), false, map[network]bool{}
	r.families = map[corev1.IPFamily][]network{}
	add := func(n network) {
		f := corev1.IPv4Protocol
		if n.prefix.Addr().Is6() {
			f = corev1.IPv6Protocol
		}
		if !seen[n] {
			seen[n] = true
			r.families[f] = append(r.families[f], n)
		}
	}
	claims.Each(ServiceCIDRStorage, func(name string, revision int64, encoded []byte) {
		known, ok := r.known[name]
		if !ok || known.revision != revision {
			known = readRange(revision, encoded)
		}
		now[name] = known
		standing = standing || name == DefaultServiceCIDR
		if known.ready {
			for _, n := range known.networks {
				add(n)
			}
		}
	})
	r.known = now
	if !standing {
		for _, n := range own {
			add(n)
		}
	}
}

// readRange reads a ServiceCIDR. One without conditions is ready: there need not be a controller.
func readRange(revision int64, encoded []byte) serviceRange {
	r := serviceRange{revision: revision}
	var c networkingv1.ServiceCIDR
	if json.Unmarshal(encoded, &c) != nil || c.DeletionTimestamp != nil {
		return r
	}
	r.ready = true
	for i := range c.Status.Conditions {
		if condition := &c.Status.Conditions[i]; condition.Type == networkingv1.ServiceCIDRConditionReady {
			r.ready = condition.Status == metav1.ConditionTrue
			break
		}
	}
	for _, text := range c.Spec.CIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			r.networks = append(r.networks, network{prefix.Masked()})
		}
	}
	return r
}

// rangeAddress takes an address of a network that a ServiceCIDR names: the requested one,
// or any.
func (p *allocation) rangeAddress(f corev1.IPFamily, ip string) (string, error) {
	networks := p.a.ranges.of(f, p.claims, p.a.networks)
	if ip == "" {
		return p.anyOf(networks)
	}
	addr, ok := parseAddress(ip)
	within := ok && slices.ContainsFunc(networks, func(n network) bool { return n.contains(addr) }) // not the first and the last address of a network
	switch {
	case p.dry && !within && len(networks) > 0:
		return "", outside(addr, networks[0])
	case !within:
		return "", errOtherNetwork
	case p.dry:
		return ip, nil
	}
	return ip, p.hold(addr)
}

// anyOf takes any address of networks, from the first that has one.
func (p *allocation) anyOf(networks []network) (string, error) {
	for _, n := range networks {
		if i, err := p.anyIn(n, func(i int) bool { return p.hold(n.at(i)) == nil }); err == nil {
			return n.at(i).String(), nil
		}
	}
	return "", errExhausted
}

// hold takes an address: its row, and the IPAddress that shows it.
func (p *allocation) hold(addr netip.Addr) error {
	if p.claims.Taken(IPAddressStorage, addr.String()) {
		return errHeld
	}
	if err := p.claim(addressPool, addr.String()); err != nil {
		return errHeld
	}
	p.take = append(p.take, kinds.Claim{Pool: IPAddressStorage, Name: addr.String(), Owner: p.owner, Object: newServiceAddress(addr, p.owner, p.a.release)})
	return nil
}

var errHeld = errors.New("provided IP is already allocated")
