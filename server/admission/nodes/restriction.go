package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// Restriction limits the writes of kubelets to their own node and its pods. It examines the content of
// writes, of which the node authorizer knows only names. It admits everything from other users.
type Restriction struct {
	Objects admission.Objects
	// ExpansionRecovery lets agents write the progress of the expansion of a volume.
	ExpansionRecovery bool
	// AnySubject lets agents request certificates of other nodes.
	AnySubject bool
	// Audiences keeps agents to tokens for audiences that volumes of the pod name, or that Authorizer allows.
	Audiences  bool
	Authorizer authx.Authorizer
	// Certificates lets agents request certificates for the pods of their node.
	Certificates bool
	// Release is the release whose rules apply.
	Release release.Version
}

var _ admission.Mutator = Restriction{}

// Name implements admission.Plugin.
func (Restriction) Name() string { return "NodeRestriction" }

// Handles implements admission.Plugin.
func (Restriction) Handles(op admission.Operation) bool { return op != admission.Connect }

// Admit implements admission.Mutator; it changes nothing.
func (p Restriction) Admit(ctx context.Context, a *admission.Attributes) error {
	name, isNode := node.NameOf(a.User)
	if !isNode {
		return nil
	}
	if name == "" {
		return a.Forbid(fmt.Errorf("could not determine node from user %q", a.User.Name))
	}
	var err error
	switch a.Resource.GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		err = p.pod(ctx, name, a)
	case schema.GroupResource{Resource: "nodes"}:
		err = p.node(name, a)
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		err = p.claim(name, a)
	case schema.GroupResource{Resource: "serviceaccounts"}:
		err = p.token(ctx, name, a)
	case schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		err = lease(name, a)
	case schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}:
		err = csiNode(name, a)
	case schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}:
		err = slice(name, a)
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:
		err = p.certificate(name, a)
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:
		err = p.podCertificate(ctx, name, a)
	}
	var stale *staleError
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return err
	case errors.As(err, &stale):
		return status.Plain(stale.text)
	}
	return a.Forbid(err)
}

func (p Restriction) pod(ctx context.Context, name string, a *admission.Attributes) error {
	switch a.Subresource {
	case "":
	case "status":
		return podStatus(name, a)
	case "eviction":
		return p.eviction(ctx, name, a)
	default:
		return fmt.Errorf("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", a.Subresource)
	}
	switch a.Operation {
	case admission.Create:
		return p.mirror(ctx, name, a)
	case admission.Delete:
		if pod, ok := a.Old.(*corev1.Pod); !ok || pod.Spec.NodeName != name {
			return fmt.Errorf("node %q can only delete pods with spec.nodeName set to itself", name)
		}
		return nil
	}
	return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", a.Operation, name)
}

// mirror lets an agent show its static pods, which may use nothing of the API.
func (p Restriction) mirror(ctx context.Context, name string, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return unexpected(a.Object)
	}
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; !ok {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, name)
	}
	if pod.Spec.NodeName != name {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", name)
	}
	if err := p.owner(ctx, name, pod); err != nil {
		return err
	}
	what := ""
	switch used := podspec.ReferencesOf(&pod.Spec); {
	case p.Release.Has(release.MirrorsWithoutAPI):
		if what = usedOfAPI(&pod.Spec, used); what == "" {
			return nil
		}
	case pod.Spec.ServiceAccountName != "":
		what = "a service account"
	case len(used.Secrets) > 0:
		what = "secrets"
	case len(used.ConfigMaps) > 0:
		what = "configmaps"
	case usesBundles(&pod.Spec):
		what = "clustertrustbundles"
	case usesClaims(&pod.Spec):
		what = "persistentvolumeclaims"
	case len(pod.Spec.ResourceClaims) > 0:
		what = "resourceclaims"
	default:
		return nil
	}
	return fmt.Errorf("node %q can not create pods that reference %s", name, what)
}

