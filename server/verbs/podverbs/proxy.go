package podverbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/verbs"
)

// podProxy forwards a request to a port of a pod. The name may be NAME, NAME:PORT or SCHEME:NAME:PORT.
func (d *dialer) podProxy(h *verbs.Handler, c *verbs.Call) error {
	below := pathBelow(c)
	scheme, name, port, err := proxied(h, c, "pod", "PodProxyOptions", &corev1.PodProxyOptions{Path: below})
	if err != nil {
		return err
	}
	pod, err := livePod(h, c, name)
	if err != nil {
		return err
	}
	host, err := podHost(pod, port)
	if err != nil {
		return err
	}
	return d.passOn(c, &url.URL{Scheme: scheme, Host: host, Path: below}, d.pods)
}

// serviceProxy forwards a request to a pod behind a port of a service.
func (d *dialer) serviceProxy(h *verbs.Handler, c *verbs.Call) error {
	below := pathBelow(c)
	scheme, name, port, err := proxied(h, c, "service", "ServiceProxyOptions", &corev1.ServiceProxyOptions{Path: below})
	if err != nil {
		return err
	}
	host, err := serviceHost(h, c, name, port)
	if err != nil {
		return err
	}
	return d.passOn(c, &url.URL{Scheme: scheme, Host: host, Path: below}, d.pods)
}

// nodeProxy forwards a request to a node's kubelet, or to another port of the node.
func (d *dialer) nodeProxy(h *verbs.Handler, c *verbs.Call) error {
	below := pathBelow(c)
	scheme, name, port, err := proxied(h, c, "node", "NodeProxyOptions", &corev1.NodeProxyOptions{Path: below})
	if err != nil {
		return err
	}
	to, err := d.agent(c, h, name)
	if err != nil {
		return err
	}
	if err := d.mayProxy(c.Context(), to.Hostname()); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	to.Path = below
	if port == "" || port == to.Port() {
		return d.passOn(c, to, d.nodes)
	}
	to.Scheme, to.Host = scheme, net.JoinHostPort(to.Hostname(), port)
	return d.passOn(c, to, d.pods)
}

// proxied runs admission, and parses the name of the object.
func proxied(h *verbs.Handler, c *verbs.Call, what, kind string, o runtime.Object) (scheme, name, port string, err error) {
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if err := h.Writes.Admit(c.R.Context(), c.Write(nil, "", nil), admission.Connect, o); err != nil {
		return "", "", "", err
	}
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(c.Info.Name)
	if !ok {
		return "", "", "", apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", what, c.Info.Name))
	}
	return scheme, name, port, nil
}

// pathBelow returns the path after the subresource, with its slashes.
func pathBelow(c *verbs.Call) string {
	p := ""
	if len(c.Info.Parts) > 3 {
		p = "/" + strings.Join(c.Info.Parts[3:], "/")
	}
	if strings.HasSuffix(c.R.URL.Path, "/") && !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}

// passOn forwards the request to to, and rewrites links in the answer so that they lead through this server.
func (d *dialer) passOn(c *verbs.Call, to *url.URL, transport http.RoundTripper) error {
	if to.Path == "" && (c.R.Method == http.MethodGet || c.R.Method == http.MethodHead) {
		// Links are relative to the root.
		root := url.URL{Path: c.R.URL.Path + "/", RawQuery: c.R.URL.RawQuery}
		c.W.Header().Set("Location", root.String())
		c.W.WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	to.Scheme = cmp.Or(to.Scheme, "http")
	to.RawQuery = c.R.URL.RawQuery
	if !relay.Upgrades(c.R.Header) {
		transport = d.relinked(c, to.Path, transport)
	}
	return forward(c, to, transport)
}

// podHost returns a pod's address with a port: the requested one, or the first that the pod declares.
func podHost(pod *corev1.Pod, port string) (string, error) {
	for i := 0; port == "" && i < len(pod.Spec.Containers); i++ {
		if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
			port = strconv.Itoa(int(ports[0].ContainerPort))
		}
	}
	text := ""
	if len(pod.Status.PodIPs) > 0 {
		text = pod.Status.PodIPs[0].IP
	}
	// The address must not lead to this server, nor to addresses that only this server can reach.
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.IsGlobalUnicast() {
		return "", apierrors.NewBadRequest("address not allowed")
	}
	if port != "" {
		return net.JoinHostPort(text, port), nil
	}
	if strings.Contains(text, ":") {
		return "[" + text + "]", nil
	}
	return text, nil
}

