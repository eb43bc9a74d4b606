package podverbs

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/verbs"
)

// proxy passes a request on to a port of a pod. The name may be NAME, NAME:PORT
// or SCHEME:NAME:PORT.
func (d *dialer) proxy(h *verbs.Handler, c *verbs.Call) error {
	below := ""
	if len(c.Info.Parts) > 3 {
		below = strings.Join(c.Info.Parts[3:], "/")
	}
	o := &corev1.PodProxyOptions{Path: below}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodProxyOptions"))
	if err := h.AdmitPart(c, admission.Connect, o, nil, false); err != nil {
		return err
	}
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(c.Info.Name)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", c.Info.Name))
	}
	pod, err := livePod(h, c, name)
	if err != nil {
		return err
	}
	host, err := podHost(pod, port)
	if err != nil {
		return err
	}
	slash := strings.HasSuffix(c.R.URL.Path, "/")
	if below == "" && !slash && (c.R.Method == http.MethodGet || c.R.Method == http.MethodHead) {
		// Links in the answer are relative to the pod's root.
		to := url.URL{Path: c.R.URL.Path + "/", RawQuery: c.R.URL.RawQuery}
		c.W.Header().Set("Location", to.String())
		c.W.WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	to := &url.URL{Scheme: scheme, Host: host, Path: path.Join("/", below), RawQuery: c.R.URL.RawQuery}
	if to.Scheme == "" {
		to.Scheme = "http"
	}
	if slash && !strings.HasSuffix(to.Path, "/") {
		to.Path += "/"
	}
	return forward(c, to, d.pods)
}

// podHost is a pod's address with a port: the one asked for, or the first one that
// the pod declares.
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
	// The server must not be led to itself, or to where only it may go.
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
