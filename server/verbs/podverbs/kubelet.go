package podverbs

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// Kubelet configures connections to kubelets. Zero values take the named defaults.
type Kubelet struct {
	// TLS holds the client certificate, and the authorities that verify kubelets. Without RootCAs kubelets
	// are not verified: they commonly sign their own certificates.
	TLS *tls.Config
	// AddressTypes are the kinds of node address to try, best first; default
	// Hostname, InternalDNS, InternalIP, ExternalDNS, ExternalIP.
	AddressTypes []corev1.NodeAddressType
	DialTimeout  time.Duration // default 30s
	// Dial connects to kubelets and pods that are not on this server's network; nil dials directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MayProxy refuses hosts of nodes to which no request may be forwarded. nil refuses those with addresses
	// that only this server can reach, when it is called and again when it connects.
	MayProxy func(ctx context.Context, host string) error
	// Resolver resolves the names of nodes; nil: the system's resolver.
	Resolver *net.Resolver
	// Streams lets clients request the log of a single stream of a container.
	Streams bool
}

// maxHeaders bounds the bytes of the headers of an answer, because many answers may arrive at once.
const maxHeaders = 64 << 10

// dialer connects to kubelets and to pods.
type dialer struct {
	addressTypes []corev1.NodeAddressType
	agents       *http.Transport
	unchecked    *http.Transport // for clients that request no verification
	nodes        *http.Transport // to kubelets, for forwarded requests
	pods         *http.Transport // to pods and other ports of nodes, for forwarded requests
	mayProxy     func(ctx context.Context, host string) error
	streams      bool
	pages        *fair.Gate // bounds the pages whose links are rewritten
}

func (k Kubelet) dialer() *dialer {
	d := &dialer{addressTypes: k.AddressTypes, mayProxy: k.MayProxy, streams: k.Streams, pages: newPageGate()}
	resolver := k.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	if d.mayProxy == nil {
		d.mayProxy = func(ctx context.Context, host string) error { return onlyPublic(ctx, resolver, host) }
	}
	if len(d.addressTypes) == 0 {
		d.addressTypes = []corev1.NodeAddressType{
			corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeInternalIP, corev1.NodeExternalDNS, corev1.NodeExternalIP,
		}
	}
	k.DialTimeout = cmp.Or(k.DialTimeout, 30*time.Second)
	conf := k.TLS.Clone()
	if conf == nil {
		conf = &tls.Config{}
	}
	// Streams take connections over, which HTTP/2 does not allow.
	conf.NextProtos = []string{"http/1.1"}
	unchecked := conf.Clone()
	unchecked.InsecureSkipVerify = true
	if conf.RootCAs == nil {
		conf = unchecked
	}
	dial, proxied := k.Dial, k.Dial
	if dial == nil {
		direct := net.Dialer{Timeout: k.DialTimeout, KeepAlive: 30 * time.Second, Resolver: k.Resolver}
		checked := direct
		if k.MayProxy == nil { // the name may resolve to another address now
			checked.Control = func(_, address string, _ syscall.RawConn) error { return publicPort(address) }
		}
		dial, proxied = direct.DialContext, checked.DialContext
	}
	transport := func(c *tls.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
		return &http.Transport{
			DialContext: dial, TLSClientConfig: c, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
		}
	}
	d.agents, d.unchecked, d.nodes = transport(conf, dial), transport(unchecked, dial), transport(conf, proxied)
	// The contents and the certificate of a pod's server are not verified.
	d.pods = transport(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}, proxied)
	return d
}

// agent returns the address of a node's kubelet.
func (d *dialer) agent(c *verbs.Call, h *verbs.Handler, node string) (*url.URL, error) {
	obj, err := find(h, c, "nodes", node)
	if err != nil {
		return nil, err
	}
	n := obj.(*corev1.Node)
	port := 10250 // if the node does not declare one
	if p := n.Status.DaemonEndpoints.KubeletEndpoint.Port; p > 0 {
		port = int(p)
	}
	for _, t := range d.addressTypes {
		for _, a := range n.Status.Addresses {
			if a.Type == t && a.Address != "" {
				return &url.URL{Scheme: "https", Host: net.JoinHostPort(a.Address, strconv.Itoa(port))}, nil
			}
		}
	}
	return nil, status.Plain(fmt.Sprintf("no preferred addresses found; known addresses: %v", n.Status.Addresses))
}

// container returns the name of the container that the client means.
func container(pod *corev1.Pod, name string) (string, error) {
	var names []string
	podspec.VisitContainers(&pod.Spec, func(c *corev1.Container) { names = append(names, c.Name) })
	if name != "" {
		if slices.Contains(names, name) {
			return name, nil
		}
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	}
	switch len(pod.Spec.Containers) {
	case 1:
		return pod.Spec.Containers[0].Name, nil
	case 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s", pod.Name))
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", pod.Name, names))
}

// livePod returns a pod as all servers have written it.
func livePod(h *verbs.Handler, c *verbs.Call, name string) (*corev1.Pod, error) {
	obj, err := h.Objects.Latest(c.Context(), c.Permit(), podPlace(h, c, name))
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}