// serviceHost returns the address of a pod behind a service. The port is the name of one of the service's
// ports, or its number.
func serviceHost(h *verbs.Handler, c *verbs.Call, name, port string) (string, error) {
	if n, err := strconv.ParseInt(port, 10, 64); err == nil {
		obj, err := find(h, c, "services", name)
		if err != nil {
			return "", err
		}
		ports := obj.(*corev1.Service).Spec.Ports
		i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return int64(p.Port) == n })
		if i < 0 {
			return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", n, name))
		}
		port = ports[i].Name
	}
	obj, err := find(h, c, "endpoints", name)
	if err != nil {
		return "", err
	}
	subsets := obj.(*corev1.Endpoints).Subsets
	if len(subsets) == 0 {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}
	pods := podAddresses{namespace: c.Info.Namespace, find: func(pod string) []string { return addressesOf(h, c, pod) }}
	for _, i := range rand.Perm(len(subsets)) {
		s := &subsets[i]
		at := slices.IndexFunc(s.Ports, func(p corev1.EndpointPort) bool { return p.Name == port })
		if at < 0 {
			continue
		}
		for _, j := range rand.Perm(len(s.Addresses)) {
			if err := c.Context().Err(); err != nil {
				return "", err
			}
			if a := &s.Addresses[j]; pods.has(a) {
				return net.JoinHostPort(a.IP, strconv.Itoa(int(s.Ports[at].Port))), nil
			}
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", c.Info.Name))
}

// podAddresses are the addresses of the pods that an Endpoints names. Each pod is read once, because thousands of
// addresses may name the same one.
type podAddresses struct {
	namespace string
	find      func(pod string) []string
	known     map[string][]string // by pod
}

// has reports whether an address belongs to a pod of the same namespace: users that may write Endpoints
// must not be able to make this server connect anywhere else.
func (p *podAddresses) has(a *corev1.EndpointAddress) bool {
	if a.TargetRef == nil || a.TargetRef.Namespace != p.namespace {
		return false
	}
	ips, ok := p.known[a.TargetRef.Name]
	if !ok {
		if p.known == nil {
			p.known = map[string][]string{}
		}
		ips = p.find(a.TargetRef.Name)
		p.known[a.TargetRef.Name] = ips
	}
	return slices.Contains(ips, a.IP)
}

// addressesOf returns the addresses of a pod; none if it cannot be read. It sends no query: an Endpoints may name thousands of pods.
func addressesOf(h *verbs.Handler, c *verbs.Call, pod string) []string {
	at := podPlace(h, c, pod)
	item, err := h.Objects.Get(c.Permit(), at)
	if item == nil || err != nil {
		return nil
	}
	obj, err := h.Objects.Decode(c.Context(), at.Resource, item)
	if err != nil {
		return nil
	}
	var ips []string
	for _, ip := range obj.(*corev1.Pod).Status.PodIPs {
		ips = append(ips, strings.Clone(ip.IP)) // not the decoded pod
	}
	return ips
}

// find returns an object of the call's namespace, as all servers have written it. The error for a missing one names the resource of the call,
// as clients expect.
func find(h *verbs.Handler, c *verbs.Call, plural, name string) (kinds.Object, error) {
	r := h.Catalogue.Lookup("", "v1", plural)
	namespace := ""
	if r.Namespaced {
		namespace = c.Info.Namespace
	}
	obj, err := h.Objects.Latest(c.Context(), c.Permit(), objects.Place{Resource: r, Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(c.Resource.GroupResource(), name)
	}
	return obj, err
}

// errAddress is the error of a stock server.
var errAddress = errors.New("address not allowed")

// onlyPublic refuses hosts with addresses that only this server can reach.
func onlyPublic(ctx context.Context, resolver *net.Resolver, host string) error {
	ips, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	if len(ips) == 0 {
		return fmt.Errorf("no addresses for hostname")
	}
	for _, ip := range ips {
		if !ip.Unmap().IsGlobalUnicast() {
			return errAddress
		}
	}
	return nil
}

// publicPort is onlyPublic of an address and its port.
func publicPort(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil && !to.Addr().Unmap().IsGlobalUnicast() {
		return errAddress
	}
	return err
}
