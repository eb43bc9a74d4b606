package podverbs

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// exec runs a command in a container.
func (d *dialer) exec(h *verbs.Handler, c *verbs.Call) error {
	q := query{values: c.R.URL.Query()}
	o := &corev1.PodExecOptions{
		Stdin: q.flag("stdin"), Stdout: q.flag("stdout"), Stderr: q.flag("stderr"), TTY: q.flag("tty"),
		Container: q.text("container"), Command: q.values["command"],
	}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodExecOptions"))
	params := streams(o.Stdin, o.Stdout, o.Stderr, o.TTY)
	params["command"] = o.Command
	return d.inContainer(h, c, "exec", o, o.Container, params)
}

// attach connects to the running process of a container.
func (d *dialer) attach(h *verbs.Handler, c *verbs.Call) error {
	q := query{values: c.R.URL.Query()}
	o := &corev1.PodAttachOptions{
		Stdin: q.flag("stdin"), Stdout: q.flag("stdout"), Stderr: q.flag("stderr"), TTY: q.flag("tty"), Container: q.text("container"),
	}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodAttachOptions"))
	return d.inContainer(h, c, "attach", o, o.Container, streams(o.Stdin, o.Stdout, o.Stderr, o.TTY))
}

// streams returns the query parameters by which kubelets choose the streams.
func streams(in, out, err, tty bool) url.Values {
	q := url.Values{}
	for name, on := range map[string]bool{"input": in, "output": out, "error": err, "tty": tty} {
		if on {
			q.Set(name, "1")
		}
	}
	return q
}

// admitted returns the pod of a request that connects to it with the options o.
func admitted(h *verbs.Handler, c *verbs.Call, o runtime.Object) (*corev1.Pod, error) {
	if err := h.Writes.Admit(c.R.Context(), c.Write(nil, "", nil), admission.Connect, o); err != nil {
		return nil, err
	}
	if err := mayConnect(h, c); err != nil {
		return nil, err
	}
	return livePod(h, c, c.Info.Name)
}

// inContainer connects the client to a container of a pod.
func (d *dialer) inContainer(h *verbs.Handler, c *verbs.Call, what string, o runtime.Object, name string, params url.Values) error {
	pod, err := admitted(h, c, o)
	if err != nil {
		return err
	}
	if name, err = container(pod, name); err != nil {
		return err
	}
	to, err := d.running(h, c, pod)
	if err != nil {
		return err
	}
	to.Path = fmt.Sprintf("/%s/%s/%s/%s", what, pod.Namespace, pod.Name, name)
	to.RawQuery = params.Encode()
	return d.takeOver(c, to)
}

// portForward connects to ports of a pod.
func (d *dialer) portForward(h *verbs.Handler, c *verbs.Call) error {
	o := &corev1.PodPortForwardOptions{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodPortForwardOptions"))
	for _, v := range c.R.URL.Query()["ports"] {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		o.Ports = append(o.Ports, int32(n))
	}
	pod, err := admitted(h, c, o)
	if err != nil {
		return err
	}
	to, err := d.running(h, c, pod)
	if err != nil {
		return err
	}
	to.Path = fmt.Sprintf("/portForward/%s/%s", pod.Namespace, pod.Name)
	if len(o.Ports) > 0 {
		ports := make([]string, len(o.Ports))
		for i, p := range o.Ports {
			ports[i] = strconv.Itoa(int(p))
		}
		to.RawQuery = url.Values{"port": {strings.Join(ports, ",")}}.Encode()
	}
	return d.takeOver(c, to)
}

// connects returns a special that connects the client to a pod, a service or a node, of which there is no dry run.
func connects(serve verbs.Special) verbs.Special {
	return func(h *verbs.Handler, c *verbs.Call) error {
		if c.R.URL.Query().Has("dryRun") { // whatever its value
			return apierrors.NewBadRequest("dryRun is not supported")
		}
		return serve(h, c)
	}
}

// createGate is the gate of the permission that NeedsCreate reports.
const createGate = "AuthorizePodWebsocketUpgradeCreatePermission"

// NeedsCreate reports whether a request connects to a pod with another verb than create, as a WebSocket does: the client needs the
// permission to create, too. feature reports whether a gate is on.
func NeedsCreate(i *request.Info, feature func(gate string) bool) bool {
	if i.Group != "" || i.Resource != "pods" || i.Verb == "create" || !feature(createGate) {
		return false
	}
	return i.Subresource == "exec" || i.Subresource == "attach" || i.Subresource == "portforward"
}

// mayConnect checks that a client which connects with GET, as WebSocket does, has the permission that POST needs.
func mayConnect(h *verbs.Handler, c *verbs.Call) error {
	if !NeedsCreate(c.Info, h.Enabled) {
		return nil
	}
	p, reason, err := permits.Authorize(c.R.Context(), h.Writes.Authorizer, &authx.Attributes{
		User: c.User, Verb: "create", Namespace: c.Info.Namespace, APIGroup: c.Info.Group, APIVersion: c.Info.Version,
		Resource: c.Info.Resource, Subresource: c.Info.Subresource, Name: c.Info.Name, ResourceRequest: true, Path: c.Info.Path,
	})
	switch {
	case err != nil:
		return status.Plain(err.Error())
	case !p.Valid():
		return apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, errors.New(reason))
	}
	return nil
}

// running returns the address of the kubelet of a pod's node.
func (d *dialer) running(h *verbs.Handler, c *verbs.Call, pod *corev1.Pod) (*url.URL, error) {
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	return d.agent(c, h, pod.Spec.NodeName)
}

// takeOver joins the client's connection to one of the kubelet. The server copies the bytes, SPDY or
// WebSocket, as they are.
func (d *dialer) takeOver(c *verbs.Call, to *url.URL) error {
	if !relay.Upgrades(c.R.Header) {
		return apierrors.NewBadRequest("Upgrade request required")
	}
	return forward(c, to, d.agents)
}
