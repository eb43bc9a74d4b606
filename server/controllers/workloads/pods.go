package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	podsAgent = reconcile.ManagerAgent + "pod-garbage-collector" // field manager of Pods' writes
	// podsEvery is the resync period: how often the controller checks all pods.
	podsEvery = 20 * time.Second
	// nodeGrace is the time after the deletion of a node until its pods are deleted.
	nodeGrace = 40 * time.Second
)

// Pods deletes pods without a kubelet: those on deleted nodes, unscheduled ones that are being deleted, those that are
// being deleted on a node with the out-of-service taint, and the oldest terminated ones if there are more than Keep.
// A pod that has not terminated is marked as failed first.
//
// It checks all pods every 20 seconds, and decodes those that it deletes: clients that may write pods
// cause two writes for each deleted pod.
type Pods struct {
	reconcile.Base
	Keep int // the number of terminated pods to keep; 0 or less: all

	missing map[string]time.Time // nodes, and until when they may be
}

// Run works until ctx ends.
func (p *Pods) Run(ctx context.Context) error {
	p.missing = map[string]time.Time{}
	l := &reconcile.Loop{Base: p.Base, Keys: []reconcile.Key{{}}, Resync: podsEvery, Failure: "cannot delete a pod that no kubelet looks after"}
	l.Meter, l.Retry = nil, podsEvery // nodes are measured, and a failure is tried again when it is time anyway
	l.Reconcile = func(ctx context.Context, _ reconcile.Key) (r reconcile.Result, err error) { return r, p.pass(ctx) }
	return l.Run(ctx)
}

// pass checks all pods.
func (p *Pods) pass(ctx context.Context) error {
	nodes := p.Cache.Snapshot("nodes")
	var ended, forsaken, unplaced []*cache.Item
	orphans := map[string][]*cache.Item{} // by the node that is missing
	out := map[string]bool{}              // the nodes checked so far, and whether they are out of service
	p.Cache.Snapshot("pods").Ascend("", "", "", func(item *cache.Item) bool {
		if item.Err() != nil {
			return true
		}
		node, going := reconcile.Text(item, "spec", "nodeName"), item.Meta().Deleting
		switch corev1.PodPhase(reconcile.Text(item, "status", "phase")) {
		case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		default:
			ended = append(ended, item)
		}
		switch {
		case node == "" && going:
			unplaced = append(unplaced, item)
		case node == "":
		case nodes.Get("", node) == nil:
			orphans[node] = append(orphans[node], item)
		case going:
			if _, known := out[node]; !known {
				out[node] = outOfService(nodes.Get("", node))
			}
			if out[node] {
				forsaken = append(forsaken, item)
			}
		}
		return ctx.Err() == nil
	})
	var failed []error
	if p.Keep > 0 && len(ended) > p.Keep {
		slices.SortFunc(ended, byUse)
		failed = append(failed, p.collect(ctx, ended[:len(ended)-p.Keep], nil))
	}
	failed = append(failed, p.collect(ctx, forsaken, nil))
	nodesGone, err := p.gone(ctx, orphans)
	for _, node := range nodesGone {
		failed = append(failed, p.collect(ctx, orphans[node], &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
		}))
	}
	return errors.Join(append(failed, err, p.collect(ctx, unplaced, nil))...)
}

// gone returns the nodes of orphans that have been missing from the cache for nodeGrace, and that the API does not have either.
func (p *Pods) gone(ctx context.Context, orphans map[string][]*cache.Item) (list []string, failed error) {
	now := p.Now()
	for _, node := range slices.Sorted(maps.Keys(orphans)) {
		until, known := p.missing[node]
		if !known {
			p.missing[node] = now.Add(nodeGrace)
		}
		if !known || now.Before(until) {
			continue
		}
		delete(p.missing, node)
		p.Meter.Add(1)
		p.Meter.Work(func() bool {
			// The node may exist, and the cache not have it yet.
			err := p.API.Call(ctx, podsAgent, http.MethodGet, "/api/v1/nodes/"+url.PathEscape(node), "", nil, nil)
			if apierrors.IsNotFound(err) {
				list = append(list, node)
			} else if err != nil {
				failed = fmt.Errorf("finding out whether the node %s is gone: %w", node, err)
			}
			return err == nil || apierrors.IsNotFound(err)
		})
	}
	maps.DeleteFunc(p.missing, func(node string, _ time.Time) bool { return orphans[node] == nil })
	return list, failed
}

