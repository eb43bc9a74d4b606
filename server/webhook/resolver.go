package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Resolver finds out where a Service is.
type Resolver struct {
	// Service and Endpoints find objects; nil where there is none.
	Service   func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	Endpoints func(ctx context.Context, namespace, name string) (*corev1.Endpoints, error)
	// Slices lists the endpoint slices of a Service.
	Slices func(ctx context.Context, namespace, name string) ([]*discoveryv1.EndpointSlice, error)
	// Direct leads to one of the endpoints, and not to the address of the Service,
	// which may not be reachable from here.
	Direct bool
}

// Resolve is for Client: one of the addresses.
func (r *Resolver) Resolve(ctx context.Context, s Service) (string, error) {
	all, err := r.Addresses(ctx, s)
	if err != nil {
		return "", err
	}
	return all[rand.IntN(len(all))], nil
}

// Addresses returns where a port of a Service is, host:port; without an error there is one at
// least.
func (r *Resolver) Addresses(ctx context.Context, s Service) ([]string, error) {
	svc, err := r.Service(ctx, s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	if svc == nil {
		return nil, fmt.Errorf("service %q not found", s.Name)
	}
	port := cmp.Or(s.Port, 443)
	switch svc.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
	case corev1.ServiceTypeExternalName:
		if !r.Direct {
			return []string{net.JoinHostPort(svc.Spec.ExternalName, strconv.Itoa(int(port)))}, nil
		}
		fallthrough
	default:
		return nil, fmt.Errorf("unsupported service type %q", svc.Spec.Type)
	}
	if !r.Direct && svc.Spec.Type == corev1.ServiceTypeClusterIP && svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil, errors.New(`cannot route to service with ClusterIP "None"`)
	}
	for i := range svc.Spec.Ports {
		if p := &svc.Spec.Ports[i]; p.Port == port {
			if r.Direct {
				return r.endpoints(ctx, svc, p.Name)
			}
			return []string{net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(port)))}, nil
		}
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", port, svc.Name))
}

// endpoints returns all endpoints of a Service that are ready.
func (r *Resolver) endpoints(ctx context.Context, svc *corev1.Service, port string) ([]string, error) {
	_, all, err := r.Ready(ctx, svc.Namespace, svc.Name, port)
	if err == nil && len(all) == 0 {
		err = apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", svc.Name))
	}
	return all, err
}

// Ready returns the addresses of a port of a Service at which endpoints are ready, by
// Endpoints or, where there are none, by slices. known is false where neither are there.
func (r *Resolver) Ready(ctx context.Context, namespace, name, port string) (known bool, addresses []string, err error) {
	e, err := r.Endpoints(ctx, namespace, name)
	if err != nil {
		return false, nil, err
	}
	if e != nil {
		for i := range e.Subsets {
			addresses = append(addresses, ofSubset(&e.Subsets[i], port)...)
		}
		if len(addresses) > 0 {
			return true, addresses, nil
		}
	}
	slices, err := r.Slices(ctx, namespace, name)
	for _, s := range slices {
		addresses = append(addresses, ofSlice(s, port)...)
	}
	return e != nil || len(slices) > 0, addresses, err
}

func ofSubset(s *corev1.EndpointSubset, port string) (all []string) {
	for _, p := range s.Ports {
		if p.Name != port {
			continue
		}
		for _, a := range s.Addresses {
			all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
		}
	}
	return all
}

func ofSlice(s *discoveryv1.EndpointSlice, port string) (all []string) {
	for _, p := range s.Ports {
		if p.Port == nil || (p.Name == nil && port != "") || (p.Name != nil && *p.Name != port) {
			continue
		}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, a := range e.Addresses {
				all = append(all, net.JoinHostPort(a, strconv.Itoa(int(*p.Port))))
			}
		}
	}
	return all
}
