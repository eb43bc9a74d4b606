// Package controllers holds the control loops that run inside the API server, so that it
// works without a controller manager: among them the deletion of what a terminating
// namespace holds, CustomResourceDefinitions, service accounts, aggregated roles,
// certificates and flow schemas. table.go lists them all.
//
// It promises: controllers change objects through the API alone, so that admission,
// finalizers and grace periods apply to them as to any other client.
package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// API is the server's own API, called in process; server.Server is one. body and
// into are encoded and decoded as JSON, and may be nil.
type API interface {
	Call(ctx context.Context, agent, method, path, contentType string, body, into any) error
}

// namespaceAgent is the field manager of what this controller writes.
const namespaceAgent = "namespace-controller"

// Namespaces empties and finalizes namespaces that are being deleted.
type Namespaces struct {
	API       API
	Cache     *cache.Cache
	Catalogue *kinds.Catalogue
	Log       *slog.Logger
	Clock     func() time.Time // nil: time.Now

	// Grace is how long a namespace is left alone at first, so that every server
	// has come to know that nothing new may be made in it. 0: 5 seconds.
	Grace time.Duration
	// Interval is how often terminating namespaces are looked at. 0: 1 second.
	Interval time.Duration
	Queue    *Queue // nil: the work is not measured
	// Elsewhere knows of the resources of other servers; nil: there are none.
	Elsewhere Elsewhere

	next map[string]attempt // by UID
	away away
}

// attempt is when a namespace that could not be finished is looked at again.
type attempt struct {
	at   time.Time
	wait time.Duration
	left int // objects that were left; fewer are a reason to look at once
}

const maxWait = 15 * time.Second

func (n *Namespaces) now() time.Time {
	if n.Clock == nil {
		return time.Now()
	}
	return n.Clock()
}

// Run works until ctx ends.
func (n *Namespaces) Run(ctx context.Context) error {
	if n.Grace == 0 {
		n.Grace = 5 * time.Second
	}
	if n.Interval == 0 {
		n.Interval = time.Second
	}
	n.next = make(map[string]attempt)
	n.away.results, n.away.places = make(map[string]*emptied), make(chan struct{}, elsewhereAtOnce)
	defer n.away.running.Wait()
	ticks := time.NewTicker(n.Interval)
	defer ticks.Stop()
	for {
		n.pass(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
	}
}

// pass looks at all terminating namespaces once.
func (n *Namespaces) pass(ctx context.Context) {
	now := n.now()
	seen := make(map[string]bool)
	var due []*cache.Item
	n.Cache.Snapshot("namespaces").Ascend("", "", "", func(it *cache.Item) bool {
		if it.Corrupt != nil || !it.Meta().Deleting {
			return true
		}
		uid := it.Meta().UID
		seen[uid] = true
		if a, ok := n.next[uid]; !ok || !now.Before(a.at) || a.left > 0 && n.count(it.Name) < a.left {
			due = append(due, it)
		}
		return true
	})
	for uid := range n.next {
		if !seen[uid] {
			delete(n.next, uid)
		}
	}
	n.away.forget(seen)
	n.Queue.add(len(due))
	defer n.Queue.clear()
	for _, it := range due {
		if ctx.Err() != nil {
			return
		}
		n.Queue.work(func() bool {
			err := n.work(ctx, it.Name)
			if err != nil && ctx.Err() == nil {
				n.Log.Warn("emptying a namespace", "namespace", it.Name, "error", err)
			}
			_, later := n.next[it.Meta().UID]
			return err == nil && !later
		})
	}
}

// work does what can be done for one namespace now.
func (n *Namespaces) work(ctx context.Context, name string) error {
	path := "/api/v1/namespaces/" + name
	var ns corev1.Namespace
	if err := n.API.Call(ctx, namespaceAgent, http.MethodGet, path, "", nil, &ns); err != nil {
		return ignoreGone(err)
	}
	uid := string(ns.UID)
	if ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		n.next[uid] = attempt{at: n.now().Add(maxWait), wait: maxWait} // others have to finish it
		return nil
	}
	if start := ns.DeletionTimestamp.Add(n.Grace); n.now().Before(start) {
		n.next[uid] = attempt{at: start}
		return nil
	}
	failure := n.empty(ctx, name)
	left := n.left(name)
	others := n.emptyElsewhere(ctx, uid, name)
	if others == nil { // it is looked at again when that is done
		n.next[uid] = attempt{at: n.now().Add(n.Interval), wait: n.next[uid].wait}
		return nil
	}
	if failure != nil {
		others.failures = append([]error{failure}, others.failures...)
	}
	left.add(&others.left)
	if len(others.failures) == 0 && len(others.unknown) == 0 && left.none() {
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		return ignoreGone(n.API.Call(ctx, namespaceAgent, http.MethodPut, path+"/finalize", "application/json", &ns, nil))
	}
	wait := min(max(2*n.next[uid].wait, n.Interval), maxWait)
	n.next[uid] = attempt{at: n.now().Add(wait), wait: wait, left: n.count(name)}
	return n.report(ctx, &ns, left, others)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or changed: that comes as a change, or is met by the next pass
	}
	return err
}

