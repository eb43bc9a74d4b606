//go:build unix

package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	rbacPath       = "/apis/rbac.authorization.k8s.io/v1/"
	rbacGroup      = `"apiGroup":"rbac.authorization.k8s.io"`
	redDeployments = "/apis/apps/v1/namespaces/red/deployments"
	redWidgets     = "/apis/robust.rowlock.dev/v1/namespaces/red/widgets"
	redPast        = pastGroup + "/namespaces/red/revisions"
	writesOf       = "?fieldSelector=object.resource%3Dconfigmaps,object.name%3D"
)

// use is a request by a user: by a client with a credential, or by the administrator in the place of the user.
type use struct {
	as     string
	groups []string
	uid    string
	method string
	path   string
	body   string
	lists  string // the answer is a review, in which a rule has this text
	hidden bool   // no answer may show whether the object exists

	contentType string    // of the body; "": JSON
	until       time.Time // an answer that comes later shows nothing; zero: each does
}

// way is a way to give a right to a user. What it covers, and the user, have the name of the turn, so that no right of another turn
// covers it.
type way struct {
	name   string
	made   [][2]string // the path and the body of what there is before
	give   [2]string   // the path and the body of what gives the right
	patch  [2]string   // the path and the body of a JSON patch that takes the right away; the other turns delete what gave it
	uses   []use
	nevers []use // what the user may never do
}

// grants gives users rights in several ways at the same time, takes them away, and tries them all the time.
func (c *client) grants(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	for turn := 0; ctx.Err() == nil; turn++ {
		if !c.grant(ctx, admin, ways(fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)), turn) {
			return
		}
	}
}

// trying is the least time for which rights are used: what they must not allow is tried too, and each rarely.
const trying = 6 * time.Second

// grant gives and takes away the rights of a turn.
func (c *client) grant(ctx context.Context, admin *client, all []way, turn int) bool {
	made := []int{http.StatusCreated, http.StatusConflict}
	gone := []int{http.StatusOK, http.StatusNotFound}
	for _, w := range all {
		for _, object := range w.made {
			if _, _, ok := c.must(ctx, admin, http.MethodPost, object[0], object[1], made...); !ok {
				return false
			}
		}
	}
	c.useWays(ctx, all, 300*time.Millisecond)
	for _, w := range all {
		if !c.change(ctx, admin, w.name, true, http.MethodPost, w.give[0], w.give[1], made...) {
			return false
		}
	}
	c.useWays(ctx, all, max(c.granted(turn), trying))
	for i, w := range all {
		ok := false
		if (turn+i+c.round)%2 == 0 {
			ok = c.changePatch(ctx, admin, w.patch[0], w.name, false, w.patch[1])
		} else {
			ok = c.change(ctx, admin, w.name, false, http.MethodDelete, w.give[0]+"/"+w.name, "", gone...)
		}
		if !ok {
			return false
		}
	}
	c.useWays(ctx, all, afterwards)
	for _, w := range all {
		for _, object := range append(w.made, w.give) {
			if _, _, ok := c.must(ctx, admin, http.MethodDelete, object[0]+"/"+w.name, "", gone...); !ok {
				return false
			}
		}
	}
	return true
}

// useWays uses rights in a random order, and each time tries something that the user may never do.
func (c *client) useWays(ctx context.Context, all []way, long time.Duration) {
	for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; c.rest(ctx) {
		w := &all[c.rand.IntN(len(all))]
		c.use(ctx, w.name, "read", w.uses[c.rand.IntN(len(w.uses))])
		w = &all[c.rand.IntN(len(all))]
		c.use(ctx, w.name, "never", w.nevers[c.rand.IntN(len(w.nevers))])
	}
}

// use records a request. The answer that its object does not exist, or that its revision is not kept, is that to a user who may see it.
func (c *client) use(ctx context.Context, subject, what string, u use) {
	by := *c
	by.as, by.groups, by.uid = u.as, u.groups, u.uid
	a := &history.Access{Subject: subject, Server: c.next(), What: what, Timed: c.token != harness.AdminToken, Call: c.rec.Now()}
	code, answer, err := by.send(ctx, a.Server, u.method, u.path, cmp.Or(u.contentType, plainJSON), u.body)
	if err != nil || !u.until.IsZero() && time.Now().After(u.until) {
		return
	}
	a.Return, a.Code = c.rec.Now(), code
	switch {
	case u.hidden:
		a.What = history.Hidden
	case code == http.StatusNotFound, code == http.StatusGone:
		a.Code = http.StatusOK
	case u.lists != "" && code == http.StatusCreated && !listed(answer, u.lists):
		a.Code = http.StatusForbidden
	}
	c.rec.Add(a)
}

