//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// restoreTime is the time within which a lone server that has just started restores what was missing before: it need not leave alone
// what has not changed since then, as it does with changes for ten seconds.
const restoreTime = 7 * time.Second

// restored is something that controllers keep.
type restored struct {
	path    string
	without string // a text that it must not have
	with    string // a text that it must have
}

// restores deletes or changes what controllers keep in each namespace and in an aggregated role, and waits until they have restored it.
func (c *client) restores(ctx context.Context) {
	const (
		home    = "/api/v1/namespaces/restored"
		changed = "changed by a client"
		roles   = rbacPath + "clusterroles"
		whole   = roles + "/restored"
		part    = roles + "/restored-part"
		label   = "robust.rowlock.dev/restored"
		right   = `"restored.rowlock.dev"`
	)
	account, authority := restored{path: home + "/serviceaccounts/default"}, restored{path: home + "/configmaps/kube-root-ca.crt", without: changed}
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"restored"}}`},
		[2]string{roles, `{"metadata":{"name":"restored"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"` + label + `":"yes"}}]},"rules":[]}`}) {
		return
	}
	for turn := c.round; ctx.Err() == nil; turn++ {
		var ok bool
		var want restored
		switch turn % 5 {
		case 0:
			want, ok = account, c.unmade(ctx, c, account.path)
		case 1:
			want, ok = authority, c.unmade(ctx, c, authority.path)
		case 2:
			want, ok = authority, c.mustPatch(ctx, authority.path, `{"data":{"ca.crt":"`+changed+`"}}`, http.StatusOK, http.StatusNotFound)
		case 3:
			want, ok = restored{path: whole, with: right}, c.made(ctx, c, [2]string{roles, `{"metadata":{"name":"restored-part","labels":{"` + label + `":"yes"}},"rules":[{"apiGroups":[` + right + `],"resources":["*"],"verbs":["get"]}]}`})
		default:
			want, ok = restored{path: whole, without: right}, c.unmade(ctx, c, part)
		}
		if !ok || !c.awaitRestored(ctx, &want) {
			return
		}
		c.rest(ctx)
	}
	c.tidy(ctx, part, whole)
}

// awaitRestored waits until controllers have restored something. A lone server that starts meanwhile has less time for it.
func (c *client) awaitRestored(ctx context.Context, want *restored) bool {
	due := &history.Due{Property: "liveness", What: want.path + ", which a client had deleted or changed,", Within: judge.ReturnTime, Cause: c.rec.Now()}
	pid, started := c.c.Pid(0), (*history.Due)(nil) // started: by the process, if it has started since
	defer func() {
		if started != nil {
			c.rec.Add(started)
		}
	}()
	return c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
		now := c.c.Pid(0)
		code, answer, err := c.send(ctx, c.next(), http.MethodGet, want.path, "", "")
		if err != nil || code >= 500 || now != c.c.Pid(0) {
			return false, false
		}
		came = code == http.StatusOK && (want.without == "" || !contains(answer, want.without)) && (want.with == "" || contains(answer, want.with))
		if now != pid && c.c.Len() == 1 {
			if started != nil {
				c.rec.Add(started)
			}
			pid, started = now, &history.Due{Property: "liveness", What: fmt.Sprintf("%s, which was missing or wrong when server 0 started,", want.path), Alone: true, Within: restoreTime, Cause: c.rec.Now()}
		}
		if started != nil {
			if started.Until = c.rec.Now(); came {
				started.Came = started.Until
			}
		}
		return came, false
	})
}