// owner checks that the only owner of a mirror pod is the current node object.
func (p Restriction) owner(ctx context.Context, name string, pod *corev1.Pod) error {
	if len(pod.OwnerReferences) > 1 {
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", name)
	}
	if len(pod.OwnerReferences) == 0 {
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", name)
	}
	owner := &pod.OwnerReferences[0]
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != name:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", name)
	case owner.Controller == nil || !*owner.Controller:
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", name)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", name)
	}
	self, err := p.Objects.Get(ctx, "nodes", "", name)
	if err != nil {
		return fmt.Errorf("error looking up node %s to verify uid: %w", name, err)
	}
	if self == nil {
		return apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	if owner.UID != self.GetUID() {
		return fmt.Errorf("node %s UID mismatch: expected %s got %s", name, owner.UID, self.GetUID())
	}
	return nil
}

// usedOfAPI names the API object that a pod uses; "" if there is none.
func usedOfAPI(s *corev1.PodSpec, used podspec.References) string {
	switch {
	case s.ServiceAccountName != "":
		return "serviceaccounts"
	case len(used.Secrets) > 0:
		return "secrets"
	case len(used.ConfigMaps) > 0:
		return "configmaps"
	case len(s.ResourceClaims) > 0:
		return "resourceclaims"
	}
	for _, v := range s.Volumes {
		switch {
		case v.CSI != nil:
			return "csidrivers (via CSI volumes)"
		case v.Glusterfs != nil:
			return "endpoints (via glusterFS volumes)"
		case v.PersistentVolumeClaim != nil:
			return "persistentvolumeclaims"
		case v.Ephemeral != nil:
			return "persistentvolumeclaims (via ephemeral volumes)"
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				switch {
				case source.ServiceAccountToken != nil:
					return "serviceaccounts (via projected volumes)"
				case source.ClusterTrustBundle != nil:
					return "clustertrustbundles"
				case source.PodCertificate != nil:
					return "podcertificates"
				}
			}
		}
	}
	return ""
}

func usesBundles(s *corev1.PodSpec) bool {
	for _, v := range s.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ClusterTrustBundle != nil {
				return true
			}
		}
	}
	return false
}

// usesClaims counts claims of ephemeral volumes: their names consist of those of pod and volume, and so could
// be made equal to the name of any claim.
func usesClaims(s *corev1.PodSpec) bool {
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

func podStatus(name string, a *admission.Attributes) error {
	if a.Operation != admission.Update {
		return fmt.Errorf("unexpected operation %q", a.Operation)
	}
	old, ok := a.Old.(*corev1.Pod)
	if !ok {
		return unexpected(a.Old)
	}
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return unexpected(a.Object)
	}
	switch {
	case old.Spec.NodeName != name:
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", name)
	case !labels.Equals(old.Labels, pod.Labels):
		return fmt.Errorf("node %q cannot update labels through pod status", name)
	case !sameClaims(old.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses):
		return fmt.Errorf("node %q cannot update resource claim statues", name)
	case !equality.Semantic.DeepEqual(old.Status.ExtendedResourceClaimStatus, pod.Status.ExtendedResourceClaimStatus):
		return fmt.Errorf("node %q cannot update extended resource claim status", name)
	}
	return nil
}

func sameClaims(a, b []corev1.PodResourceClaimStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i].ResourceClaimName, b[i].ResourceClaimName
		if a[i].Name != b[i].Name || (x == nil) != (y == nil) || x != nil && *x != *y {
			return false
		}
	}
	return true
}

func (p Restriction) eviction(ctx context.Context, name string, a *admission.Attributes) error {
	if a.Operation != admission.Create {
		return fmt.Errorf("unexpected operation %s", a.Operation)
	}
	eviction, ok := a.Object.(*policyv1.Eviction)
	if !ok {
		return unexpected(a.Object)
	}
	podName := a.Name
	podName = cmp.Or(podName, eviction.Name)
	if podName == "" {
		return errors.New("could not determine pod from request data")
	}
	pod, err := p.storedPod(ctx, a.Namespace, podName)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != name {
		return fmt.Errorf("node %s can only evict pods with spec.nodeName set to itself", name)
	}
	return nil
}

func (p Restriction) storedPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	obj, err := p.Objects.Get(ctx, "pods", namespace, name)
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return pod, nil
}

func unexpected(obj any) error { return fmt.Errorf("unexpected type %T", obj) }