// outOfService reports whether a node is not ready and has the out-of-service taint.
func outOfService(item *cache.Item) bool {
	var node corev1.Node
	if !reconcile.Decode(item, &node) {
		return false
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return !ready && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// byUse puts pods first that are of the least use: those that were evicted, then the oldest.
func byUse(a, b *cache.Item) int {
	evicted := func(item *cache.Item) int {
		if reconcile.Text(item, "status", "phase") == string(corev1.PodFailed) && reconcile.Text(item, "status", "reason") == "Evicted" {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(evicted(a), evicted(b)), cmp.Compare(a.Meta().CreationTimestamp, b.Meta().CreationTimestamp),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace),
	)
}

// collect marks pods that have not ended as failed, with the condition why if there is one, and deletes them without a grace
// period. It continues after errors, and returns the last one.
func (p *Pods) collect(ctx context.Context, list []*cache.Item, why *corev1.PodCondition) (failed error) {
	for _, item := range list {
		if ctx.Err() != nil {
			return nil
		}
		if over(item) {
			continue
		}
		if err := reconcile.Current(p.end(ctx, item, why)); err != nil {
			failed = fmt.Errorf("pod %s/%s: %w", item.Namespace, item.Name, err)
			continue
		}
		p.Log.Info("a pod that no kubelet looks after is deleted", "namespace", item.Namespace, "name", item.Name)
	}
	return failed
}

// over reports whether everything has been done for a pod: its finalizers keep it.
func over(item *cache.Item) bool {
	phase := corev1.PodPhase(reconcile.Text(item, "status", "phase"))
	return (phase == corev1.PodSucceeded || phase == corev1.PodFailed) && item.Meta().Deleting &&
		string(scan.Lookup(item.Peek(), "metadata", "deletionGracePeriodSeconds")) == "0"
}

func (p *Pods) end(ctx context.Context, item *cache.Item, why *corev1.PodCondition) error {
	path := "/api/v1/namespaces/" + item.Namespace + "/pods/" + url.PathEscape(item.Name)
	uid := types.UID(item.Meta().UID)
	if phase := corev1.PodPhase(reconcile.Text(item, "status", "phase")); phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		status := map[string]any{"phase": corev1.PodFailed}
		if why != nil {
			status["conditions"] = []corev1.PodCondition{p.since(item, *why)}
		}
		body := map[string]any{"metadata": map[string]any{"uid": uid}, "status": status}
		if err := p.API.Call(ctx, podsAgent, http.MethodPatch, path+"/status", string(types.StrategicMergePatchType), body, nil); err != nil {
			return err
		}
	}
	at := int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &at, Preconditions: &metav1.Preconditions{UID: &uid}}
	return p.API.Call(ctx, podsAgent, http.MethodDelete, path, reconcile.JSON, &options, nil)
}

// since returns a condition with the time since when the pod has it.
func (p *Pods) since(item *cache.Item, why corev1.PodCondition) corev1.PodCondition {
	why.LastTransitionTime = metav1.NewTime(p.Now())
	var pod struct {
		Status struct{ Conditions []corev1.PodCondition }
	}
	if !reconcile.Decode(item, &pod) {
		return why
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == why.Type && c.Status == why.Status {
			why.LastTransitionTime = c.LastTransitionTime
		}
	}
	return why
}