// listed reports whether a SelfSubjectRulesReview has a rule with a text.
func listed(answer []byte, text string) bool {
	var review struct {
		Status struct{ ResourceRules, NonResourceRules json.RawMessage }
	}
	return json.Unmarshal(answer, &review) == nil &&
		(strings.Contains(string(review.Status.ResourceRules), text) || strings.Contains(string(review.Status.NonResourceRules), text))
}

func userSubject(name string) string {
	return fmt.Sprintf(`{"kind":"User",%s,"name":%q}`, rbacGroup, name)
}

func groupSubject(name string) string {
	return fmt.Sprintf(`{"kind":"Group",%s,"name":%q}`, rbacGroup, name)
}

// boundTo returns a binding of a role to a subject.
func boundTo(name, kind, role, subject string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{%s,"kind":%q,"name":%q},"subjects":[%s]}`, name, rbacGroup, kind, role, subject)
}

// named returns a role with a right to objects of one name.
func named(name, more, group, resource, verbs string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q%s},"rules":[{"apiGroups":[%q],"resources":[%q],"verbs":[%s],"resourceNames":[%[1]q]}]}`, name, more, group, resource, verbs)
}

// ways returns the ways of a turn.
func ways(turn string) []way {
	get := func(as, path string, groups ...string) use {
		return use{as: as, groups: groups, method: http.MethodGet, path: path}
	}
	review := func(as, text string, groups ...string) use {
		return use{as: as, groups: groups, method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", lists: text,
			body: `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"red"}}`}
	}
	set := func(path, value string) string {
		return fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, path, value)
	}
	field := func(operator, name string) string { return redMaps + "?fieldSelector=metadata.name" + operator + name }
	const blueMaps = "/api/v1/namespaces/blue/configmaps"
	const accounts = "system:serviceaccount"
	names, group, account, path, part, all, sub := turn+"-names", turn+"-group", turn+"-account", turn+"-path", turn+"-part", turn+"-all", turn+"-sub"
	return []way{{
		name: names,
		made: [][2]string{{rolesPath + "rolebindings", boundTo(names, "Role", names, userSubject(names))},
			{rbacPath + "clusterroles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"apiGroups":["history.rowlock.dev"],"resources":["revisions"],"verbs":["get","list"]}]}`, names)},
			{rbacPath + "clusterrolebindings", boundTo(names, "ClusterRole", names, userSubject(names))}},
		give:  [2]string{rolesPath + "roles", named(names, "", "", "configmaps", `"get","list","watch","delete"`)},
		patch: [2]string{rolesPath + "roles/" + names, set("/rules/0/resourceNames", `["other"]`)},
		uses: []use{get(names, redMaps+"/"+names), get(names, redPast+"/configmaps:"+names+":1"), get(names, redPast+writesOf+names), get(names, field("%3D", names)), get(names, field("%3D", names)+"&watch=1&timeoutSeconds=1"), review(names, names),
			{as: names, method: http.MethodDelete, path: redMaps + "/" + names + "?dryRun=All"}},
		nevers: []use{get(names, redMaps+"/secret-of-red"), get(names, redPast+"/configmaps:secret-of-red:1"), get(names, redPast+writesOf+"secret-of-red"), get(names, redMaps+"?limit=1"), get(names, field("%3D", "secret-of-red")), get(names, field("!%3D", names)+"&limit=1"),
			get(names, redMaps+"?watch=1&timeoutSeconds=1"), get(names, blueMaps+"/"+names), {as: names, method: http.MethodDelete, path: redMaps + "?dryRun=All&labelSelector=no%3Dobject"},
			{as: names, method: http.MethodGet, path: redSecrets + "/" + names, hidden: true}},
	}, {
		name:   group,
		made:   [][2]string{{rolesPath + "roles", named(group, "", "", "configmaps", `"get"`)}},
		give:   [2]string{rolesPath + "rolebindings", boundTo(group, "Role", group, groupSubject(group))},
		patch:  [2]string{rolesPath + "rolebindings/" + group, set("/subjects/0/name", `"`+group+`-other"`)},
		uses:   []use{get("member", redMaps+"/"+group, group), get("member", redMaps+"/"+group, "first", group), review("member", group, group)},
		nevers: []use{get("member", redMaps+"/"+group), get(group, redMaps+"/"+group), get("member", redMaps+"/"+group, group+"-x"), get("member", redMaps+"/"+group, group[:len(group)-1])},
	}, {
		name:   account,
		made:   [][2]string{{rolesPath + "roles", named(account, "", "", "configmaps", `"get"`)}},
		give:   [2]string{rolesPath + "rolebindings", boundTo(account, "Role", account, groupSubject(accounts+"s:red"))},
		patch:  [2]string{rolesPath + "rolebindings/" + account, set("/subjects", "[]")},
		uses:   []use{get(accounts+":red:"+account, redMaps+"/"+account), review(accounts+":red:"+account, account)},
		nevers: []use{get(accounts+":blue:"+account, redMaps+"/"+account), get(accounts+":"+nearNamespace+":"+account, redMaps+"/"+account), get("red:"+account, redMaps+"/"+account)},
	}, {
		name:  path,
		made:  [][2]string{{rbacPath + "clusterroles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"nonResourceURLs":["/%[1]s/*"],"verbs":["get"]}]}`, path)}},
		give:  [2]string{rbacPath + "clusterrolebindings", boundTo(path, "ClusterRole", path, userSubject(path))},
		patch: [2]string{rbacPath + "clusterroles/" + path, set("/rules/0/nonResourceURLs", `["/other"]`)},
		uses:  []use{get(path, "/"+path+"/a"), get(path, "/"+path+"/a/b"), review(path, path)},
		nevers: []use{get(path, "/"+path), get(path, "/"+path+"a"), get(path, "/metrics"), get(path, redMaps+"/"+path),
			{as: path, method: http.MethodPost, path: "/" + path + "/a", body: "{}"}},
	}, {
		name:  part,
		made:  [][2]string{{rolesPath + "rolebindings", boundTo(part, "ClusterRole", "edit", userSubject(part))}},
		give:  [2]string{rbacPath + "clusterroles", named(part, `,"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}`, "robust.rowlock.dev", "widgets", `"get"`)},
		patch: [2]string{rbacPath + "clusterroles/" + part, set("/metadata/labels/rbac.authorization.k8s.io~1aggregate-to-view", `"false"`)},
		uses:  []use{get(part, redWidgets+"/"+part), review(part, part)},
		nevers: []use{get(part, redWidgets+"/"+part+"x"), get(part, redWidgets+"?limit=1"), get(part, strings.Replace(redWidgets, "red", "blue", 1)+"/"+part),
			{as: part, method: http.MethodDelete, path: redWidgets + "/" + part + "?dryRun=All"}},
	}, {
		name:   all,
		made:   [][2]string{{rbacPath + "clusterroles", named(all, "", "", "configmaps", `"get","list"`)}},
		give:   [2]string{rbacPath + "clusterrolebindings", boundTo(all, "ClusterRole", all, userSubject(all))},
		patch:  [2]string{rbacPath + "clusterrolebindings/" + all, set("/subjects/0/name", `"`+all+`-other"`)},
		uses:   []use{get(all, redMaps+"/"+all), get(all, blueMaps+"/"+all), get(all, "/api/v1/configmaps?fieldSelector=metadata.name%3D"+all), review(all, all)},
		nevers: []use{get(all, "/api/v1/configmaps?limit=1"), get(all, blueMaps+"/secret-of-blue"), {as: all, method: http.MethodGet, path: "/api/v1/namespaces/blue/secrets/" + all, hidden: true}},
	}, {
		name:  sub,
		made:  [][2]string{{rolesPath + "rolebindings", boundTo(sub, "Role", sub, userSubject(sub))}},
		give:  [2]string{rolesPath + "roles", named(sub, "", "apps", "deployments/scale", `"get"`)},
		patch: [2]string{rolesPath + "roles/" + sub, set("/rules/0/resources", `["deployments/status"]`)},
		uses:  []use{get(sub, redDeployments+"/"+sub+"/scale")},
		nevers: []use{get(sub, redDeployments+"/"+sub), get(sub, redDeployments+"/"+sub+"-x/scale"), get(sub, strings.Replace(redDeployments, "deployments", "replicasets", 1)+"/"+sub+"/scale"),
			{as: sub, method: http.MethodPut, path: redDeployments + "/" + sub + "/scale?dryRun=All", body: "{}"}},
	}}
}
