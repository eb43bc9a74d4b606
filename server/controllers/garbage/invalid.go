package garbage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// Limits of reporting references into other namespaces, which clients that may write objects
// cause: events, and lookups of the owner in other namespaces. Beyond these limits the collector
// writes no event.
const (
	eventsAtFirst, eventsPerSecond = 100, 10
	looksAtFirst, looksPerSecond   = 20_000, 20_000
)

// allowance is a token bucket: a burst, and a rate.
type allowance struct {
	most, perSecond float64

	mu   sync.Mutex
	left float64
	at   time.Time // when that was left; zero: nothing was taken yet
}

func (a *allowance) take(n int, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.IsZero() {
		a.left = a.most
	} else if passed := now.Sub(a.at); passed > 0 {
		a.left = min(a.most, a.left+passed.Seconds()*a.perSecond)
	}
	a.at = now
	if a.left < float64(n) {
		return false
	}
	a.left -= float64(n)
	return true
}

// misplaced reports owners that objects cannot have.
type misplaced struct {
	*state
	events, looks allowance
}

func newMisplaced(s *state) *misplaced {
	return &misplaced{
		state: s, events: allowance{most: eventsAtFirst, perSecond: eventsPerSecond}, looks: allowance{most: looksAtFirst, perSecond: looksPerSecond},
	}
}

// report writes an event for each owner that an object cannot have because it is in another namespace. It does not find
// an owner that no longer exists, or whose name differs from that in the reference.
func (c *misplaced) report(ctx context.Context, s *subject, which func(i int) bool) {
	for i := range s.refs {
		r := &s.refs[i]
		if !which(i) {
			continue
		}
		c.mu.Lock()
		n, _ := c.graph.Find(graph.IDOf(r.UID))
		c.mu.Unlock()
		if !n.Absent && c.isInOtherNamespace(s.item, r) { // most owners were seen going
			c.writeEvent(ctx, s, r)
		}
	}
}

func (c *misplaced) isInOtherNamespace(item *cache.Item, r *cache.Owner) (found bool) {
	resource := c.resourceOf(r)
	if resource == nil || !resource.Namespaced {
		return false
	}
	namespaces, there := c.Cache.Snapshot("namespaces"), c.Cache.Snapshot(resource.Storage.Key)
	if !c.looks.take(min(namespaces.Len(), looksAtFirst), c.Clock()) {
		return false
	}
	namespaces.Ascend("", "", "", func(ns *cache.Item) bool {
		owner := there.Get(ns.Name, r.Name)
		found = ns.Name != item.Namespace && owner != nil && owner.Err() == nil && owner.OwnerInfo().UID == r.UID
		return !found
	})
	return found
}

// writeEvent writes the event, in the words of a stock controller.
func (c *misplaced) writeEvent(ctx context.Context, s *subject, r *cache.Owner) {
	kind := c.Catalogue.ByStorage(s.storage)
	now := c.Clock()
	if kind == nil || !c.events.take(1, now) {
		return
	}
	apiVersion, _ := kind.GVK().ToAPIVersionAndKind()
	at := cmp.Or(s.item.Namespace, metav1.NamespaceDefault)
	stamp := metav1.NewTime(now)
	event := corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", s.item.Name, now.UnixNano()), Namespace: at},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: apiVersion, Kind: kind.Kind, Namespace: s.item.Namespace, Name: s.item.Name, UID: types.UID(s.UID),
		},
		Type: corev1.EventTypeWarning, Reason: "OwnerRefInvalidNamespace",
		Message: fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			r.APIVersion, r.Kind, s.item.Namespace, r.Name, r.UID, s.item.Namespace),
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: stamp, LastTimestamp: stamp, Count: 1,
	}
	err := c.API.Call(ctx, agent, http.MethodPost, "/api/v1/namespaces/"+at+"/events", "application/json", &event, nil)
	if err != nil && !errors.Is(err, ctx.Err()) { // the event is informational
		c.failed.Log(ctx, c.Log, slog.LevelDebug, "telling of a reference into another namespace", "error", err)
	}
}
