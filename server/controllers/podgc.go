package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
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
)

const (
	podsAgent = managerAgent + "pod-garbage-collector"
	// nodeGrace is how long a node may be missing before its pods are deleted.
	nodeGrace = 40 * time.Second
)

// PodCollector deletes pods that no kubelet looks after: those on nodes that are gone, those
// that are being deleted and were never given to a node, those that are being deleted on
// a node that somebody has declared out of service, and the oldest of those that have ended
// where there are more of these than are kept. A pod that has not ended has failed by then.
//
// It looks at all pods every 20 seconds, and decodes those that go: who may write pods
// causes two writes for each pod that goes.
type PodCollector struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Clock func() time.Time
	Moves Moves         // of the clock
	Keep  int           // how many pods that have ended are kept; 0 or less: all
	Every time.Duration // 0: 20 seconds
	Queue *Queue        // of nodes that are missing; nil: not measured

	missing map[string]time.Time // nodes, and until when they may be
}

// podCollector builds the controller.
func podCollector(h Host, c Config) func(context.Context) error {
	p := &PodCollector{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Keep: c.TerminatedPods, Queue: h.Queues.Of("orphaned_pods_nodes")}
	return p.Run
}

// Run works until ctx ends.
func (p *PodCollector) Run(ctx context.Context) error {
	if p.Every == 0 {
		p.Every = 20 * time.Second
	}
	p.missing = map[string]time.Time{}
	for ctx.Err() == nil {
		p.pass(ctx)
		p.Moves.wait(ctx, p.Clock, p.Every)
	}
	return nil
}

// pass looks at all pods.
func (p *PodCollector) pass(ctx context.Context) {
	nodes := p.Cache.Snapshot("nodes")
	var ended, forsaken, unplaced []*cache.Item
	orphans := map[string][]*cache.Item{} // by the node that is missing
	out := map[string]bool{}              // nodes that were asked for, and whether they are out of service
	p.Cache.Snapshot("pods").Ascend("", "", "", func(item *cache.Item) bool {
		if item.Corrupt != nil {
			return true
		}
		node, going := textOf(item, "spec", "nodeName"), item.Meta().Deleting
		switch corev1.PodPhase(textOf(item, "status", "phase")) {
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
	if p.Keep > 0 && len(ended) > p.Keep {
		slices.SortFunc(ended, byUse)
		p.collect(ctx, ended[:len(ended)-p.Keep], nil)
	}
	p.collect(ctx, forsaken, nil)
	for _, node := range p.gone(ctx, orphans) {
		p.collect(ctx, orphans[node], &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
		})
	}
	p.collect(ctx, unplaced, nil)
}

// gone are the nodes of orphans that have been missing for long, and that nobody knows.
func (p *PodCollector) gone(ctx context.Context, orphans map[string][]*cache.Item) (list []string) {
	now := p.Clock()
	for _, node := range slices.Sorted(maps.Keys(orphans)) {
		until, known := p.missing[node]
		if !known {
			p.missing[node] = now.Add(nodeGrace)
		}
		if !known || now.Before(until) {
			continue
		}
		delete(p.missing, node)
		p.Queue.Add(1)
		p.Queue.Work(func() bool {
			// It may be there, and this server not know yet.
			err := p.API.Call(ctx, podsAgent, http.MethodGet, "/api/v1/nodes/"+url.PathEscape(node), "", nil, nil)
			if apierrors.IsNotFound(err) {
				list = append(list, node)
			} else if err != nil && ctx.Err() == nil {
				p.Log.Warn("cannot find out whether a node is gone", "node", node, "error", err)
				return false
			}
			return true
		})
	}
	maps.DeleteFunc(p.missing, func(node string, _ time.Time) bool { return orphans[node] == nil })
	return list
}

// outOfService says that a node is not ready, and that somebody has said that it will not be.
func outOfService(item *cache.Item) bool {
	var node corev1.Node
	if item == nil || item.Corrupt != nil || json.Unmarshal(item.Peek(), &node) != nil {
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
		if textOf(item, "status", "phase") == string(corev1.PodFailed) && textOf(item, "status", "reason") == "Evicted" {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(evicted(a), evicted(b)), cmp.Compare(a.Meta().CreationTimestamp, b.Meta().CreationTimestamp),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace),
	)
}

// collect has pods fail that have not ended, with a condition that may say why, and deletes
// them at once.
func (p *PodCollector) collect(ctx context.Context, list []*cache.Item, why *corev1.PodCondition) {
	for _, item := range list {
		if ctx.Err() != nil {
			return
		}
		if over(item) {
			continue
		}
		if err := ignoreGone(p.end(ctx, item, why)); err != nil {
			if ctx.Err() == nil {
				p.Log.Warn("cannot delete a pod that nobody looks after", "namespace", item.Namespace, "name", item.Name, "error", err)
			}
			continue
		}
		p.Log.Info("a pod is deleted that nobody looks after", "namespace", item.Namespace, "name", item.Name)
	}
}

// over says that everything has been done for a pod: its finalizers keep it.
func over(item *cache.Item) bool {
	phase := corev1.PodPhase(textOf(item, "status", "phase"))
	return (phase == corev1.PodSucceeded || phase == corev1.PodFailed) && item.Meta().Deleting &&
		string(scan.Lookup(item.Peek(), "metadata", "deletionGracePeriodSeconds")) == "0"
}

func (p *PodCollector) end(ctx context.Context, item *cache.Item, why *corev1.PodCondition) error {
	path := "/api/v1/namespaces/" + item.Namespace + "/pods/" + url.PathEscape(item.Name)
	uid := types.UID(item.Meta().UID)
	if phase := corev1.PodPhase(textOf(item, "status", "phase")); phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		status := map[string]any{"phase": corev1.PodFailed}
		if why != nil {
			status["conditions"] = []corev1.PodCondition{p.told(item, *why)}
		}
		body := map[string]any{"metadata": map[string]any{"uid": uid}, "status": status}
		if err := p.API.Call(ctx, podsAgent, http.MethodPatch, path+"/status", "application/strategic-merge-patch+json", body, nil); err != nil {
			return err
		}
	}
	at := int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &at, Preconditions: &metav1.Preconditions{UID: &uid}}
	return p.API.Call(ctx, podsAgent, http.MethodDelete, path, "application/json", &options, nil)
}

// told is a condition with the time since when the pod has it.
func (p *PodCollector) told(item *cache.Item, why corev1.PodCondition) corev1.PodCondition {
	why.LastTransitionTime = metav1.NewTime(p.Clock())
	var pod struct {
		Status struct{ Conditions []corev1.PodCondition }
	}
	if json.Unmarshal(item.JSON(), &pod) != nil {
		return why
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == why.Type && c.Status == why.Status {
			why.LastTransitionTime = c.LastTransitionTime
		}
	}
	return why
}
