package controllers

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/admission/quota"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

const (
	quotasStorage      = "resourcequotas"
	definitionsStorage = "customresourcedefinitions.apiextensions.k8s.io"
	quotasSwitch       = "resourcequota"
	quotasAgent        = managerAgent + "resourcequota-controller"
)

// Quotas keeps the status of ResourceQuotas: it copies what they limit from their spec, and
// counts what there is of that: when a quota is new or limits something else, when something
// goes that counts, and all over from time to time. Admission adds to the count what comes.
//
// All quotas of a namespace are counted together, in one look through what they limit there:
// pods, services, claims of volumes and of devices are decoded, others are only counted. Who
// may delete such objects causes that, no more often than that it takes a sixth of the time;
// and who may make quotas a watch of each resource that one limits.
type Quotas struct {
	API       API
	Cache     *cache.Cache
	Catalogue *kinds.Catalogue
	Elsewhere Elsewhere // nil: there are no other servers
	Log       *slog.Logger
	Clock     func() time.Time
	Moves     Moves         // of the clock
	Settle    time.Duration // how long a namespace where something has changed is left alone at first
	Every     time.Duration // how often all is counted; 0: 5 minutes; less: never
	Retry     time.Duration // how soon a failure is tried again; 0: 1 second
	Primary   *Queue        // of namespaces where something has gone; nil: not measured
	Priority  *Queue        // of those where quotas have not been counted yet

	desk   *desk
	first  *agenda // what is in Priority
	usual  *agenda
	limits quotaLimits
	away   awayCounts
	doubts quotaDoubts
}

// tidying is the key of the look at which resources there are, everything that of the look
// at all quotas; others have a namespace.
var (
	tidying    = objectKey{name: "resources"}
	everything = objectKey{name: "quotas"}
)

const (
	// tidyEvery is how often it is looked whether resources are there by now that quotas limit.
	tidyEvery = 30 * time.Second
	// recheck is when a namespace is counted again of which less was found than was recorded, or
	// that had a limit of which admission did not know: what was admitted may not have been
	// stored then.
	recheck = 5 * time.Second
	// contended is how long a quota rests that others have written meanwhile.
	contended = 100 * time.Millisecond
)

// resourceQuotas builds the controller.
func resourceQuotas(h Host, c Config) func(context.Context) error {
	return (&Quotas{
		API: h.API, Cache: h.Cache, Catalogue: h.Catalogue, Elsewhere: h.Elsewhere, Log: h.Log, Clock: h.Clock, Moves: h.Moves,
		Settle: c.Settle(quotasSwitch), Every: c.QuotaInterval, Primary: h.Queues.Of("resourcequota_primary"), Priority: h.Queues.Of("resourcequota_priority"),
	}).Run
}

// Run works until ctx ends.
func (q *Quotas) Run(ctx context.Context) error {
	if q.Every == 0 {
		q.Every = 5 * time.Minute
	}
	if q.Retry == 0 {
		q.Retry = time.Second
	}
	return again(ctx, q.Retry, func(ctx context.Context) bool {
		q.first = &agenda{settle: q.Settle, first: q.Retry, longest: mostRest, queue: q.Priority}
		q.usual = &agenda{settle: q.Settle, first: q.Retry, longest: mostRest, queue: q.Primary}
		q.limits, q.doubts = newQuotaLimits(), quotaDoubts{}
		q.desk = &desk{cache: q.Cache, clock: q.Clock, agendas: []*agenda{q.first, q.usual}, moves: q.Moves, look: q.look}
		if q.Every > 0 {
			q.usual.until(everything, q.Clock().Add(q.Every))
		}
		q.desk.run(ctx,
			source{storage: quotasStorage, changed: q.changed, there: func(item *cache.Item) bool {
				q.touch(item)
				return ctx.Err() == nil
			}},
			source{storage: definitionsStorage, changed: func([]cache.Delivery) {
				if len(q.limits.unknown) > 0 {
					q.usual.until(tidying, q.Clock().Add(time.Second)) // the resource is served soon
				}
			}},
		)
		return true
	})
}

// changed is told of quotas.
func (q *Quotas) changed(batch []cache.Delivery) {
	for _, d := range batch {
		item := d.Item()
		switch {
		case d.Type == cache.Deleted:
			q.usual.touch(objectKey{namespace: item.Namespace}, q.Clock())
		case d.Event.Prev != nil && bytes.Equal(scan.Lookup(item.JSON(), "spec"), scan.Lookup(d.Event.Prev.JSON(), "spec")):
			// Admission has counted something, or this controller.
		default:
			q.touch(item)
		}
	}
}

// touch has a namespace counted, soon if a quota has not been.
func (q *Quotas) touch(item *cache.Item) {
	list := q.usual
	if obj := q.decode(item, q.Catalogue.ByStorage(quotasStorage)); obj != nil && quota.Unmeasured(obj.(*corev1.ResourceQuota)) {
		list = q.first
	}
	list.touch(objectKey{namespace: item.Namespace}, q.Clock())
}

// decode reads an object; nil: that cannot be done.
func (q *Quotas) decode(item *cache.Item, r *kinds.Resource) kinds.Object {
	if item.Corrupt != nil || r == nil {
		return nil
	}
	obj := r.New()
	if _, err := q.Cache.JSON().Decode(item.JSON(), obj, codecs.Ignore); err != nil {
		return nil
	}
	return obj
}

