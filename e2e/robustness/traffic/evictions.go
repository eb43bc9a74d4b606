//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Bounds of evictions: of so many Pods, a budget allows so many to be evicted.
const (
	evictedPods = 6
	evictable   = 2
)

// evictions makes Pods that run, and a budget for them, and evicts all at all servers at the same time.
func (c *client) evictions(ctx context.Context) {
	const pods, budgets = narrow + "/pods", "/apis/policy/v1/namespaces/" + narrowNamespace + "/poddisruptionbudgets"
	clean := func(ctx context.Context) {
		c.must(ctx, c, http.MethodDelete, pods+"?labelSelector=by%3Devictions&gracePeriodSeconds=0", "", http.StatusOK)
		c.must(ctx, c, http.MethodDelete, budgets, "", http.StatusOK)
	}
	for ctx.Err() == nil {
		name := "evicted-" + c.rec.ID()
		budget := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"maxUnavailable":%d,"selector":{"matchLabels":{"of":%[1]q}}}}`, name, evictable)
		allowed := fmt.Sprintf(`{"status":{"observedGeneration":1,"disruptionsAllowed":%d,"currentHealthy":0,"desiredHealthy":0,"expectedPods":%d}}`, evictable, evictedPods)
		if _, _, ok := c.must(ctx, c, http.MethodPost, budgets, budget, http.StatusCreated, http.StatusConflict); !ok || !c.mustPatch(ctx, budgets+"/"+name+"/status", allowed, http.StatusOK) {
			break
		}
		for i := range evictedPods {
			pod := fmt.Sprintf(`{"metadata":{"name":"%s-%d","labels":{"by":"evictions","of":%[1]q}},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`, name, i)
			if _, _, ok := c.must(ctx, c, http.MethodPost, pods, pod, http.StatusCreated, http.StatusConflict); !ok || !c.mustPatch(ctx, fmt.Sprintf("%s/%s-%d/status", pods, name, i), `{"status":{"phase":"Running"}}`, http.StatusOK) {
				break
			}
		}
		if ctx.Err() == nil {
			c.evict(ctx, pods, name)
		}
		clean(ctx)
	}
	end, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	clean(end)
}

// evict evicts the Pods of a budget.
func (c *client) evict(ctx context.Context, pods, budget string) {
	var wg sync.WaitGroup
	for i := range evictedPods {
		name := fmt.Sprintf("%s-%d", budget, i)
		wg.Go(func() {
			code, _, err := c.send(ctx, i%c.c.Len(), http.MethodPost, pods+"/"+name+"/eviction", plainJSON, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q},"deleteOptions":{"gracePeriodSeconds":0}}`, name))
			if err == nil && code == http.StatusCreated {
				c.rec.Add(&history.Hold{What: "disruptions by the budget " + budget, Most: evictable, Holder: name, From: c.rec.Now()})
			}
		})
	}
	wg.Wait()
}
