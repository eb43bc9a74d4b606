package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/certificates"
)

// agentLabels are the labels of Kubernetes that a kubelet may set on its node, in addition to those of
// agentDomains.
var agentLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

var (
	agentDomains      = []string{corev1.LabelNamespaceSuffixKubelet, corev1.LabelNamespaceSuffixNode}
	kubernetesDomains = []string{"kubernetes.io", "k8s.io"}
)

// node restricts a kubelet to its own Node, and keeps it from changing what attracts pods: taints, and labels
// by which administrators select.
func (p Restriction) node(name string, a *admission.Attributes) error {
	if a.Name != name {
		return fmt.Errorf("node %q is not allowed to modify node %q", name, a.Name)
	}
	if a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	n, ok := a.Object.(*corev1.Node)
	if !ok {
		return unexpected(a.Object)
	}
	if a.Operation == admission.Create {
		if n.Spec.ConfigSource != nil {
			return fmt.Errorf("node %q is not allowed to create pods with a non-nil configSource", name)
		}
		if bad := reserved(n.Labels, nil); len(bad) > 0 {
			return fmt.Errorf("node %q is not allowed to set the following labels: %s", name, strings.Join(bad, ", "))
		}
		return nil
	}
	old, ok := a.Old.(*corev1.Node)
	if !ok {
		return unexpected(a.Old)
	}
	if n.Spec.ConfigSource != nil && !equality.Semantic.DeepEqual(n.Spec.ConfigSource, old.Spec.ConfigSource) {
		return fmt.Errorf("node %q is not allowed to update configSource to a new non-nil configSource", name)
	}
	if !equality.Semantic.DeepEqual(n.Spec.Taints, old.Spec.Taints) {
		return fmt.Errorf("node %q is not allowed to modify taints", name)
	}
	// A node with an owner is deleted with it: a kubelet could delete its Node that way, and create it again
	// without the taints.
	if !equality.Semantic.DeepEqual(n.OwnerReferences, old.OwnerReferences) {
		return fmt.Errorf("node %q is not allowed to modify ownerReferences", name)
	}
	if bad := reserved(n.Labels, old.Labels); len(bad) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(bad, ", "))
	}
	return nil
}

// reserved returns the labels, sorted, that differ and are not for agents to change.
func reserved(next, old map[string]string) []string {
	var bad []string
	for k, v := range next {
		if was, ok := old[k]; (!ok || was != v) && !agentMaySet(k) {
			bad = append(bad, k)
		}
	}
	for k := range old {
		if _, ok := next[k]; !ok && !agentMaySet(k) {
			bad = append(bad, k)
		}
	}
	slices.Sort(bad)
	return bad
}

func agentMaySet(label string) bool {
	domain, _, ok := strings.Cut(label, "/")
	if !ok {
		return true
	}
	if within(domain, corev1.LabelNamespaceNodeRestriction) {
		return false
	}
	return !within(domain, kubernetesDomains...) || slices.Contains(agentLabels, label) || within(domain, agentDomains...)
}

// within reports whether a domain is one of these or below one.
func within(domain string, of ...string) bool {
	return slices.ContainsFunc(of, func(o string) bool { return domain == o || strings.HasSuffix(domain, "."+o) })
}

// claim lets an agent write the new size of a volume.
func (p Restriction) claim(name string, a *admission.Attributes) error {
	if a.Subresource != "status" {
		return errors.New("may only update PVC status")
	}
	if a.Operation != admission.Update {
		return fmt.Errorf("unexpected operation %q", a.Operation)
	}
	old, ok := a.Old.(*corev1.PersistentVolumeClaim)
	if !ok {
		return unexpected(a.Old)
	}
	next, ok := a.Object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return unexpected(a.Object)
	}
	old, next = p.fixedOf(old), p.fixedOf(next)
	var differ []string
	for part, same := range map[string]bool{
		"metadata": equality.Semantic.DeepEqual(old.ObjectMeta, next.ObjectMeta),
		"spec":     equality.Semantic.DeepEqual(old.Spec, next.Spec),
		"status":   equality.Semantic.DeepEqual(old.Status, next.Status),
	} {
		if !same {
			differ = append(differ, part)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("node %q is not allowed to update fields other than status.quantity and status.conditions: %s differs", name, strings.Join(differ, ", "))
}

// fixedOf returns a claim without the fields that a kubelet may change.
func (p Restriction) fixedOf(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c = c.DeepCopy()
	c.ResourceVersion, c.ManagedFields = "", nil
	c.Status.Capacity, c.Status.Conditions = nil, nil
	if p.ExpansionRecovery {
		c.Status.AllocatedResources, c.Status.AllocatedResourceStatuses = nil, nil
	}
	return c
}

// token lets an agent have tokens that end with a pod of its node.
func (p Restriction) token(ctx context.Context, name string, a *admission.Attributes) error {
	if a.Operation != admission.Create || a.Subresource != "token" {
		return nil
	}
	request, ok := a.Object.(*authenticationv1.TokenRequest)
	if !ok {
		return unexpected(a.Object)
	}
	ref := request.Spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return errors.New("node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return errors.New("node requested token with a pod binding without a uid")
	}
	pod, err := p.storedPod(ctx, a.Namespace, ref.Name)
	if err != nil {
		return err
	}
	if ref.UID != pod.UID {
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	}
	if pod.Spec.NodeName != name {
		return errors.New("node requested token bound to a pod scheduled on a different node")
	}
	if p.Audiences {
		return p.audience(ctx, a, request, pod)
	}
	return nil
}

func lease(name string, a *admission.Attributes) error {
	if a.Namespace != corev1.NamespaceNodeLease {
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	if nameOf(a) != name {
		return errors.New("can only access node lease with the same name as the requesting node")
	}
	return nil
}

func csiNode(name string, a *admission.Attributes) error {
	if nameOf(a) != name {
		return errors.New("can only access CSINode with the same name as the requesting node")
	}
	return nil
}

// slice lets an agent write the devices of its own node. The authorizer has checked the node of a slice that changes,
// which is immutable, but not those of a collection that is deleted.
func slice(name string, a *admission.Attributes) error {
	obj, verb := a.Object, "create"
	switch a.Operation {
	case admission.Create:
	case admission.Delete:
		obj, verb = a.Old, "delete"
	default:
		return nil
	}
	s, ok := obj.(*resourcev1beta1.ResourceSlice)
	if !ok {
		return unexpected(obj)
	}
	if s.Spec.NodeName != name {
		return fmt.Errorf("can only %s ResourceSlice with the same NodeName as the requesting node", verb)
	}
	return nil
}

// nameOf returns the name of the written object; on a create that in the object, which may
// still be to be made up.
func nameOf(a *admission.Attributes) string {
	if m := a.Meta(); a.Operation == admission.Create && m != nil {
		return m.GetName()
	}
	return a.Name
}

// certificate lets an agent request certificates of its own node.
func (p Restriction) certificate(name string, a *admission.Attributes) error {
	if a.Operation != admission.Create || p.AnySubject {
		return nil
	}
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return unexpected(a.Object)
	}
	if s := r.Spec.SignerName; s != certificatesv1.KubeletServingSignerName && s != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	request, err := certificates.Parse(r.Spec.Request)
	if err != nil {
		return fmt.Errorf("unable to parse csr: %w", err)
	}
	if request.Subject.CommonName != authx.NodePrefix+name {
		return fmt.Errorf("can only create a node CSR with CN=%s%s", authx.NodePrefix, name)
	}
	return nil
}
