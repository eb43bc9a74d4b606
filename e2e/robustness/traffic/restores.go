//go:build unix

package traffic

import (
	"context"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// restores deletes or changes what controllers keep in each namespace, and waits until they have restored it.
func (c *client) restores(ctx context.Context) {
	const (
		home      = "/api/v1/namespaces/restored"
		account   = home + "/serviceaccounts/default"
		authority = home + "/configmaps/kube-root-ca.crt"
		changed   = "changed by a client"
	)
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"restored"}}`}) {
		return
	}
	for turn := c.round; ctx.Err() == nil; turn++ {
		path, ok := authority, false
		switch turn % 3 {
		case 0:
			path = account
			ok = c.unmade(ctx, c, path)
		case 1:
			ok = c.unmade(ctx, c, path)
		default:
			ok = c.mustPatch(ctx, path, `{"data":{"ca.crt":"`+changed+`"}}`, http.StatusOK, http.StatusNotFound)
		}
		due := &history.Due{Property: "liveness", What: path + ", which a client had deleted or changed,", Within: judge.ReturnTime, Cause: c.rec.Now()}
		if !ok || !c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
			code, answer, err := c.send(ctx, c.next(), http.MethodGet, path, "", "")
			return err == nil && code == http.StatusOK && !contains(answer, changed), false
		}) {
			return
		}
		c.rest(ctx)
	}
}