// empty deletes everything in a namespace. It goes on after an error and returns the first.
func (n *Namespaces) empty(ctx context.Context, namespace string) (first error) {
	note := func(err error) {
		if err != nil && !apierrors.IsNotFound(err) && first == nil {
			first = err
		}
	}
	for _, r := range n.inside() {
		var names []string
		n.Cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
			names = append(names, it.Name)
			return true
		})
		if len(names) == 0 {
			continue
		}
		path := collection(r, namespace)
		if slices.Contains(r.Verbs, "deletecollection") {
			note(n.API.Call(ctx, namespaceAgent, http.MethodDelete, path+"?propagationPolicy=Background", "", nil, nil))
			continue
		}
		for _, name := range names {
			note(n.API.Call(ctx, namespaceAgent, http.MethodDelete, path+"/"+url.PathEscape(name)+"?propagationPolicy=Background", "", nil, nil))
		}
	}
	return first
}

// inside lists one resource for each storage that lives in namespaces.
func (n *Namespaces) inside() []*kinds.Resource {
	var out []*kinds.Resource
	seen := make(map[string]bool)
	for _, r := range n.Catalogue.Known() {
		if r.Namespaced && r.Storage != nil && !seen[r.Storage.Key] && slices.Contains(r.Verbs, "delete") {
			seen[r.Storage.Key] = true
			out = append(out, n.Catalogue.ByStorage(r.Storage.Key))
		}
	}
	return out
}

// count is how many objects are in a namespace.
func (n *Namespaces) count(namespace string) (count int) {
	for _, r := range n.inside() {
		count += n.Cache.Snapshot(r.Storage.Key).Count(namespace, cache.Position{})
	}
	return count
}

func collection(r *kinds.Resource, namespace string) string {
	prefix := "/api/" + r.Version
	if r.Group != "" {
		prefix = "/apis/" + r.Group + "/" + r.Version
	}
	return prefix + "/namespaces/" + namespace + "/" + r.Plural
}

// leftovers count what is still in a namespace.
type leftovers struct {
	resources  []string // "pods. has 1 resource instances"
	finalizers []string // "x/y in 1 resource instances"
}

func (l *leftovers) none() bool { return len(l.resources) == 0 }

func (n *Namespaces) left(namespace string) *leftovers {
	l := &leftovers{}
	held := make(map[string]int)
	for _, r := range n.inside() {
		count := 0
		n.Cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
			count++
			for _, f := range finalizersOf(it) {
				held[f]++
			}
			return true
		})
		if count > 0 {
			l.resources = append(l.resources, fmt.Sprintf("%s.%s has %d resource instances", r.Plural, r.Group, count))
		}
	}
	l.hold(held)
	slices.Sort(l.resources)
	return l
}

// hold notes how many objects each finalizer holds.
func (l *leftovers) hold(held map[string]int) {
	for f, count := range held {
		l.finalizers = append(l.finalizers, fmt.Sprintf("%s in %d resource instances", f, count))
	}
	slices.Sort(l.finalizers)
}

// add adds what is left elsewhere.
func (l *leftovers) add(other *leftovers) {
	l.resources, l.finalizers = append(l.resources, other.resources...), append(l.finalizers, other.finalizers...)
	slices.Sort(l.resources)
	slices.Sort(l.finalizers)
}

// report tells in the namespace's status why it is still there.
func (n *Namespaces) report(ctx context.Context, ns *corev1.Namespace, l *leftovers, others *emptied) error {
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	list := []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: no, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
		{Type: corev1.NamespaceDeletionGVParsingFailure, Status: no, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
		{Type: corev1.NamespaceDeletionContentFailure, Status: no, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: corev1.NamespaceContentRemaining, Status: no, Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: no, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
	}
	if len(others.unknown) > 0 {
		list[0].Status, list[0].Reason, list[0].Message = yes, "DiscoveryFailed", undiscovered(others.unknown)
	}
	if failed := len(others.failures); failed > 0 {
		list[2].Status, list[2].Reason = yes, "ContentDeletionFailed"
		list[2].Message = fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", failed, joined(others.failures))
	}
	if len(l.resources) > 0 {
		list[3].Status, list[3].Reason = yes, "SomeResourcesRemain"
		list[3].Message = "Some resources are remaining: " + strings.Join(l.resources, ", ")
	}
	if len(l.finalizers) > 0 {
		list[4].Status, list[4].Reason = yes, "SomeFinalizersRemain"
		list[4].Message = "Some content in the namespace has finalizers remaining: " + strings.Join(l.finalizers, ", ")
	}
	if !merge(&ns.Status, list, metav1.Time{Time: n.now().UTC().Truncate(time.Second)}) {
		return nil
	}
	path := "/api/v1/namespaces/" + ns.Name + "/status"
	return ignoreGone(n.API.Call(ctx, namespaceAgent, http.MethodPut, path, "application/json", ns, nil))
}

// joined are the texts of errors, in one order.
func joined(errs []error) string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// merge puts conditions into a status and says whether anything changed.
func merge(st *corev1.NamespaceStatus, list []corev1.NamespaceCondition, now metav1.Time) (changed bool) {
	for _, c := range list {
		c.LastTransitionTime = now
		i := slices.IndexFunc(st.Conditions, func(have corev1.NamespaceCondition) bool { return have.Type == c.Type })
		if i < 0 {
			st.Conditions = append(st.Conditions, c)
			changed = true
			continue
		}
		have := &st.Conditions[i]
		if have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
			continue
		}
		if have.Status == c.Status {
			c.LastTransitionTime = have.LastTransitionTime
		}
		*have = c
		changed = true
	}
	return changed
}
