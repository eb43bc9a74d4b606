//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// What a ConfigMap has in a namespace, and in the next namespace of that name.
const (
	formerText  = "of-the-former-tenant"
	presentText = "of-the-present-tenant"
)

// tenants deletes namespaces and makes them again for a user, who may read everything in the new one, and nothing of what was in the former.
// That is recorded as a right that has ended.
func (c *client) tenants(ctx context.Context) {
	name := c.label()
	role := fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"apiGroups":["history.rowlock.dev"],"resources":["revisions","revisions/diff"],"verbs":["get","list"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]}`, name)
	if !c.made(ctx, c, [2]string{rbacPath + "clusterroles", role}) {
		return
	}
	for turn := 0; ctx.Err() == nil && !c.rec.Lost() && c.tenant(ctx, fmt.Sprintf("%s-%d", name, turn), name); turn++ {
	}
	c.tidy(ctx, rbacPath+"clusterroles/"+name)
}

func (c *client) tenant(ctx context.Context, ns, name string) bool {
	const namespaces = "/api/v1/namespaces"
	home, silent, began := namespaces+"/"+ns, c.silent, c.rec.Now()
	var uids []string
	var former uint64
	for _, text := range []string{formerText, presentText} {
		_, answer, ok := c.must(ctx, c, http.MethodPost, namespaces, fmt.Sprintf(`{"metadata":{"name":%q}}`, ns), http.StatusCreated, http.StatusConflict)
		var o struct{ Metadata struct{ UID string } }
		if !ok || json.Unmarshal(answer, &o) != nil {
			return false
		}
		uids = append(uids, o.Metadata.UID)
		if !c.made(ctx, c, [2]string{"/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/rolebindings", boundTo(name, "ClusterRole", name, userSubject(name))}) {
			return false
		}
		_, answer, ok = c.must(ctx, c, http.MethodPost, home+"/configmaps", fmt.Sprintf(`{"metadata":{"name":"kept"},"data":{"text":%q}}`, text), http.StatusCreated, http.StatusConflict)
		if !ok || c.silent != silent { // what had no answer may be done late, or have been done before
			return ok && c.moveOut(ctx, ns, uids[len(uids)-1])
		}
		if text == presentText {
			break
		}
		former = versionOf(answer)
		if !c.moveOut(ctx, ns, uids[0]) || !c.vanishes(ctx, home) {
			return false
		}
	}
	past := pastGroup + "/namespaces/" + ns + "/revisions"
	paths := []string{
		past + writesOf + "kept&content=true", fmt.Sprintf("%s/configmaps:kept:%d", past, former), fmt.Sprintf("%s/configmaps:kept:%d/diff", past, former),
		fmt.Sprintf("%s/configmaps?resourceVersion=%d&resourceVersionMatch=Exact", home, former), fmt.Sprintf("%s/configmaps?resourceVersion=%d&watch=1&timeoutSeconds=1", home, former-1),
	}
	c.rec.Add(&history.Right{Subject: ns, Granted: true, Call: began, Return: began, Outcome: history.OK})
	now := c.rec.Now()
	c.rec.Add(&history.Right{Subject: ns, Server: c.answered + 1, Call: now, Return: now, Outcome: history.OK})
	by := *c
	by.as = name
	for n := 0; c.rec.Now()-now < afterwards && ctx.Err() == nil; n++ {
		a := &history.Access{Subject: ns, Server: by.next(), What: "read", Call: c.rec.Now()}
		_, answer, err := by.send(ctx, a.Server, http.MethodGet, paths[n%len(paths)], "", "")
		if a.Return, a.Code = c.rec.Now(), http.StatusForbidden; contains(answer, formerText) {
			a.Code = http.StatusOK
		}
		if err == nil || a.Code == http.StatusOK {
			c.rec.Add(a)
		}
		c.rest(ctx)
		c.rest(ctx)
	}
	return c.moveOut(ctx, ns, uids[1])
}

// moveOut deletes a namespace, and not another one of its name.
func (c *client) moveOut(ctx context.Context, ns, uid string) bool {
	vacate := history.Op{Kind: history.Vacate, Key: history.Key{Resource: "namespaces", Name: ns}}
	body := func(string) string {
		return fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":%q}}`, uid)
	}
	_, ok := c.until(ctx, vacate, http.MethodDelete, "/api/v1/namespaces/"+ns, plainJSON, body, history.OK, history.NotFound, history.Conflict)
	return ok
}
