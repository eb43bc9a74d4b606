// Package quotas keeps the status of ResourceQuotas. A recount never removes the usage of a write in progress.
package quotas

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/admission/quota"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/definitions"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

const (
	quotasStorage = "resourcequotas"
	// admissionManager is the field manager of the usage that admission records.
	admissionManager = "kube-apiserver"
)

// Controller maintains the status of ResourceQuotas: it copies the limits from their spec, and counts the usage when a
// quota is new or its limits change, when an object that counts is deleted, and at each resync. Admission adds new objects
// to the usage. Unless its switch was named, the controller does not change a status for three seconds after a client has
// written it.
//
// It counts all quotas of a namespace together, in one scan of the resources that they limit there: pods, services, claims
// of volumes and of devices are decoded, others are only counted. Clients that may delete such objects cause these scans,
// which take at most a sixth of the time; clients that may create quotas cause a watch of each resource that one limits.
type Controller struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Remote    reconcile.RemoteResources // nil: there are no other servers
	Every     time.Duration             // how often all is counted; 0: 5 minutes; less: never
	Priority  *reconcile.Meter          // of namespaces where quotas have not been counted yet; nil: not measured

	loop   *reconcile.Loop
	limits limits
	remote remoteCounts
	dirty  dirtyQuotas
}

// tidying is the key of the check which resources exist, everything that of the resync of all quotas; other
// keys have a namespace.
var (
	tidying    = reconcile.Key{Name: "resources"}
	everything = reconcile.Key{Name: "quotas"}
)

const (
	// tidyEvery is the interval of checks whether missing resources that quotas limit have appeared.
	tidyEvery = 30 * time.Second
	// recheck is the delay before another count of a namespace whose count was lower than its recorded usage, or that had a
	// limit unknown to admission: objects that were admitted may not have been stored at the count.
	recheck = 5 * time.Second
	// clientStatus is the time for which the controller does not change a status that a client has written. Recorded answers show
	// clients that read such a status back up to three seconds later, and expect only the usage that admission has added.
	clientStatus = 3 * time.Second
	// contended is the shortest delay before a retry for a quota that another client has written in the
	// meantime; as after each write of a client, it is at least Base.Debounce.
	contended = 100 * time.Millisecond
	// restShare is the pause of a namespace between two counts, as a multiple of the duration of the count.
	restShare = 5
)

// Run works until ctx ends.
func (q *Controller) Run(ctx context.Context) error {
	q.Every = cmp.Or(q.Every, 5*time.Minute)
	l := &reconcile.Loop{Base: q.Base, Reconcile: q.reconcile, Failure: "cannot keep the status of ResourceQuotas", Queue: &reconcile.Queue[reconcile.Key, string]{Urgent: q.Priority}}
	q.loop, q.remote = l, remoteCounts{Base: q.Base, servers: q.Remote}
	l.Begin = func(context.Context) error {
		q.limits = limits{catalogue: q.Catalogue, named: map[string][]string{}, in: map[string]map[string]bool{}, unknown: map[string][]schema.GroupResource{}}
		if q.dirty = (dirtyQuotas{}); q.Every > 0 {
			l.Queue.AddAfter(everything, q.Every)
		}
		return nil
	}
	l.Sources = []reconcile.Source{
		{Storage: quotasStorage, Seen: q.touch, Changed: func(d cache.Delivery) {
			item, before := d.Item(), d.Event.Prev
			switch {
			case d.Type == cache.Deleted:
				l.Queue.Add(reconcile.Key{Namespace: item.Namespace}, 0)
			case before != nil && bytes.Equal(scan.Lookup(item.JSON(), "spec"), scan.Lookup(before.JSON(), "spec")):
				// Admission has counted something, or this controller.
			default:
				q.touch(item)
			}
		}},
		{Storage: definitions.Storage, Changed: func(cache.Delivery) {
			if len(q.limits.unknown) > 0 {
				l.Queue.AddAfter(tidying, time.Second) // the resource is served soon
			}
		}},
	}
	return l.Run(ctx)
}

// touch has a namespace counted, soon if a quota has not been.
func (q *Controller) touch(item *cache.Item) {
	key := reconcile.Key{Namespace: item.Namespace}
	if obj := decode(q.Cache, item, q.Catalogue.ByStorage(quotasStorage)); obj != nil && quota.Unmeasured(obj.(*corev1.ResourceQuota)) {
		q.loop.Queue.AddUrgent(key)
	} else {
		q.loop.Queue.Add(key, 0)
	}
}

