//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// A quota is enforced by its status, to which each write adds before it is stored. The controller counts stored objects: it may
// miss writes that are under way, when a quota is new, some seconds later, and when a server begins to lead. So all Secrets are made at
// once, before it counts again, and the bound is higher than the quota.
const (
	quotaSecrets = 4
	quotaMissed  = 4
	quotaTries   = 16
	quotaTime    = 3 * time.Second
)

// quotas makes a quota, and more Secrets than it allows, at all servers at the same time.
func (c *client) quotas(ctx context.Context) {
	const secrets = narrow + "/secrets"
	for ctx.Err() == nil {
		name := "few-" + c.rec.ID()
		quota := narrow + "/resourcequotas/" + name
		if _, _, ok := c.must(ctx, c, http.MethodPost, narrow+"/resourcequotas", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"hard":{"count/secrets":"%d"}}}`, name, quotaSecrets), http.StatusCreated, http.StatusConflict); !ok {
			return
		}
		enforces := map[int]bool{} // a server that has not received the quota does not
		c.persist(ctx, "GET "+quota+" until it counts", func(ctx context.Context, server int) (int, bool) {
			if !enforces[server] {
				var q struct {
					Status struct{ Used map[string]string }
				}
				code, answer, err := c.send(ctx, server, http.MethodGet, quota, "", "")
				if err != nil {
					return 0, false
				}
				if json.Unmarshal(answer, &q) != nil || len(q.Status.Used) == 0 {
					return code, false
				}
				enforces[server] = true
			}
			return 0, len(enforces) == c.c.Len()
		})
		began := c.rec.Now()
		holds := c.fill(ctx, secrets, name)
		if now := c.rec.Now(); now-began < quotaTime {
			for _, h := range holds {
				h.Until = now
				c.rec.Add(h)
			}
		}
		c.must(ctx, c, http.MethodDelete, secrets+"?labelSelector=by%3Dquotas", "", http.StatusOK)
		c.must(ctx, c, http.MethodDelete, quota, "", http.StatusOK, http.StatusNotFound)
	}
	end, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	c.must(end, c, http.MethodDelete, secrets+"?labelSelector=by%3Dquotas", "", http.StatusOK)
	c.must(end, c, http.MethodDelete, narrow+"/resourcequotas", "", http.StatusOK)
}

// fill makes Secrets, and returns those that were.
func (c *client) fill(ctx context.Context, path, quota string) (holds []*history.Hold) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range quotaTries {
		name := "secret-" + c.rec.ID()
		wg.Go(func() {
			code, _, err := c.send(ctx, i%c.c.Len(), http.MethodPost, path, plainJSON, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"by":"quotas"}}}`, name))
			if err != nil || code != http.StatusCreated {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			holds = append(holds, &history.Hold{What: "the quota " + quota, Most: quotaSecrets + quotaMissed, Holder: name, From: c.rec.Now()})
		})
	}
	wg.Wait()
	return holds
}
