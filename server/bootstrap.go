package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/server/controllers/networks"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/controllers/storageversions"
	"github.com/rowlock/rowlock/server/kinds/core"
)

// apiserverAgent is the field manager of the server's own writes.
const apiserverAgent = "kube-apiserver"

const (
	jsonType     = "application/json"
	servicesPath = "/api/v1/namespaces/default/services"
)

// bootstrap writes the objects that a cluster has from its start: its namespaces, its default objects, and
// the kubernetes Service with its endpoints.
func (o *ownObjects) bootstrap(ctx context.Context) error {
	if err := o.namespaces(ctx); err != nil {
		return err
	}
	if err := o.defaults(ctx); err != nil {
		return err
	}
	if c := &o.cfg.Controllers; c.Host != "" && c.StorageVersions {
		v := storageversions.Publisher{Base: reconcile.Base{API: o.api, Cache: o.cache, Log: o.cfg.Log, Clock: o.cfg.Clock}, Catalogue: o.cfg.Catalogue, Host: c.Host}
		if err := o.tolerate("storage versions", v.Update(ctx)); err != nil {
			return err
		}
	}
	if o.cfg.Policy != nil {
		for _, k := range o.cfg.Policy.Keys() {
			o.find(k.Resource, k.Namespace, k.Name)
		}
		if err := o.tolerate(defaultPolicy, o.cfg.Policy.Ensure(ctx, o.api, o.cache)); err != nil {
			return err
		}
	}
	if list := o.cfg.Controllers.ServiceNetworks; len(list) > 0 && o.find(core.ServiceCIDRStorage, "", core.DefaultServiceCIDR) == nil {
		err := networks.CreateDefaultCIDR(ctx, o.api, o.cfg.Release, list, o.cfg.Clock())
		if err := o.tolerate("servicecidrs/"+core.DefaultServiceCIDR, err); err != nil {
			return err
		}
	}
	if err := o.service(ctx); err != nil || !o.canAdvertise() {
		return err
	}
	o.find("endpoints", metav1.NamespaceDefault, "kubernetes")
	o.find("endpointslices.discovery.k8s.io", metav1.NamespaceDefault, "kubernetes")
	return o.endpoints(ctx)
}

// keep restores what a stock server restores while it runs: system namespaces, and the kubernetes Service
// with its endpoints. Until the next start it leaves existing objects as others have changed them.
func (o *ownObjects) keep(ctx context.Context) error {
	if err := o.namespaces(ctx); err != nil {
		return err
	}
	if err := o.service(ctx); err != nil || !o.canAdvertise() {
		return err
	}
	if o.cache.Get("endpoints", metav1.NamespaceDefault, "kubernetes") != nil && o.cache.Get("endpointslices.discovery.k8s.io", metav1.NamespaceDefault, "kubernetes") != nil {
		return nil
	}
	return o.endpoints(ctx)
}

// namespaces creates the system namespaces.
func (o *ownObjects) namespaces(ctx context.Context) error {
	for _, ns := range []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, metav1.NamespaceDefault} {
		if o.find("namespaces", "", ns) != nil {
			continue
		}
		err := o.create(ctx, "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		if err := o.tolerate("namespaces/"+ns, err); err != nil {
			return err
		}
	}
	return nil
}

// service creates the kubernetes Service.
func (o *ownObjects) service(ctx context.Context) error {
	b := o.cfg.Bootstrap
	if b.ServiceIP == nil {
		return nil
	}
	labels := map[string]string{"component": "apiserver", "provider": "kubernetes"}
	if o.find("services", metav1.NamespaceDefault, "kubernetes") == nil {
		single := corev1.IPFamilyPolicySingleStack
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Labels: labels},
			Spec: corev1.ServiceSpec{
				ClusterIP: b.ServiceIP.String(), IPFamilyPolicy: &single, SessionAffinity: corev1.ServiceAffinityNone,
				Ports: []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(int32(b.AdvertisePort))}},
			},
		}
		err := o.create(ctx, servicesPath, service)
		if isReason(err, metav1.StatusReasonInvalid) && o.api.Call(ctx, apiserverAgent, http.MethodGet, servicesPath+"/kubernetes", "", nil, nil) == nil {
			err = nil // in the meantime another server created it with this address
		}
		if err := o.tolerate("services/default/kubernetes", err); err != nil {
			return err
		}
	}
	return nil
}

