package access

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
)

// FeedNodes keeps the graph of what pods refer to as the cache has it.
func FeedNodes(g *node.Graph) *Feed {
	return &Feed{
		Reset: g.Reset,
		Sources: []Source{
			{Storage: "pods", Set: func(item *cache.Item) {
				by := node.Ref{Kind: node.Pod, Namespace: item.Namespace, Name: item.Name}
				var pod corev1.Pod
				if !read(item, &pod) {
					g.Release(by)
					return
				}
				g.Hold(by, strings.Clone(pod.Spec.NodeName), podRefs(item.Namespace, &pod))
			}, Delete: func(namespace, name string) {
				g.Release(node.Ref{Kind: node.Pod, Namespace: namespace, Name: name})
			}},
			{Storage: "persistentvolumes", Set: func(item *cache.Item) {
				var v corev1.PersistentVolume
				if !read(item, &v) || v.Spec.ClaimRef == nil {
					g.Unbind(item.Name)
					return
				}
				claim := node.Ref{Kind: node.Claim, Namespace: strings.Clone(v.Spec.ClaimRef.Namespace), Name: strings.Clone(v.Spec.ClaimRef.Name)}
				g.Bind(item.Name, claim, volumeRefs(&v))
			}, Delete: func(_, name string) { g.Unbind(name) }},
			{Storage: "volumeattachments.storage.k8s.io", Set: func(item *cache.Item) {
				by := node.Ref{Kind: node.Attachment, Name: item.Name}
				var a storagev1.VolumeAttachment
				if !read(item, &a) {
					g.Release(by)
					return
				}
				g.Hold(by, strings.Clone(a.Spec.NodeName), nil)
			}, Delete: func(_, name string) { g.Release(node.Ref{Kind: node.Attachment, Name: name}) }},
		},
	}
}

// read decodes an object, whose strings keep all of it in memory.
func read(item *cache.Item, into runtime.Object) bool {
	if item.Corrupt != nil {
		return false
	}
	_, err := (jsoncodec.Codec{}).Decode(item.JSON, into, codecs.Ignore)
	return err == nil
}

// Nodes is the authorizer of node agents. Its graph is brought up to date for them alone.
type Nodes struct {
	Feed *Feed
	*node.Authorizer
}

// NewNodes makes an authorizer with an empty graph, whose feed is still to be attached.
func NewNodes(z node.Authorizer) Nodes {
	z.Graph = &node.Graph{}
	return Nodes{Feed: FeedNodes(z.Graph), Authorizer: &z}
}

// Authorize implements authx.Authorizer.
func (n Nodes) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	name, isNode := node.NameOf(a.User)
	if !isNode {
		return authx.NoOpinion, "", nil
	}
	if name != "" {
		n.Feed.Sync()
	}
	return n.Authorizer.Authorize(ctx, a)
}

// podRefs are what a pod makes readable for its node. A mirror of a static pod
// makes nothing readable: the node itself wrote it.
func podRefs(namespace string, pod *corev1.Pod) []node.Ref {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil
	}
	l := refList{namespace: namespace}
	s := &pod.Spec
	l.add(node.Account, s.ServiceAccountName)
	for _, p := range s.ImagePullSecrets {
		l.add(node.Secret, p.Name)
	}
	for i := range s.InitContainers {
		l.env(s.InitContainers[i].Env, s.InitContainers[i].EnvFrom)
	}
	for i := range s.Containers {
		l.env(s.Containers[i].Env, s.Containers[i].EnvFrom)
	}
	for i := range s.EphemeralContainers {
		l.env(s.EphemeralContainers[i].Env, s.EphemeralContainers[i].EnvFrom)
	}
	for i := range s.Volumes {
		l.volume(pod.Name, &s.Volumes[i])
	}
	for _, c := range s.ResourceClaims {
		l.add(node.ResourceClaim, claimOf(pod, &c))
	}
	return l.refs
}

// claimOf is the resource claim that an entry of a pod means: the one it names, or
// the one that was made from its template.
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
}

func (l *refList) add(kind node.Kind, name string) {
	if name == "" {
		return
	}
	r := node.Ref{Kind: kind, Namespace: l.namespace, Name: name}
	if !slices.Contains(l.refs, r) {
		r.Name = strings.Clone(name)
		l.refs = append(l.refs, r)
	}
}

func (l *refList) local(r *corev1.LocalObjectReference) {
	if r != nil {
		l.add(node.Secret, r.Name)
	}
}

func (l *refList) env(vars []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, v := range vars {
		if v.ValueFrom == nil {
			continue
		}
		if r := v.ValueFrom.SecretKeyRef; r != nil {
			l.add(node.Secret, r.Name)
		}
		if r := v.ValueFrom.ConfigMapKeyRef; r != nil {
			l.add(node.ConfigMap, r.Name)
		}
	}
	for _, f := range from {
		if f.SecretRef != nil {
			l.add(node.Secret, f.SecretRef.Name)
		}
		if f.ConfigMapRef != nil {
			l.add(node.ConfigMap, f.ConfigMapRef.Name)
		}
	}
}

func (l *refList) volume(pod string, v *corev1.Volume) {
	switch {
	case v.Secret != nil:
		l.add(node.Secret, v.Secret.SecretName)
	case v.ConfigMap != nil:
		l.add(node.ConfigMap, v.ConfigMap.Name)
	case v.PersistentVolumeClaim != nil:
		l.add(node.Claim, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		l.add(node.Claim, pod+"-"+v.Name)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				l.add(node.Secret, s.Secret.Name)
			}
			if s.ConfigMap != nil {
				l.add(node.ConfigMap, s.ConfigMap.Name)
			}
		}
	case v.AzureFile != nil:
		l.add(node.Secret, v.AzureFile.SecretName)
	case v.CephFS != nil:
		l.local(v.CephFS.SecretRef)
	case v.Cinder != nil:
		l.local(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		l.local(v.FlexVolume.SecretRef)
	case v.RBD != nil:
		l.local(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		l.local(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		l.local(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		l.local(v.StorageOS.SecretRef)
	case v.CSI != nil:
		l.local(v.CSI.NodePublishSecretRef)
	}
}

// volumeRefs are the secrets that a node needs for a volume.
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
