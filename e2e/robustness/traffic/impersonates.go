//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// impersonates sends requests of a service account that may impersonate one user for one verb: it needs a right to impersonate that user,
// and another one for the request. Each turn grants them in another order, and then revokes one.
func (c *client) impersonates(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	for turn := 0; ctx.Err() == nil; turn++ {
		if !c.impersonate(ctx, admin, fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn), turn) {
			return
		}
	}
}

// impersonate does that with one service account.
func (c *client) impersonate(ctx context.Context, admin *client, name string, turn int) bool {
	target, as, on := name+"-target", name+"-as", name+"-on"
	account := fmt.Sprintf(`{"kind":"ServiceAccount","name":%q,"namespace":"red"}`, name)
	role := func(name, rule string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{%s}]}`, name, rule)
	}
	objects := [][2]string{
		{redAccounts, fmt.Sprintf(`{"metadata":{"name":%q}}`, name)},
		{rolesPath + "roles", role(target, `"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]`)},
		{rolesPath + "rolebindings", boundTo(target, "Role", target, userSubject(target))},
		{rbacPath + "clusterroles", role(as, fmt.Sprintf(`"apiGroups":["authentication.k8s.io"],"resources":["users"],"verbs":["impersonate:user-info"],"resourceNames":[%q]`, target))},
		{rolesPath + "roles", role(on, `"apiGroups":[""],"resources":["configmaps"],"verbs":["impersonate-on:user-info:get"]`)},
	}
	rights := [2][2]string{
		{rbacPath + "clusterrolebindings", boundTo(as, "ClusterRole", as, account)},
		{rolesPath + "rolebindings", boundTo(on, "Role", on, account)},
	}
	paths := [2]string{rights[0][0] + "/" + as, rights[1][0] + "/" + on}
	first, last, ends := rights[turn%2], rights[1-turn%2], paths[turn/2%2]
	defer c.tidy(ctx, paths[0], paths[1], redAccounts+"/"+name, rolesPath+"rolebindings/"+target, rolesPath+"roles/"+target, rbacPath+"clusterroles/"+as, rolesPath+"roles/"+on)
	if !c.made(ctx, admin, append(objects, first)...) {
		return false
	}
	user := c.Traffic.client(name, c.proto, false)
	defer user.http.CloseIdleConnections()
	var ok bool
	if user.token, ok = c.request(ctx, admin, redAccounts+"/"+name+"/token", `{"spec":{"expirationSeconds":600}}`); !ok {
		return false
	}
	get := func(as, path string, groups ...string) use {
		return use{as: as, groups: groups, method: http.MethodGet, path: path}
	}
	const one = redMaps + "/secret-of-red"
	all := []way{{name: name, uses: []use{get(target, one)}, nevers: []use{
		get(target, redMaps+"?limit=1"), get(target+"-2", one), get(target, one, "system:masters"), get(target, "/api/v1/namespaces/blue/configmaps/secret-of-blue"), get("", one),
	}}}
	user.useWays(ctx, all, 500*time.Millisecond)
	if !c.change(ctx, admin, name, true, http.MethodPost, last[0], last[1], http.StatusCreated, http.StatusConflict) {
		return false
	}
	user.useWays(ctx, all, max(c.granted(turn), trying))
	if !c.change(ctx, admin, name, false, http.MethodDelete, ends, "", http.StatusOK, http.StatusNotFound) {
		return false
	}
	user.useWays(ctx, all, afterwards)
	return true
}
