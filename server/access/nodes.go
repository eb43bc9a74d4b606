package access

import (
	"context"
	"strings"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// followNodes keeps the graph of references from pods in step with a cache. withCertificates includes
// requests for certificates of pods.
func followNodes(g *node.Graph, c *cache.Cache, withCertificates bool) *follow.Follower {
	pods := follow.Kind{Storage: "pods", Set: func(item *cache.Item) {
		by := node.Ref{Kind: node.Pod, Namespace: item.Namespace, Name: item.Name}
		var pod corev1.Pod
		if !read(c.JSON(), item, &pod) {
			g.Release(by)
			return
		}
		g.SetReferences(by, strings.Clone(pod.Spec.NodeName), podRefs(item.Namespace, &pod))
	}, Delete: func(namespace, name string) {
		g.Release(node.Ref{Kind: node.Pod, Namespace: namespace, Name: name})
	}}
	volumes := follow.Kind{Storage: "persistentvolumes", Set: func(item *cache.Item) {
		var v corev1.PersistentVolume
		if !read(c.JSON(), item, &v) || v.Spec.ClaimRef == nil {
			g.Unbind(item.Name)
			return
		}
		claim := node.Ref{Kind: node.Claim, Namespace: strings.Clone(v.Spec.ClaimRef.Namespace), Name: strings.Clone(v.Spec.ClaimRef.Name)}
		g.Bind(item.Name, claim, volumeRefs(&v))
	}, Delete: func(_, name string) { g.Unbind(name) }}
	all := []follow.Kind{
		pods, volumes,
		ofNode(g, c, "volumeattachments.storage.k8s.io", node.Attachment, func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName }),
		ofNode(g, c, "resourceslices.resource.k8s.io", node.Slice, func(s *resourcev1beta1.ResourceSlice) string { return s.Spec.NodeName }),
	}
	if withCertificates {
		all = append(all, ofNode(g, c, "podcertificaterequests.certificates.k8s.io", node.PodCertificate, func(r *certificatesv1beta1.PodCertificateRequest) string { return string(r.Spec.NodeName) }))
	}
	return follow.New(c, g.Reset, all...)
}

// ofNode returns how the graph follows objects of a kind that belong to nodes, and refer to nothing else.
func ofNode[T any, P interface {
	*T
	runtime.Object
}](g *node.Graph, c *cache.Cache, storage string, kind node.Kind, nodeName func(P) string) follow.Kind {
	return follow.Kind{Storage: storage, Set: func(item *cache.Item) {
		by, obj := node.Ref{Kind: kind, Namespace: item.Namespace, Name: item.Name}, P(new(T))
		if !read(c.JSON(), item, obj) {
			g.Release(by)
			return
		}
		g.SetReferences(by, strings.Clone(nodeName(obj)), nil)
	}, Delete: func(namespace, name string) { g.Release(node.Ref{Kind: kind, Namespace: namespace, Name: name}) }}
}

// read decodes an object. Its strings share memory with the whole object.
func read(codec jsoncodec.Codec, item *cache.Item, into runtime.Object) bool {
	if item.Err() != nil {
		return false
	}
	_, err := codec.Decode(item.JSON(), into, codecs.Ignore)
	return err == nil
}

// Nodes is the authorizer of kubelets. Only their requests wait until its graph is up to date.
type Nodes struct {
	Follower *follow.Follower
	*node.Authorizer
}

// NewNodes maintains the graph of a node authorizer from a cache.
func NewNodes(z node.Authorizer, c *cache.Cache) Nodes {
	z.Graph = &node.Graph{}
	return Nodes{Follower: followNodes(z.Graph, c, z.Certificates), Authorizer: &z}
}

// Authorize implements authx.Authorizer.
func (n Nodes) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	name, isNode := node.NameOf(a.User)
	if !isNode {
		return authx.NoOpinion, "", nil
	}
	if name != "" {
		n.Follower.RLock()
		defer n.Follower.RUnlock()
	}
	return n.Authorizer.Authorize(ctx, a)
}

