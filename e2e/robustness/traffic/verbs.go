//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// The namespace in which each user may use one verb.
const (
	verbsNamespace = "verbs"
	verbsCore      = "/api/v1/namespaces/" + verbsNamespace
	verbsSets      = "/apis/apps/v1/namespaces/" + verbsNamespace + "/statefulsets/fixed"
	verbsLeases    = "/apis/coordination.k8s.io/v1/namespaces/" + verbsNamespace + "/leases"
	verbsBindings  = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + verbsNamespace
	dryRun         = "?dryRun=All"
)

// verbRight is a right to one verb on one resource, a request that needs it, and requests that it does not suffice for and that need no
// other right of verbRights.
type verbRight struct {
	verb, group, resource string
	need                  use
	nevers                []use
}

// verbsSetup are the objects that the requests are about.
var verbsSetup = [][2]string{
	{"/api/v1/namespaces", `{"metadata":{"name":"` + verbsNamespace + `"}}`},
	{verbsCore + "/configmaps", `{"metadata":{"name":"fixed"}}`},
	{verbsCore + "/pods", plainPod("")},
	{"/apis/apps/v1/namespaces/" + verbsNamespace + "/statefulsets", `{"metadata":{"name":"fixed"},"spec":{"serviceName":"s",` + oneSelector + `,` + oneTemplate + `}}`},
	{verbsLeases, `{"metadata":{"name":"fixed"}}`},
}

func merges(path, patch string) use {
	return use{method: http.MethodPatch, path: path + dryRun, contentType: mergePatch, body: patch}
}

// verbRights are the rights. Each request needs exactly one of them.
var verbRights = []verbRight{
	{verb: "get", resource: "configmaps", need: use{method: http.MethodGet, path: verbsCore + "/configmaps/fixed"}},
	{verb: "list", resource: "configmaps", need: use{method: http.MethodGet, path: verbsCore + "/configmaps"}, nevers: []use{{method: http.MethodGet, path: "/api/v1/configmaps?limit=1"}}},
	{verb: "watch", resource: "configmaps", need: use{method: http.MethodGet, path: verbsCore + "/configmaps?watch=1&timeoutSeconds=1"}},
	{verb: "create", resource: "configmaps", need: use{method: http.MethodPost, path: verbsCore + "/configmaps" + dryRun, body: `{"metadata":{"generateName":"new-"}}`}},
	{verb: "update", resource: "configmaps", need: use{method: http.MethodPut, path: verbsCore + "/configmaps/fixed" + dryRun, body: `{"metadata":{"name":"fixed"},"data":{"a":"b"}}`}},
	{verb: "patch", resource: "configmaps", need: merges(verbsCore+"/configmaps/fixed", `{"data":{"a":"b"}}`), nevers: []use{
		{method: http.MethodPatch, path: verbsCore + "/configmaps/absent" + dryRun + "&fieldManager=verbs", contentType: applyPatch, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"absent"}}`}, // creates it
	}},
	{verb: "delete", resource: "configmaps", need: use{method: http.MethodDelete, path: verbsCore + "/configmaps/fixed" + dryRun}},
	{verb: "deletecollection", resource: "configmaps", need: use{method: http.MethodDelete, path: verbsCore + "/configmaps" + dryRun + "&labelSelector=no%3Dobject"}},
	{verb: "update", group: "coordination.k8s.io", resource: "leases", need: use{method: http.MethodPut, path: verbsLeases + "/fixed" + dryRun, body: `{"metadata":{"name":"fixed"}}`}, nevers: []use{
		{method: http.MethodPut, path: verbsLeases + "/absent" + dryRun, body: `{"metadata":{"name":"absent"}}`}, // creates it
	}},
	{verb: "patch", group: "apps", resource: "statefulsets", need: merges(verbsSets, `{"spec":{"replicas":2}}`)},
	{verb: "patch", group: "apps", resource: "statefulsets/status", need: merges(verbsSets+"/status", `{"status":{"replicas":1}}`)},
	{verb: "patch", group: "apps", resource: "statefulsets/scale", need: merges(verbsSets+"/scale", `{"spec":{"replicas":2}}`)},
	{verb: "get", group: "apps", resource: "statefulsets/scale", need: use{method: http.MethodGet, path: verbsSets + "/scale"}},
	{verb: "delete", resource: "pods", need: use{method: http.MethodDelete, path: verbsCore + "/pods/fixed" + dryRun}},
	{verb: "create", resource: "pods/eviction", need: use{method: http.MethodPost, path: verbsCore + "/pods/fixed/eviction" + dryRun, body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"fixed"}}`}},
	{verb: "patch", resource: "pods/status", need: merges(verbsCore+"/pods/fixed/status", `{"status":{"message":"a"}}`)},
	{verb: "create", resource: "serviceaccounts", need: use{method: http.MethodPost, path: verbsCore + "/serviceaccounts" + dryRun, body: `{"metadata":{"generateName":"new-"}}`}},
	{verb: "create", resource: "serviceaccounts/token", need: use{method: http.MethodPost, path: verbsCore + "/serviceaccounts/default/token", body: `{"spec":{"expirationSeconds":600}}`}},
}

// verbs gives each of some users one verb on one resource. Each user may do what needs that verb, and nothing that needs another one.
func (c *client) verbs(ctx context.Context) {
	made := verbsSetup
	user := func(i int) string { return fmt.Sprintf("%s-user-%d", verbsNamespace, i) }
	for i, r := range verbRights {
		role := fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"apiGroups":[%q],"resources":[%q],"verbs":[%q]}]}`, user(i), r.group, r.resource, r.verb)
		made = append(made[:len(made):len(made)], [2]string{verbsBindings + "/roles", role}, [2]string{verbsBindings + "/rolebindings", boundTo(user(i), "Role", user(i), userSubject(user(i)))})
	}
	if !c.made(ctx, c, made...) {
		return
	}
	now := c.rec.Now()
	subject := func(i int) string {
		return fmt.Sprintf("%s: %s of %s", c.label(), verbRights[i].verb, verbRights[i].resource)
	}
	for i := range verbRights {
		c.rec.Add(&history.Right{Subject: subject(i), Granted: true, Call: now, Return: now, Outcome: history.OK})
	}
	for ctx.Err() == nil && !c.rec.Lost() {
		i, other := c.rand.IntN(len(verbRights)), c.rand.IntN(len(verbRights))
		for tries := 0; tries < 10 && (other == i || verbRights[other].resource != verbRights[i].resource); tries++ { // most often another verb on the same
			other = c.rand.IntN(len(verbRights))
		}
		c.useAs(ctx, subject(i), "read", user(i), verbRights[i].need)
		never := verbRights[other].need
		if nevers := verbRights[i].nevers; other == i && len(nevers) > 0 || len(nevers) > 0 && c.rand.IntN(4) == 0 {
			other, never = -1, nevers[c.rand.IntN(len(nevers))]
		}
		if other != i {
			c.useAs(ctx, subject(i), "never", user(i), never)
		}
		c.rest(ctx)
		c.rest(ctx)
	}
}

// useAs is use by a user.
func (c *client) useAs(ctx context.Context, subject, what, user string, u use) {
	u.as = user
	c.use(ctx, subject, what, u)
}
