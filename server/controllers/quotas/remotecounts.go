package quotas

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// agent is the agent and field manager of this package.
const agent = reconcile.ManagerAgent + "resourcequota-controller"

// Limits of counting objects of other servers, which clients that create a quota for them cause.
const (
	remoteTimeout   = 5 * time.Second // for all of one resource in one namespace
	remotePage      = 500             // objects that are listed at once
	remoteMaxPages  = 20              // pages
	remoteBackoff   = 5 * time.Minute // the backoff of a group that did not answer
	remoteCacheTime = time.Minute     // how long a count is cached
)

// remoteCounts counts objects of other servers. No watch reports their deletion: they are
// counted together with the other quotas of their namespace, and at each resync.
type remoteCounts struct {
	reconcile.Base
	servers reconcile.RemoteResources // nil: there are none
	// served are the resources that can be counted; nil: not read yet.
	served map[schema.GroupResource]*schema.GroupVersionResource
	silent map[string]time.Time // groups that did not answer, and when their backoff ends
	kept   map[remoteKey]remoteCount
}

type remoteKey struct {
	namespace string
	resource  schema.GroupResource
}

type remoteCount struct {
	n     int
	known bool
	until time.Time
}

// find finds a resource of another server that can be counted.
func (a *remoteCounts) find(r schema.GroupResource) *schema.GroupVersionResource {
	if a.servers == nil {
		return nil
	}
	if a.served == nil {
		a.served = map[schema.GroupResource]*schema.GroupVersionResource{}
		list, _ := a.servers.Resources()
		for i := range list {
			one := &list[i]
			if key := one.GroupResource(); one.Namespaced && a.served[key] == nil && slices.Contains(one.Verbs, "list") {
				a.served[key] = &one.GroupVersionResource
			}
		}
	}
	return a.served[r]
}

// count returns the number of objects of a resource in a namespace, as another server reports it.
func (a *remoteCounts) count(ctx context.Context, namespace string, r schema.GroupResource) (n int, known bool) {
	now := a.Now()
	one := a.find(r)
	if one == nil || now.Before(a.silent[r.Group]) {
		return 0, false
	}
	maps.DeleteFunc(a.kept, func(_ remoteKey, c remoteCount) bool { return !now.Before(c.until) })
	maps.DeleteFunc(a.silent, func(_ string, until time.Time) bool { return !now.Before(until) })
	key := remoteKey{namespace, r}
	if c, ok := a.kept[key]; ok {
		return c.n, c.known
	}
	n, known, err := pages(ctx, a.API, one, namespace)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.Log.Info("cannot count the objects of another server", "resource", r, "namespace", namespace, "error", err)
		if a.silent == nil {
			a.silent = map[string]time.Time{}
		}
		a.silent[r.Group] = a.Now().Add(remoteBackoff)
	default:
		if a.kept == nil {
			a.kept = map[remoteKey]remoteCount{}
		}
		a.kept[key] = remoteCount{n, known, now.Add(remoteCacheTime)}
	}
	return n, known
}

// pages counts objects page by page; known is false where there are too many.
func pages(ctx context.Context, api reconcile.API, r *schema.GroupVersionResource, namespace string) (n int, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	path := "/apis/" + r.Group + "/" + r.Version + "/namespaces/" + namespace + "/" + r.Resource + "?limit=" + strconv.Itoa(remotePage)
	next := ""
	for range remoteMaxPages {
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []struct{} `json:"items"`
		}
		if err := api.Call(ctx, agent, http.MethodGet, path+next, "", nil, &page); err != nil {
			return 0, false, err
		}
		if n += len(page.Items); page.Continue == "" {
			return n, true, nil
		}
		next = "&continue=" + url.QueryEscape(page.Continue)
	}
	return 0, false, nil
}
