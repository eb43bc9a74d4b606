// Package networks keeps the status and finalizers of ServiceCIDRs, and the IPAddresses of Services.
package networks

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/release"
)

const (
	// serverAgent, rangeAgent and addressAgent are the field managers of Addresses' writes: the default
	// ServiceCIDR, its status, and IPAddresses.
	serverAgent  = "kube-apiserver"
	rangeAgent   = "kubernetes-service-cidr-controller"
	addressAgent = "ipallocator-repair-controller"

	// repairEvery is the interval of comparing Services and IPAddresses.
	repairEvery = 3 * time.Minute
	// addressGrace bounds how long an IPAddress may be without its Service: a client that creates it before the
	// Service needs some time.
	addressGrace = time.Minute
)

// pathOf returns the path of an object, or of all of its kind, in the version in which a release writes them.
func pathOf(v release.Version, resource, name string) string {
	path := "/apis/" + core.NetworksVersion(v) + "/" + resource
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// The keys of Addresses.
var (
	network   = reconcile.Key{Name: "the default ServiceCIDR"}
	addresses = reconcile.Key{Name: "IPAddresses of Services"}
)

// Addresses maintains the default ServiceCIDR, and keeps IPAddresses in step with Services: it creates missing ones, for
// addresses that were assigned before the server had IPAddresses, and deletes those whose Service does not exist or does not
// use the address. Every few minutes it reads the bytes of all Services, and writes each difference, one at a time.
type Addresses struct {
	reconcile.Base
	Networks []netip.Prefix  // of the default ServiceCIDR
	Release  release.Version // in whose version of the API ServiceCIDRs and IPAddresses are written
}

// Run works until ctx ends.
func (s *Addresses) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: s.Base, Keys: []reconcile.Key{network, addresses}, Resync: repairEvery, Failure: "cannot keep service networks or addresses"}
	l.Sources = []reconcile.Source{{
		Storage: core.ServiceCIDRStorage, Scope: cache.Scope{Name: core.DefaultServiceCIDR},
		Changed: func(cache.Delivery) { l.Queue.Add(network, 0) },
	}}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key == network {
			return r, s.network(ctx)
		}
		return r, s.addresses(ctx)
	}
	return l.Run(ctx)
}

// network creates the default ServiceCIDR if there is none, and sets its condition Ready if it has
// none.
func (s *Addresses) network(ctx context.Context) error {
	item := s.Cache.Get(core.ServiceCIDRStorage, "", core.DefaultServiceCIDR)
	if item == nil {
		return CreateDefaultCIDR(ctx, s.API, s.Release, s.Networks, s.Now())
	}
	var c networkingv1.ServiceCIDR
	if !reconcile.Decode(item, &c) || c.DeletionTimestamp != nil {
		return nil
	}
	if !slices.Equal(c.Spec.CIDRs, texts(s.Networks)) {
		s.Log.Warn("the default ServiceCIDR has other networks than this server was started with", "has", c.Spec.CIDRs, "started", s.Networks)
	}
	return s.setReady(ctx, &c)
}

// setReady sets the condition Ready of the default ServiceCIDR, if it has none and its networks are those of
// this server.
func (s *Addresses) setReady(ctx context.Context, c *networkingv1.ServiceCIDR) error {
	ready := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	if ready != nil || !slices.Equal(c.Spec.CIDRs, texts(s.Networks)) {
		return nil
	}
	return applyReady(ctx, s.API, s.Release, rangeAgent, c.Name, defaultReady(s.Now()))
}

func texts(networks []netip.Prefix) []string {
	list := make([]string, len(networks))
	for i, n := range networks {
		list[i] = n.Masked().String()
	}
	return list
}

// CreateDefaultCIDR writes the ServiceCIDR of the networks that a server was started
// with, if there is none.
func CreateDefaultCIDR(ctx context.Context, api reconcile.API, v release.Version, networks []netip.Prefix, now time.Time) error {
	c := networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: core.DefaultServiceCIDR}}
	c.Spec.CIDRs = texts(networks)
	if err := api.Call(ctx, serverAgent, http.MethodPost, pathOf(v, "servicecidrs", ""), reconcile.JSON, &c, nil); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return applyReady(ctx, api, v, rangeAgent, core.DefaultServiceCIDR, defaultReady(now))
}

func defaultReady(now time.Time) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes default Service CIDR is ready", LastTransitionTime: metav1.NewTime(now)}
}

// applyReady applies the condition Ready of a ServiceCIDR, and takes it over from other field managers.
func applyReady(ctx context.Context, api reconcile.API, v release.Version, agent, name string, ready metav1.Condition) error {
	condition := map[string]any{
		"type": networkingv1.ServiceCIDRConditionReady, "status": ready.Status, "message": ready.Message, "lastTransitionTime": ready.LastTransitionTime,
	}
	if ready.Reason != "" { // the agent owns no field that it does not set
		condition["reason"] = ready.Reason
	}
	body := map[string]any{
		"apiVersion": core.NetworksVersion(v), "kind": "ServiceCIDR",
		"metadata": map[string]any{"name": name}, "status": map[string]any{"conditions": []any{condition}},
	}
	path := pathOf(v, "servicecidrs", name) + "/status?force=true&fieldManager=" + agent
	return api.Call(ctx, agent, http.MethodPatch, path, reconcile.Apply, body, nil)
}

// addresses compares Services and IPAddresses.
func (s *Addresses) addresses(ctx context.Context) error {
	// Read the Services after the addresses: a Service that is written in between brings its own address.
	there := s.Cache.Snapshot(core.IPAddressStorage)
	held := map[netip.Addr]*networkingv1.IPAddress{} // as it should be
	unread := 0                                      // Services whose addresses are unknown, as they cannot be decoded or decrypted
	s.Cache.Snapshot("services").Ascend("", "", "", func(item *cache.Item) bool {
		var service struct{ Spec corev1.ServiceSpec }
		if !reconcile.Decode(item, &service) {
			unread++
		} else {
			for _, ip := range service.Spec.ClusterIPs {
				if addr, err := netip.ParseAddr(ip); err == nil {
					held[addr] = core.ServiceAddress(addr, item.Namespace, item.Name)
				}
			}
		}
		return true
	})
	var stale []*cache.Item
	there.Ascend("", "", "", func(item *cache.Item) bool {
		var a networkingv1.IPAddress
		if !reconcile.Decode(item, &a) {
			return true
		}
		addr, _ := netip.ParseAddr(a.Name)
		want := held[addr]
		delete(held, addr)
		switch {
		case want != nil && a.Spec.ParentRef != nil && *a.Spec.ParentRef == *want.Spec.ParentRef:
		case a.Labels[core.LabelManagedBy] != core.ManagedByAllocator || unread > 0:
		case s.Now().Sub(a.CreationTimestamp.Time) > addressGrace:
			stale = append(stale, item)
			if want != nil {
				held[addr] = want
			}
		}
		return true
	})
	for _, item := range stale {
		if err := s.Delete(ctx, addressAgent, pathOf(s.Release, "ipaddresses", item.Name), item); reconcile.Current(err) != nil {
			return err
		}
		s.Log.Info("an IPAddress that no Service holds is deleted", "address", item.Name)
	}
	for _, a := range held {
		if err := s.API.Call(ctx, addressAgent, http.MethodPost, pathOf(s.Release, "ipaddresses", ""), reconcile.JSON, a, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
