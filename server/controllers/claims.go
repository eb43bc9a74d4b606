package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
)

const (
	claimsStorage   = "persistentvolumeclaims"
	claimsSwitch    = "pvc-protection"
	claimsAgent     = managerAgent + "pvc-protection-controller"
	claimsFinalizer = "kubernetes.io/pvc-protection"
)

// ClaimProtection keeps a PersistentVolumeClaim that is being deleted for as long as there
// is a pod on a node that uses it, by a finalizer, which it gives to claims that lack it.
//
// Who may delete claims of a namespace and pods beside them causes a look through all pods
// and claims of that namespace, and no more often than that one such look in six takes the
// time. Each claim costs a write.
type ClaimProtection struct {
	Chore

	refused refused
	held    map[string]bool // namespaces with claims that pods keep from going
}

// claimProtection builds the controller.
func claimProtection(h Host, c Config) func(context.Context) error {
	return (&ClaimProtection{Chore: choreOf(h, c, claimsSwitch, "pvcprotection")}).Run
}

// Run works until ctx ends.
func (p *ClaimProtection) Run(ctx context.Context) error {
	return p.run(ctx, p.look, func(ctx context.Context, list *agenda) []source {
		p.refused, p.held = refused{first: p.Retry, longest: mostRest}, map[string]bool{}
		touch := func(item *cache.Item) {
			if misfit(item, claimsFinalizer) {
				list.touch(objectKey{namespace: item.Namespace}, p.Clock())
			}
		}
		gone := func(item *cache.Item) { p.refused.forget(objectKey{item.Namespace, item.Name}) }
		return []source{objectsOf(ctx, claimsStorage, touch, gone), {storage: "pods", changed: func(batch []cache.Delivery) {
			for _, d := range batch {
				if item := d.Item(); p.held[item.Namespace] && (d.Type == cache.Deleted || item.Meta().Deleting) {
					list.touch(objectKey{namespace: item.Namespace}, p.Clock())
				}
			}
		}}}
	})
}

// misfit says that an object lacks a finalizer, or is being deleted and has it.
func misfit(item *cache.Item, finalizer string) bool {
	return item.Corrupt == nil && slices.Contains(finalizersOf(item), finalizer) == item.Meta().Deleting
}

// look does what there is to do for the claims of a namespace.
func (p *ClaimProtection) look(ctx context.Context, list *agenda, key objectKey) bool {
	began, now := time.Now(), p.Clock()
	delete(p.held, key.namespace)
	var todo []*cache.Item
	going := int64(0) // the newest that is being deleted
	p.Cache.Snapshot(claimsStorage).Ascend(key.namespace, "", "", func(item *cache.Item) bool {
		if misfit(item, claimsFinalizer) {
			todo = append(todo, item)
			if item.Meta().Deleting {
				going = max(going, item.Revision)
			}
		}
		return ctx.Err() == nil
	})
	var used claimUse
	if going > 0 {
		// Pods of the same commit may be put into the cache after claims.
		if p.Cache.WaitFor(ctx, going) != nil {
			return true
		}
		used = p.use(ctx, key.namespace)
	}
	looked := time.Since(began)
	var again time.Time // when the first of those that were refused is to be tried again
	for _, item := range todo {
		claim := objectKey{item.Namespace, item.Name}
		switch {
		case ctx.Err() != nil:
			return true
		case item.Meta().Deleting && used.has(item):
			p.held[item.Namespace] = true
			continue
		case p.refused.waits(claim, item.Revision, now):
		default:
			path := "/api/v1/namespaces/" + item.Namespace + "/persistentvolumeclaims/"
			err := setFinalizer(ctx, p.API, claimsAgent, path, item, claimsFinalizer)
			if err == nil || ctx.Err() != nil {
				p.refused.forget(claim)
				continue
			}
			revision := item.Revision
			if errors.Is(err, errUndone) {
				revision = anyRevision
			}
			p.refused.add(claim, revision, now)
			p.Log.Warn("cannot protect a PersistentVolumeClaim, or let it go", "namespace", item.Namespace, "name", item.Name, "error", err)
		}
		if until := p.refused.all[claim].until; again.IsZero() || until.Before(again) {
			again = until
		}
	}
	if looked > time.Millisecond {
		list.rest(key, p.Clock(), mostSettling*looked)
	} else {
		list.forget(key)
	}
	if !again.IsZero() { // others of the namespace do not wait for them
		list.until(key, again)
	}
	return again.IsZero()
}

// claimUse are the claims that pods of a namespace use: by name, and those that were made
// for a pod by the name and the pod's UID.
type claimUse struct {
	named map[string]bool
	made  map[string]types.UID
}

func (u claimUse) has(item *cache.Item) bool {
	if u.named[item.Name] {
		return true
	}
	pod, ok := u.made[item.Name]
	if !ok {
		return false
	}
	var claim metav1.PartialObjectMetadata
	if json.Unmarshal(item.Peek(), &claim) != nil {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(&claim)
	return owner != nil && owner.UID == pod
}

// use finds the claims that pods use which are on a node: no kubelet starts one any more
// with a claim that is being deleted.
func (p *ClaimProtection) use(ctx context.Context, namespace string) claimUse {
	u := claimUse{map[string]bool{}, map[string]types.UID{}}
	p.Cache.Snapshot("pods").Ascend(namespace, "", "", func(item *cache.Item) bool {
		if item.Corrupt != nil || scan.Lookup(item.Peek(), "spec", "nodeName") == nil || scan.Lookup(item.JSON(), "spec", "volumes") == nil {
			return ctx.Err() == nil
		}
		var pod corev1.Pod
		if json.Unmarshal(item.JSON(), &pod) != nil || pod.Spec.NodeName == "" {
			return true
		}
		grace := pod.DeletionGracePeriodSeconds
		shut := pod.DeletionTimestamp != nil && grace != nil && *grace == 0
		for _, v := range pod.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				u.named[v.PersistentVolumeClaim.ClaimName] = true
			case v.Ephemeral != nil && !shut:
				u.made[pod.Name+"-"+v.Name] = pod.UID
			}
		}
		return ctx.Err() == nil
	})
	return u
}