// look does what there is to do for a key.
func (q *Quotas) look(ctx context.Context, list *agenda, key objectKey) bool {
	q.away.served = nil // once for each look: quotas have many names
	switch key {
	case tidying:
		q.tidy()
		list.forget(key)
		if len(q.limits.unknown) > 0 {
			list.until(key, q.Clock().Add(tidyEvery))
		}
		return true
	case everything:
		q.Cache.Snapshot(quotasStorage).Ascend("", "", "", func(item *cache.Item) bool {
			q.usual.touch(objectKey{namespace: item.Namespace}, q.Clock())
			return ctx.Err() == nil
		})
		list.until(key, q.Clock().Add(q.Every))
		return true
	}
	began := time.Now()
	next, err := q.count(ctx, key.namespace)
	took := time.Since(began)
	switch {
	case err != nil && ctx.Err() == nil:
		q.Log.Warn("cannot keep the status of a ResourceQuota", "namespace", key.namespace, "error", err)
		list.fail(key, q.Clock())
		return false
	case took > time.Millisecond:
		for _, one := range q.desk.agendas { // whichever asks for it next
			one.rest(key, q.Clock(), mostSettling*took)
		}
	default:
		list.forget(key)
	}
	if next > 0 {
		list.until(key, q.Clock().Add(next))
	}
	if list == q.first && next == 0 {
		q.usual.drop(key)
	}
	return true
}

// tidy has namespaces counted that limit what is there by now.
func (q *Quotas) tidy() {
	for namespace, list := range q.limits.unknown {
		for _, r := range list {
			if q.limits.resource(q.Catalogue, r) != nil || q.elsewhere(r) != nil {
				q.first.touch(objectKey{namespace: namespace}, q.Clock())
				break
			}
		}
	}
}

// count counts for the quotas of a namespace. It says when that is to be done again: 0:
// when something changes.
func (q *Quotas) count(ctx context.Context, namespace string) (next time.Duration, err error) {
	var quotas []*corev1.ResourceQuota
	var revisions []int64
	limited := corev1.ResourceList{}
	q.Cache.Snapshot(quotasStorage).Ascend(namespace, "", "", func(item *cache.Item) bool {
		if one, ok := q.decode(item, q.Catalogue.ByStorage(quotasStorage)).(*corev1.ResourceQuota); ok && one.DeletionTimestamp == nil {
			quotas, revisions = append(quotas, one), append(revisions, item.Revision)
			for name, amount := range one.Spec.Hard {
				limited[name] = amount
			}
		}
		return ctx.Err() == nil
	})
	q.follow(namespace, quota.Resources(limited))
	objects := &quotaObjects{ctx: ctx, q: q, namespace: namespace}
	statuses := quota.Recount(quotas, objects, q.Clock())
	next = q.doubts.keep(namespace, quotas, revisions, statuses, q.Clock())
	later := time.Duration(0)
	for i, one := range quotas {
		if ctx.Err() != nil {
			return 0, nil
		}
		status := &statuses[i]
		if quota.Same(&one.Status, status) {
			continue
		}
		if lowered(one.Status.Used, status.Used) || quota.Unmeasured(one) {
			later = recheck
		}
		one.Status = *status
		path := "/api/v1/namespaces/" + namespace + "/resourcequotas/" + url.PathEscape(one.Name) + "/status"
		switch e := q.API.Call(ctx, quotasAgent, http.MethodPut, path, "application/json", one, nil); {
		case apierrors.IsConflict(e):
			next = contended
		case e == nil:
			q.doubts.written(namespace, one.Name)
		case e != nil && !apierrors.IsNotFound(e):
			err = e
		}
	}
	if next == 0 {
		next = later
	}
	return next, err
}

// lowered says whether less is used of something than was recorded.
func lowered(before, after corev1.ResourceList) bool {
	for name, amount := range after {
		if was, ok := before[name]; ok && amount.Cmp(was) < 0 {
			return true
		}
	}
	return false
}

// follow has the desk told of what goes of the resources that a namespace limits.
func (q *Quotas) follow(namespace string, list []schema.GroupResource) {
	came, left := q.limits.set(q.Catalogue, namespace, list, func(r schema.GroupResource) bool { return q.elsewhere(r) != nil })
	if len(left) > 0 {
		q.desk.leave(func(storage string) bool { return left[storage] })
	}
	for _, storage := range came {
		q.desk.follow(source{
			storage: storage,
			changed: func(batch []cache.Delivery) { q.went(storage, batch) },
			// What is watched is served anew, or no more, or changes too fast.
			lost: func() {
				for _, namespace := range q.limits.lost(storage) {
					q.usual.touch(objectKey{namespace: namespace}, q.Clock())
				}
			},
		})
	}
	if len(q.limits.unknown[namespace]) > 0 && q.usual.all[tidying] == nil {
		q.usual.until(tidying, q.Clock().Add(tidyEvery))
	}
}

// went is told of changes of what quotas limit.
func (q *Quotas) went(storage string, batch []cache.Delivery) {
	for _, d := range batch {
		if item := d.Item(); q.limits.has(storage, item.Namespace) && frees(storage, d) {
			q.usual.touch(objectKey{namespace: item.Namespace}, q.Clock())
		}
	}
}

// frees says whether a change may have freed something that a quota limits.
func frees(storage string, d cache.Delivery) bool {
	if d.Type == cache.Deleted {
		return true
	}
	item, before := d.Item(), d.Event.Prev
	if before == nil || before.Corrupt != nil || item.Corrupt != nil {
		return d.Type == cache.Modified
	}
	differ := func(path ...string) bool {
		return !bytes.Equal(scan.Lookup(item.JSON(), path...), scan.Lookup(before.JSON(), path...))
	}
	switch storage {
	case "pods":
		return differ("status", "phase") || differ("metadata", "deletionGracePeriodSeconds") || differ("spec", "containers")
	case "services":
		return differ("spec")
	case claimsStorage:
		return differ("spec") || differ("status", "allocatedResources") || differ("status", "capacity")
	}
	return false
}