func (q *Controller) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	q.remote.served = nil // once for each look: quotas have many names
	switch key {
	case tidying:
		if q.tidy(); len(q.limits.unknown) > 0 {
			r.After = tidyEvery
		}
		return r, nil
	case everything:
		q.Cache.Snapshot(quotasStorage).Ascend("", "", "", func(item *cache.Item) bool {
			q.loop.Queue.Add(reconcile.Key{Namespace: item.Namespace}, 0)
			return ctx.Err() == nil
		})
		return reconcile.Result{After: q.Every}, nil
	}
	began := time.Now()
	r.After, err = q.count(ctx, key.Namespace)
	if took := time.Since(began); took > time.Millisecond {
		r.Pause = restShare * took
	}
	return r, err
}

// tidy queues the namespaces whose quotas limit a resource that was missing and now exists.
func (q *Controller) tidy() {
	for namespace, list := range q.limits.unknown {
		for _, r := range list {
			if q.limits.resource(r) != nil || q.remote.find(r) != nil {
				q.loop.Queue.AddUrgent(reconcile.Key{Namespace: namespace})
				break
			}
		}
	}
}

// count counts the usage for the quotas of a namespace. It returns when to count again; 0: after a
// change.
func (q *Controller) count(ctx context.Context, namespace string) (next time.Duration, err error) {
	var quotas []*corev1.ResourceQuota
	var revisions []int64
	limited := corev1.ResourceList{}
	q.Cache.Snapshot(quotasStorage).Ascend(namespace, "", "", func(item *cache.Item) bool {
		if one, ok := decode(q.Cache, item, q.Catalogue.ByStorage(quotasStorage)).(*corev1.ResourceQuota); ok && one.DeletionTimestamp == nil {
			quotas, revisions = append(quotas, one), append(revisions, item.Revision)
			for name, amount := range one.Spec.Hard {
				limited[name] = amount
			}
		}
		return ctx.Err() == nil
	})
	q.follow(ctx, namespace, quota.Resources(limited))
	counted := &objects{ctx: ctx, limits: &q.limits, away: &q.remote, namespace: namespace}
	statuses := quota.Recount(quotas, counted, q.Now())
	next = q.dirty.keep(namespace, quotas, revisions, statuses, q.Now())
	later := time.Duration(0)
	for i, one := range quotas {
		if ctx.Err() != nil {
			return 0, nil
		}
		status := &statuses[i]
		if quota.Same(&one.Status, status) {
			continue
		}
		if left := q.deferral(one); left > 0 {
			later = max(later, left)
			continue
		}
		if lowered(one.Status.Used, status.Used) || quota.Unmeasured(one) {
			later = max(later, recheck)
		}
		one.Status = *status
		path := "/api/v1/namespaces/" + namespace + "/resourcequotas/" + url.PathEscape(one.Name) + "/status"
		switch e := q.API.Call(ctx, agent, http.MethodPut, path, reconcile.JSON, one, nil); {
		case apierrors.IsConflict(e):
			next = max(contended, q.Debounce)
		case e == nil:
			q.dirty.written(namespace, one.Name)
		case e != nil && !apierrors.IsNotFound(e):
			err = e
		}
	}
	if next == 0 {
		next = later
	}
	return next, err
}

// deferral returns how long the controller still defers to a client that has just written the status. Its cost grows with the
// managers of the quota's fields.
func (q *Controller) deferral(one *corev1.ResourceQuota) (left time.Duration) {
	if q.Debounce == 0 {
		return 0
	}
	for _, m := range one.ManagedFields {
		if m.Subresource != "status" || m.Manager == admissionManager || m.Time == nil || strings.HasPrefix(agent, m.Manager+"/") {
			continue
		}
		// The time is in seconds. One in the future is ignored.
		if since := q.Now().Sub(m.Time.Time); since >= 0 {
			left = max(left, clientStatus+time.Second-since)
		}
	}
	return left
}

// follow watches the resources that a namespace limits: deletions cause a recount.
func (q *Controller) follow(ctx context.Context, namespace string, list []schema.GroupResource) {
	came, left := q.limits.set(namespace, list, func(r schema.GroupResource) bool { return q.remote.find(r) != nil })
	if len(left) > 0 {
		q.loop.Leave(func(storage string) bool { return left[storage] })
	}
	for _, storage := range came {
		q.loop.Watch(ctx, reconcile.Source{
			Storage: storage,
			Changed: func(d cache.Delivery) {
				if item := d.Item(); q.limits.in[storage][item.Namespace] && frees(storage, d) {
					q.loop.Queue.Add(reconcile.Key{Namespace: item.Namespace}, 0)
				}
			},
			// The storage is served again, or no longer, or changes were too fast.
			Lost: func() {
				for _, namespace := range q.limits.lost(storage) {
					q.loop.Queue.Add(reconcile.Key{Namespace: namespace}, 0)
				}
			},
		})
	}
	if len(q.limits.unknown[namespace]) > 0 {
		q.loop.Queue.AddAfter(tidying, tidyEvery)
	}
}