// maxReferences is the number of objects that a pod makes readable for its node. A pod can name a hundred thousand, of which
// the graph would take twenty times as much memory as the pod.
const maxReferences = 4096

// podRefs returns the objects that a pod's node may read because of the pod. A mirror of a static pod has none:
// the node itself wrote it.
func podRefs(namespace string, pod *corev1.Pod) []node.Ref {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil
	}
	l := refList{namespace: namespace, seen: map[node.Ref]bool{}}
	s := &pod.Spec
	l.add(node.Account, s.ServiceAccountName)
	used := podspec.ReferencesOf(s)
	for _, name := range used.Secrets {
		l.add(node.Secret, name)
	}
	for _, name := range used.ConfigMaps {
		l.add(node.ConfigMap, name)
	}
	for i := range s.Volumes {
		switch v := &s.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			l.add(node.Claim, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			l.add(node.Claim, pod.Name+"-"+v.Name)
		}
	}
	for _, c := range s.ResourceClaims {
		l.add(node.ResourceClaim, claimOf(pod, &c))
	}
	if claim := pod.Status.ExtendedResourceClaimStatus; claim != nil {
		l.add(node.ResourceClaim, claim.ResourceClaimName)
	}
	return l.refs
}

// claimOf returns the resource claim of an entry of a pod: the named one, or the one created from its template.
func claimOf(pod *corev1.Pod, c *corev1.PodResourceClaim) string {
	if c.ResourceClaimName != nil {
		return *c.ResourceClaimName
	}
	if c.ResourceClaimTemplateName == nil {
		return ""
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.Name == c.Name && made.ResourceClaimName != nil {
			return *made.ResourceClaimName
		}
	}
	return ""
}

type refList struct {
	namespace string
	refs      []node.Ref
	seen      map[node.Ref]bool
}

func (l *refList) add(kind node.Kind, name string) {
	if name == "" || len(l.refs) == maxReferences {
		return
	}
	r := node.Ref{Kind: kind, Namespace: l.namespace, Name: name}
	if !l.seen[r] {
		r.Name = strings.Clone(name)
		l.seen[r] = true
		l.refs = append(l.refs, r)
	}
}

// volumeRefs returns the Secrets that a node needs for a volume.
func volumeRefs(v *corev1.PersistentVolume) []node.Ref {
	var refs []node.Ref
	add := func(r *corev1.SecretReference) {
		if r == nil || r.Name == "" {
			return
		}
		ns := r.Namespace
		if ns == "" {
			ns = v.Spec.ClaimRef.Namespace
		}
		refs = append(refs, node.Ref{Kind: node.Secret, Namespace: strings.Clone(ns), Name: strings.Clone(r.Name)})
	}
	s := &v.Spec.PersistentVolumeSource
	switch {
	case s.AzureFile != nil:
		r := &corev1.SecretReference{Name: s.AzureFile.SecretName}
		if s.AzureFile.SecretNamespace != nil {
			r.Namespace = *s.AzureFile.SecretNamespace
		}
		add(r)
	case s.CephFS != nil:
		add(s.CephFS.SecretRef)
	case s.Cinder != nil:
		add(s.Cinder.SecretRef)
	case s.FlexVolume != nil:
		add(s.FlexVolume.SecretRef)
	case s.RBD != nil:
		add(s.RBD.SecretRef)
	case s.ScaleIO != nil:
		add(s.ScaleIO.SecretRef)
	case s.ISCSI != nil:
		add(s.ISCSI.SecretRef)
	case s.StorageOS != nil:
		if r := s.StorageOS.SecretRef; r != nil {
			add(&corev1.SecretReference{Namespace: r.Namespace, Name: r.Name})
		}
	case s.CSI != nil:
		add(s.CSI.NodePublishSecretRef)
		add(s.CSI.NodeStageSecretRef)
		add(s.CSI.NodeExpandSecretRef)
	}
	return refs
}
