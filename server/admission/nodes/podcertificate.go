package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// staleError refuses a request that names objects which do not exist, or not any more. An agent may try again, so
// the answer is not that it is forbidden.
type staleError struct{ text string }

func (e *staleError) Error() string { return e.text }

func stale(format string, args ...any) error { return &staleError{fmt.Sprintf(format, args...)} }

// podCertificate lets an agent request certificates for a pod that runs on its node with the service account that the
// request names.
func (p Restriction) podCertificate(ctx context.Context, name string, a *admission.Attributes) error {
	switch {
	case !p.Certificates:
		return errors.New("PodCertificateRequest feature gate is disabled")
	case a.Operation != admission.Create:
		return fmt.Errorf("unexpected operation %v", a.Operation)
	case a.Subresource != "":
		return fmt.Errorf("unexpected subresource %v", a.Subresource)
	}
	r, ok := a.Object.(*certificatesv1beta1.PodCertificateRequest)
	if !ok {
		return unexpected(a.Object)
	}
	s := &r.Spec
	if string(s.NodeName) != name {
		return fmt.Errorf("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", s.NodeName, name)
	}
	node, err := p.named(ctx, "nodes", "node", "", name)
	if err != nil {
		return err
	}
	podName := a.Namespace + "/" + s.PodName
	if uid := node.GetUID(); uid != s.NodeUID {
		return stale("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", podName, s.NodeUID, uid)
	}
	if err := p.podOfRequest(ctx, a.Namespace, podName, s); err != nil {
		return err
	}
	account, err := p.named(ctx, "serviceaccounts", "service account", a.Namespace, s.ServiceAccountName)
	if err != nil {
		return err
	}
	if uid := account.GetUID(); uid != s.ServiceAccountUID {
		return stale("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", podName, s.ServiceAccountUID, uid)
	}
	return nil
}

func (p Restriction) podOfRequest(ctx context.Context, namespace, podName string, s *certificatesv1beta1.PodCertificateRequestSpec) error {
	obj, err := p.named(ctx, "pods", "pod", namespace, s.PodName)
	if err != nil {
		return err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return unexpected(obj)
	}
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case s.PodUID != pod.UID:
		return stale("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", podName, s.PodUID, string(pod.UID))
	case types.NodeName(pod.Spec.NodeName) != s.NodeName:
		return fmt.Errorf("pod %q is not running on node %q named in the PodCertificateRequest", podName, s.NodeName)
	case mirror:
		return fmt.Errorf("pod %q is a mirror pod", podName)
	case s.ServiceAccountName != pod.Spec.ServiceAccountName:
		return fmt.Errorf("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", podName, s.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	return nil
}

// named finds an object that a PodCertificateRequest names.
func (p Restriction) named(ctx context.Context, plural, what, namespace, name string) (kinds.Object, error) {
	at := name
	if namespace != "" {
		at = namespace + "/" + name
	}
	obj, err := p.Objects.Get(ctx, plural, namespace, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("while retrieving %s %q named in the PodCertificateRequest: %w", what, at, err)
	case obj == nil:
		return nil, stale("while retrieving %s %q named in the PodCertificateRequest: %s %q not found", what, at, strings.ReplaceAll(what, " ", ""), name)
	}
	return obj, nil
}