// canAdvertise reports whether this server can add itself to the endpoints of the kubernetes Service.
func (o *ownObjects) canAdvertise() bool {
	return o.cfg.Bootstrap.ServiceIP != nil && o.cfg.Bootstrap.AdvertiseIP != nil
}

// endpoints is advertise as a step of the start.
func (o *ownObjects) endpoints(ctx context.Context) error {
	if err := o.tolerate("endpoints/default/kubernetes", o.advertise(ctx)); err != nil {
		return fmt.Errorf("endpoints of the kubernetes service: %w", err)
	}
	return nil
}

func (o *ownObjects) create(ctx context.Context, path string, obj any) error {
	return o.createAs(ctx, apiserverAgent, path, obj)
}

func (o *ownObjects) createAs(ctx context.Context, agent, path string, obj any) error {
	err := o.api.Call(ctx, agent, http.MethodPost, path, jsonType, obj, nil)
	if isReason(err, metav1.StatusReasonAlreadyExists) {
		return nil // another server did it, or an earlier start that was interrupted
	}
	return err
}

// advertise makes sure that this server is among the endpoints of the kubernetes Service. Other servers may
// write them at the same time, hence the retries on conflicts.
func (o *ownObjects) advertise(ctx context.Context) error {
	for try := 1; ; try++ {
		err := o.writeEndpoints(ctx)
		if !isReason(err, metav1.StatusReasonConflict) && !isReason(err, metav1.StatusReasonAlreadyExists) {
			return err
		}
		if err := contention.Backoff(ctx, try); err != nil {
			return err
		}
	}
}

func (o *ownObjects) writeEndpoints(ctx context.Context) error {
	b := o.cfg.Bootstrap
	ip := b.AdvertiseIP.String()
	family := discoveryv1.AddressTypeIPv4
	if strings.Contains(ip, ":") {
		family = discoveryv1.AddressTypeIPv6
	}
	name, port, tcp, ready := "https", int32(b.AdvertisePort), corev1.ProtocolTCP, true
	const endpointsPath = "/api/v1/namespaces/default/endpoints"
	var endpoints corev1.Endpoints
	method, path := http.MethodPut, endpointsPath+"/kubernetes"
	err := o.api.Call(ctx, apiserverAgent, http.MethodGet, path, "", nil, &endpoints)
	if isReason(err, metav1.StatusReasonNotFound) {
		endpoints = corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
			Subsets:    []corev1.EndpointSubset{{Ports: []corev1.EndpointPort{{Name: name, Port: port, Protocol: tcp}}}},
		}
		method, path, err = http.MethodPost, endpointsPath, nil
	}
	if err != nil {
		return err
	}
	listed := len(endpoints.Subsets) == 1 && len(endpoints.Subsets[0].Ports) == 1 && endpoints.Subsets[0].Ports[0].Port == port &&
		slices.ContainsFunc(endpoints.Subsets[0].Addresses, func(a corev1.EndpointAddress) bool { return a.IP == ip })
	if !listed {
		endpoints.Subsets = []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: ip}},
			Ports:     []corev1.EndpointPort{{Name: name, Port: port, Protocol: tcp}},
		}}
		if err := o.api.Call(ctx, apiserverAgent, method, path, jsonType, &endpoints, nil); err != nil {
			return err
		}
	}
	const slicesPath = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	slice := discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
	var have discoveryv1.EndpointSlice
	err = o.api.Call(ctx, apiserverAgent, http.MethodGet, slicesPath+"/kubernetes", "", nil, &have)
	if isReason(err, metav1.StatusReasonNotFound) {
		return o.api.Call(ctx, apiserverAgent, http.MethodPost, slicesPath, jsonType, &slice, nil)
	}
	if err != nil || len(have.Endpoints) == 1 && slices.Contains(have.Endpoints[0].Addresses, ip) {
		return err
	}
	slice.ObjectMeta = have.ObjectMeta
	return o.api.Call(ctx, apiserverAgent, http.MethodPut, slicesPath+"/kubernetes", jsonType, &slice, nil)
}
