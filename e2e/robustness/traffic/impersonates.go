//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

// constrained is the release from which on a right to impersonate a user needs another one for each verb.
const constrained cluster.Release = 36

// impersonates sends requests of a service account that may impersonate one user. In later releases it may do so for one verb: it needs a
// right to impersonate that user, and another one for the request. Each turn grants them in another order, and then revokes one.
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
	group, verb, granted := "authentication.k8s.io", "impersonate:user-info", c.granted(turn)
	if c.release < constrained {
		group, verb, turn = "", "impersonate", 1 // which grants and revokes the only right that counts
	}
	objects := [][2]string{
		{redAccounts, fmt.Sprintf(`{"metadata":{"name":%q}}`, name)},
		{rolesPath + "roles", role(target, `"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]`)},
		{rolesPath + "rolebindings", boundTo(target, "Role", target, userSubject(target))},
		{rbacPath + "clusterroles", role(as, fmt.Sprintf(`"apiGroups":[%q],"resources":["users"],"verbs":[%q],"resourceNames":[%q]`, group, verb, target))},
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
		get(target+"-2", one), get(target, one, "system:masters"), {as: target, uid: "of-another", method: http.MethodGet, path: one}, get(target, "/api/v1/namespaces/blue/configmaps/secret-of-blue"), get("", one),
	}}}
	if c.release >= constrained {
		all[0].nevers = append(all[0].nevers, get(target, redMaps+"?limit=1"))
	}
	user.useWays(ctx, all, 500*time.Millisecond)
	if !c.change(ctx, admin, name, true, http.MethodPost, last[0], last[1], http.StatusCreated, http.StatusConflict) {
		return false
	}
	user.useWays(ctx, all, max(granted, trying))
	if !c.change(ctx, admin, name, false, http.MethodDelete, ends, "", http.StatusOK, http.StatusNotFound) {
		return false
	}
	user.useWays(ctx, all, afterwards)
	return true
}
