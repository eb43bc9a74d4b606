package networks

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/release"
)

const (
	// CIDRSwitch is the name of CIDRs in --controllers, and its field manager.
	CIDRSwitch    = "service-cidr-controller"
	cidrFinalizer = "networking.k8s.io/service-cidr-finalizer"

	// cidrGrace is the time for which an unused ServiceCIDR keeps its finalizer, so that every server knows by then that
	// it is being deleted.
	cidrGrace = 10 * time.Second
	// cidrsEvery is the resync period.
	cidrsEvery = 10 * time.Minute
)

// CIDRs sets the readiness of ServiceCIDRs, and keeps one that is being deleted as long as a Service has an
// address of it that no other ServiceCIDR covers.
//
// Clients that may write ServiceCIDRs cause two writes for each, and while one waits, a scan of all
// IPAddresses once a second at most, and only while some of them are deleted.
type CIDRs struct {
	reconcile.Base
	Release release.Version // in whose version of the API ServiceCIDRs are written

	blocked map[string]bool         // by name: addresses keep it
	known   map[string]knownNetwork // of all ServiceCIDRs, by name
}

type knownNetwork struct {
	revision int64
	networks []netip.Prefix
}

// Run works until ctx ends.
func (s *CIDRs) Run(ctx context.Context) error {
	s.blocked = map[string]bool{}
	l := &reconcile.Loop{Base: s.Base, Reconcile: s.reconcile, Resync: cidrsEvery, Failure: "cannot keep a ServiceCIDR"}
	unblock := func() { // soon, and together for all that changes until then
		for name := range s.blocked {
			l.Queue.AddAfter(reconcile.Key{Name: name}, l.Retry)
		}
	}
	all := l.Objects(core.ServiceCIDRStorage, nil)
	seen := all.Seen
	all.Changed = func(d cache.Delivery) {
		switch d.Type {
		case cache.Added: // it may cover addresses for which others wait
			unblock()
			fallthrough
		case cache.Modified:
			seen(d.Item())
		}
	}
	l.Sources = []reconcile.Source{all, {Storage: core.IPAddressStorage, Gone: func(*cache.Item) { unblock() }}}
	return l.Run(ctx)
}

func (s *CIDRs) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	delete(s.blocked, key.Name)
	var c networkingv1.ServiceCIDR
	if !reconcile.Decode(s.Cache.Get(core.ServiceCIDRStorage, "", key.Name), &c) {
		return r, nil
	}
	if c.DeletionTimestamp == nil {
		if err := s.finalize(ctx, &c, true); err != nil {
			return r, err
		}
		return r, s.writeReady(ctx, &c, metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"})
	}
	if s.needed(&c) {
		s.blocked[key.Name] = true
		return r, s.writeReady(ctx, &c, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
		})
	}
	if left := graceLeft(c.DeletionTimestamp.Time, s.Now()); left > 0 {
		return reconcile.Result{After: left}, nil
	}
	return r, s.finalize(ctx, &c, false)
}

// graceLeft returns how long to wait before another look at an unused ServiceCIDR that was deleted at a time. It is never long, because
// the clock may be set in the meantime, and another machine may have recorded the time.
func graceLeft(deleted, now time.Time) time.Duration {
	return min(deleted.Add(cidrGrace).Sub(now), cidrGrace)
}

// writeReady writes the condition Ready if it differs.
func (s *CIDRs) writeReady(ctx context.Context, c *networkingv1.ServiceCIDR, ready metav1.Condition) error {
	old := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	if old != nil && old.Status == ready.Status && (ready.Status == metav1.ConditionTrue || old.Reason == ready.Reason && old.Message == ready.Message) {
		return nil
	}
	ready.LastTransitionTime = metav1.NewTime(s.Now())
	return reconcile.Current(applyReady(ctx, s.API, s.Release, CIDRSwitch, c.Name, ready))
}

// finalize adds the finalizer that keeps a ServiceCIDR, or takes it away.
func (s *CIDRs) finalize(ctx context.Context, c *networkingv1.ServiceCIDR, keep bool) error {
	if slices.Contains(c.Finalizers, cidrFinalizer) == keep {
		return nil
	}
	member := "finalizers"
	if !keep {
		member = "$deleteFromPrimitiveList/finalizers"
	}
	body := map[string]any{"metadata": map[string]any{"uid": c.UID, member: []string{cidrFinalizer}}}
	return reconcile.Current(s.API.Call(ctx, CIDRSwitch, http.MethodPatch, pathOf(s.Release, "servicecidrs", c.Name), string(types.StrategicMergePatchType), body, nil))
}

// needed reports whether a Service has an address of a ServiceCIDR that no other one covers.
func (s *CIDRs) needed(c *networkingv1.ServiceCIDR) (found bool) {
	own, others := map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	var ownBits, otherBits [129]bool // the lengths of prefixes among them
	now := make(map[string]knownNetwork, len(s.known))
	s.Cache.Snapshot(core.ServiceCIDRStorage).Ascend("", "", "", func(item *cache.Item) bool {
		known, ok := s.known[item.Name]
		if !ok || known.revision != item.Revision {
			known = knownNetwork{item.Revision, networksOf(item)}
		}
		now[item.Name] = known
		for _, n := range known.networks {
			if item.Name == c.Name {
				own[n], ownBits[n.Bits()] = true, true
			} else {
				others[n], otherBits[n.Bits()] = true, true
			}
		}
		return true
	})
	s.known = now
	s.Cache.Snapshot(core.IPAddressStorage).Ascend("", "", "", func(item *cache.Item) bool {
		addr, err := netip.ParseAddr(item.Name)
		if err == nil && covered(addr, own, &ownBits) && item.Meta().Labels[core.LabelManagedBy] == core.ManagedByAllocator {
			found = !covered(addr, others, &otherBits)
		}
		return !found
	})
	return found
}

func networksOf(item *cache.Item) (list []netip.Prefix) {
	var c networkingv1.ServiceCIDR
	if !reconcile.Decode(item, &c) {
		return nil
	}
	for _, text := range c.Spec.CIDRs {
		if n, err := netip.ParsePrefix(text); err == nil {
			list = append(list, n.Masked())
		}
	}
	return list
}

// covered reports whether an address is in one of networks, whose prefix lengths are bits.
func covered(addr netip.Addr, networks map[netip.Prefix]bool, bits *[129]bool) bool {
	for n, any := range bits[:addr.BitLen()+1] {
		if any {
			if prefix, err := addr.Prefix(n); err == nil && networks[prefix] {
				return true
			}
		}
	}
	return false
}
