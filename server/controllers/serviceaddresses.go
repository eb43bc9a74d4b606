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

	corev1 "k8s.io/api/core/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/core"
)

const (
	addressesPath    = "/apis/networking.k8s.io/v1beta1/ipaddresses"
	serviceCIDRsPath = "/apis/networking.k8s.io/v1beta1/servicecidrs"
	// serverAgent, rangeAgent and addressAgent are the field managers of what this controller writes: the
	// default ServiceCIDR, its status, and IPAddresses.
	serverAgent  = "kube-apiserver"
	rangeAgent   = "kubernetes-service-cidr-controller"
	addressAgent = "ipallocator-repair-controller"
)

// ServiceAddresses keeps the default ServiceCIDR, and IPAddresses in step with Services: an
// address that was taken before there were IPAddresses gets one, and one whose Service is
// gone, or has it no longer, goes. It looks through all Services every few minutes: that is
// a reading of their bytes, and a write for each that is out of step, one at a time.
type ServiceAddresses struct {
	API      API
	Cache    *cache.Cache
	Log      *slog.Logger
	Clock    func() time.Time
	Networks []netip.Prefix // of the default ServiceCIDR
	Every    time.Duration  // 0: three minutes
	Retry    time.Duration  // how soon a failure is tried again; 0: 1 second
	Queue    *Queue         // nil: the work is not measured
}

// serviceAddresses builds the controller where ServiceCIDRs count.
func serviceAddresses(h Host, c Config) func(context.Context) error {
	if len(c.ServiceNetworks) == 0 {
		return nil
	}
	a := &ServiceAddresses{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Networks: c.ServiceNetworks, Queue: h.Queues.Of("serviceipaddresses")}
	return a.Run
}

// addressGrace is how long an IPAddress may be without its Service: who asks for it before
// the Service is there needs some time.
const addressGrace = time.Minute

// Run works until ctx ends.
func (s *ServiceAddresses) Run(ctx context.Context) error {
	if s.Every == 0 {
		s.Every = 3 * time.Minute
	}
	return again(ctx, s.Retry, s.follow)
}

// follow puts everything right, and then again whenever it is time to, or the default
// ServiceCIDR changes.
func (s *ServiceAddresses) follow(ctx context.Context) bool {
	changed, _ := s.Cache.WatchNow(core.ServiceCIDRStorage, cache.Scope{Name: core.DefaultServiceCIDR})
	defer changed.Stop()
	timer := time.NewTimer(s.Every)
	defer timer.Stop()
	if !s.step(ctx, "the default ServiceCIDR", s.network) || !s.step(ctx, "the addresses of services", s.addresses) {
		return false
	}
	var batch []cache.Delivery
	for {
		select {
		case <-ctx.Done():
			return true
		case <-timer.C:
			return true
		case <-changed.Ready():
			var err error
			if batch, _, err = changed.Take(ctx, batch); err != nil || len(batch) > 0 && !s.step(ctx, "the default ServiceCIDR", s.network) {
				return false
			}
		}
	}
}

func (s *ServiceAddresses) step(ctx context.Context, what string, do func(context.Context) error) bool {
	s.Queue.Add(1)
	return s.Queue.Work(func() bool {
		err := do(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot keep up "+what, "error", err)
		}
		return err == nil
	})
}

// network makes sure that there is the default ServiceCIDR, and that it says that it is
// ready where it says nothing.
func (s *ServiceAddresses) network(ctx context.Context) error {
	item := s.Cache.Get(core.ServiceCIDRStorage, "", core.DefaultServiceCIDR)
	if item == nil {
		return MakeDefaultServiceCIDR(ctx, s.API, s.Networks, s.Clock())
	}
	var c networkingv1beta1.ServiceCIDR
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), &c) != nil || c.DeletionTimestamp != nil {
		return nil
	}
	if !slices.Equal(c.Spec.CIDRs, texts(s.Networks)) {
		s.Log.Warn("the default ServiceCIDR has other networks than this server was started with", "has", c.Spec.CIDRs, "started", s.Networks)
	}
	return s.sayReady(ctx, &c)
}

