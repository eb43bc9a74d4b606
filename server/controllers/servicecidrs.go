package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/core"
)

const (
	// serviceCIDRSwitch is the name of this controller in --controllers, and its field manager.
	serviceCIDRSwitch    = "service-cidr-controller"
	serviceCIDRFinalizer = "networking.k8s.io/service-cidr-finalizer"
)

// ServiceCIDRs says which ServiceCIDRs are ready, and keeps one that is being deleted for as
// long as a Service has an address of it that no other ServiceCIDR covers.
//
// Who may write ServiceCIDRs causes two writes for each, and while one waits, a look at all
// IPAddresses once a second at most, and only while some of them go.
type ServiceCIDRs struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Clock func() time.Time
	Moves Moves         // of the clock
	Grace time.Duration // how long one that nobody needs waits until every server knows that it goes; 0: 10 seconds
	Every time.Duration // how often all are looked at again; 0: ten minutes
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Queue *Queue        // nil: the work is not measured

	refused refused
	blocked map[string]bool         // by name: addresses keep it
	known   map[string]knownNetwork // of all ServiceCIDRs, by name
}

type knownNetwork struct {
	revision int64
	networks []netip.Prefix
}

// serviceCIDRs builds the controller where ServiceCIDRs count.
func serviceCIDRs(h Host, c Config) func(context.Context) error {
	if !c.runs(serviceCIDRSwitch) || len(c.ServiceNetworks) == 0 {
		return nil
	}
	return (&ServiceCIDRs{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Queue: h.Queues.Of("ipaddresses")}).Run
}

// Run works until ctx ends.
func (s *ServiceCIDRs) Run(ctx context.Context) error {
	if s.Grace == 0 {
		s.Grace = 10 * time.Second
	}
	if s.Every == 0 {
		s.Every = 10 * time.Minute
	}
	if s.Retry == 0 {
		s.Retry = time.Second
	}
	s.refused, s.blocked = refused{first: s.Retry, longest: mostRest}, map[string]bool{}
	return again(ctx, s.Retry, func(ctx context.Context) bool {
		look := func(item *cache.Item) bool {
			s.look(ctx, item.Name, item.Revision)
			return true
		}
		(&round{
			cache: s.Cache, every: s.Every, retry: s.Retry, refused: &s.refused, moves: s.Moves,
			again: func(key objectKey) { s.look(ctx, key.name, 0) },
			sources: []source{
				{storage: core.ServiceCIDRStorage, there: look, changed: func(batch []cache.Delivery) {
					for _, d := range batch {
						if d.Type == cache.Added { // it may cover what keeps others
							s.unblock()
						}
						look(d.Item())
					}
				}},
				{storage: core.IPAddressStorage, changed: func(batch []cache.Delivery) {
					if slices.ContainsFunc(batch, func(d cache.Delivery) bool { return d.Type == cache.Deleted }) {
						s.unblock()
					}
				}},
			},
		}).run(ctx)
		return true
	})
}

// unblock has those that wait looked at soon, and together for all that goes until then.
func (s *ServiceCIDRs) unblock() {
	for name := range s.blocked {
		s.refused.until(objectKey{name: name}, 0, time.Now())
	}
}

func (s *ServiceCIDRs) look(ctx context.Context, name string, revision int64) {
	if ctx.Err() != nil || s.refused.waits(objectKey{name: name}, revision, time.Now()) {
		return
	}
	s.Queue.Add(1)
	s.Queue.Work(func() bool {
		err := s.settle(ctx, name)
		if err != nil && ctx.Err() == nil {
			s.refused.add(objectKey{name: name}, revision, time.Now())
			s.Log.Warn("cannot settle a ServiceCIDR", "name", name, "error", err)
		}
		return err == nil
	})
}

// settle brings one ServiceCIDR to where it should be.
func (s *ServiceCIDRs) settle(ctx context.Context, name string) error {
	key := objectKey{name: name}
	s.refused.forget(key)
	delete(s.blocked, name)
	item := s.Cache.Get(core.ServiceCIDRStorage, "", name)
	var c networkingv1beta1.ServiceCIDR
	if item == nil || item.Corrupt != nil || json.Unmarshal(item.JSON(), &c) != nil {
		return nil
	}
	if c.DeletionTimestamp == nil {
		if err := s.finalize(ctx, &c, true); err != nil {
			return err
		}
		return s.say(ctx, &c, metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"})
	}
	if s.needed(&c) {
		s.blocked[name] = true
		return s.say(ctx, &c, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: networkingv1beta1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
		})
	}
	if left := c.DeletionTimestamp.Add(s.Grace).Sub(s.Clock()); left > 0 {
		s.refused.until(key, item.Revision, time.Now().Add(left))
		return nil
	}
	return s.finalize(ctx, &c, false)
}

// say writes the condition Ready, if it says something else.
func (s *ServiceCIDRs) say(ctx context.Context, c *networkingv1beta1.ServiceCIDR, ready metav1.Condition) error {
	said := meta.FindStatusCondition(c.Status.Conditions, networkingv1beta1.ServiceCIDRConditionReady)
	if said != nil && said.Status == ready.Status && (ready.Status == metav1.ConditionTrue || said.Reason == ready.Reason && said.Message == ready.Message) {
		return nil
	}
	ready.LastTransitionTime = metav1.NewTime(s.Clock())
	return ignoreGone(applyReady(ctx, s.API, serviceCIDRSwitch, c.Name, ready))
}

// finalize adds the finalizer that keeps a ServiceCIDR, or takes it away.
func (s *ServiceCIDRs) finalize(ctx context.Context, c *networkingv1beta1.ServiceCIDR, keep bool) error {
	if slices.Contains(c.Finalizers, serviceCIDRFinalizer) == keep {
		return nil
	}
	member := "finalizers"
	if !keep {
		member = "$deleteFromPrimitiveList/finalizers"
	}
	body := map[string]any{"metadata": map[string]any{"uid": c.UID, member: []string{serviceCIDRFinalizer}}}
	return ignoreGone(s.API.Call(ctx, serviceCIDRSwitch, http.MethodPatch, serviceCIDRsPath+"/"+url.PathEscape(c.Name), "application/strategic-merge-patch+json", body, nil))
}

// needed says whether a Service has an address of a ServiceCIDR that no other one covers.
func (s *ServiceCIDRs) needed(c *networkingv1beta1.ServiceCIDR) (found bool) {
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
	var c networkingv1beta1.ServiceCIDR
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), &c) != nil {
		return nil
	}
	for _, text := range c.Spec.CIDRs {
		if n, err := netip.ParsePrefix(text); err == nil {
			list = append(list, n.Masked())
		}
	}
	return list
}

// covered says whether one of networks, of the lengths bits, has an address.
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
