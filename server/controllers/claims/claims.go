// Package claims protects objects that are in use from being deleted, by a finalizer: PersistentVolumeClaims,
// PersistentVolumes, VolumeAttributesClasses and PodGroups.
package claims

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	// Storage is the storage of PersistentVolumeClaims.
	Storage         = "persistentvolumeclaims"
	claimsFinalizer = "kubernetes.io/pvc-protection"
)

// Claims protects PersistentVolumeClaims that a pod on a node uses.
func Claims(b reconcile.Base) *InUse {
	return &InUse{
		Base: b, storage: Storage, finalizer: claimsFinalizer, agent: reconcile.ManagerAgent + "pvc-protection-controller", add: true,
		root: "/api/v1", plural: Storage, users: []string{"pods"},
		frees: func(d cache.Delivery) bool { return d.Type == cache.Deleted || d.Item().Meta().Deleting },
		use: func(ctx context.Context, namespace string) func(*cache.Item) bool {
			return claimsOf(ctx, b.Cache, namespace).has
		},
	}
}

// claimUse are the claims that pods of a namespace use: by name, and those that were made
// for a pod by the name and the pod's UID. Volumes of several pods may have one name for their claims, of which one pod
// owns the claim.
type claimUse struct {
	named map[string]bool
	made  map[string][]types.UID
}

func (u claimUse) has(item *cache.Item) bool {
	if u.named[item.Name] {
		return true
	}
	pods := u.made[item.Name]
	if len(pods) == 0 {
		return false
	}
	var claim metav1.PartialObjectMetadata
	if !reconcile.Decode(item, &claim) {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(&claim)
	return owner != nil && slices.Contains(pods, owner.UID)
}

// claimsOf finds the claims that pods use which are on a node: no kubelet starts one any more
// with a claim that is being deleted.
func claimsOf(ctx context.Context, c *cache.Cache, namespace string) claimUse {
	u := claimUse{map[string]bool{}, map[string][]types.UID{}}
	c.Snapshot("pods").Ascend(namespace, "", "", func(item *cache.Item) bool {
		if item.Err() != nil || scan.Lookup(item.Peek(), "spec", "nodeName") == nil || scan.Lookup(item.JSON(), "spec", "volumes") == nil {
			return ctx.Err() == nil
		}
		var pod corev1.Pod
		if !reconcile.Decode(item, &pod) || pod.Spec.NodeName == "" {
			return true
		}
		grace := pod.DeletionGracePeriodSeconds
		shut := pod.DeletionTimestamp != nil && grace != nil && *grace == 0
		for _, v := range pod.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				u.named[v.PersistentVolumeClaim.ClaimName] = true
			case v.Ephemeral != nil && !shut:
				claim := pod.Name + "-" + v.Name
				u.made[claim] = append(u.made[claim], pod.UID)
			}
		}
		return ctx.Err() == nil
	})
	return u
}