// sayReady says that the default ServiceCIDR is ready, where nobody says whether it is and it
// has the networks of this server.
func (s *ServiceAddresses) sayReady(ctx context.Context, c *networkingv1beta1.ServiceCIDR) error {
	said := meta.FindStatusCondition(c.Status.Conditions, networkingv1beta1.ServiceCIDRConditionReady)
	if said != nil || !slices.Equal(c.Spec.CIDRs, texts(s.Networks)) {
		return nil
	}
	return applyReady(ctx, s.API, rangeAgent, c.Name, defaultReady(s.Clock()))
}

func texts(networks []netip.Prefix) []string {
	list := make([]string, len(networks))
	for i, n := range networks {
		list[i] = n.Masked().String()
	}
	return list
}

// MakeDefaultServiceCIDR writes the ServiceCIDR of the networks that a server was started
// with, if there is none.
func MakeDefaultServiceCIDR(ctx context.Context, api API, networks []netip.Prefix, now time.Time) error {
	c := networkingv1beta1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: core.DefaultServiceCIDR}}
	c.Spec.CIDRs = texts(networks)
	if err := api.Call(ctx, serverAgent, http.MethodPost, serviceCIDRsPath, "application/json", &c, nil); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return applyReady(ctx, api, rangeAgent, core.DefaultServiceCIDR, defaultReady(now))
}

func defaultReady(now time.Time) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes default Service CIDR is ready", LastTransitionTime: metav1.NewTime(now)}
}

// applyReady writes the condition Ready of a ServiceCIDR, whoever wrote it before.
func applyReady(ctx context.Context, api API, agent, name string, ready metav1.Condition) error {
	condition := map[string]any{
		"type": networkingv1beta1.ServiceCIDRConditionReady, "status": ready.Status, "message": ready.Message, "lastTransitionTime": ready.LastTransitionTime,
	}
	if ready.Reason != "" { // the agent owns no field that it does not set
		condition["reason"] = ready.Reason
	}
	body := map[string]any{
		"apiVersion": networkingv1beta1.SchemeGroupVersion.String(), "kind": "ServiceCIDR",
		"metadata": map[string]any{"name": name}, "status": map[string]any{"conditions": []any{condition}},
	}
	path := serviceCIDRsPath + "/" + url.PathEscape(name) + "/status?force=true&fieldManager=" + agent
	return api.Call(ctx, agent, http.MethodPatch, path, "application/apply-patch+yaml", body, nil)
}

// addresses compares Services and IPAddresses.
func (s *ServiceAddresses) addresses(ctx context.Context) error {
	// Services are looked at after the addresses: one that is written meanwhile writes its own.
	there := s.Cache.Snapshot(core.IPAddressStorage)
	held := map[netip.Addr]*networkingv1beta1.IPAddress{} // as it should be
	unread := 0                                           // Services that hold addresses which nobody knows, such as those without their key
	s.Cache.Snapshot("services").Ascend("", "", "", func(item *cache.Item) bool {
		var service struct{ Spec corev1.ServiceSpec }
		if item.Corrupt != nil || json.Unmarshal(item.JSON(), &service) != nil {
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
	var stale []networkingv1beta1.IPAddress
	there.Ascend("", "", "", func(item *cache.Item) bool {
		var a networkingv1beta1.IPAddress
		if item.Corrupt != nil || json.Unmarshal(item.JSON(), &a) != nil {
			return true
		}
		addr, _ := netip.ParseAddr(a.Name)
		want := held[addr]
		delete(held, addr)
		switch {
		case want != nil && a.Spec.ParentRef != nil && *a.Spec.ParentRef == *want.Spec.ParentRef:
		case a.Labels[core.LabelManagedBy] != core.ManagedByAllocator || unread > 0:
		case s.Clock().Sub(a.CreationTimestamp.Time) > addressGrace:
			stale = append(stale, a)
			if want != nil {
				held[addr] = want
			}
		}
		return true
	})
	for i := range stale {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &stale[i].UID}}
		err := s.API.Call(ctx, addressAgent, http.MethodDelete, addressesPath+"/"+url.PathEscape(stale[i].Name), "application/json", &options, nil)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
		s.Log.Info("an IPAddress went that no service holds", "address", stale[i].Name)
	}
	for _, a := range held {
		if err := s.API.Call(ctx, addressAgent, http.MethodPost, addressesPath, "application/json", a, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
