//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// afterwards is the time for which a user continues with requests after their right was revoked: longer than a right may outlive
// its end (package judge).
const afterwards = judge.RightsTime + 4*time.Second

const rolesPath = "/apis/rbac.authorization.k8s.io/v1/namespaces/red/"

// setupRights makes what subjects read, in a namespace to which only bindings admit them.
func setupRights(ctx context.Context, admin *client) error {
	for path, body := range map[string]string{
		"/api/v1/namespaces/red/configmaps":  `{"metadata":{"name":"secret-of-red"}}`,
		"/api/v1/namespaces/blue/configmaps": `{"metadata":{"name":"secret-of-blue"}}`,
	} {
		code, answer, err := admin.send(ctx, 0, http.MethodPost, path, plainJSON, body)
		if err != nil || code != http.StatusCreated && code != http.StatusConflict {
			return fmt.Errorf("POST %s: %d %w %s", path, code, err, answer)
		}
	}
	return nil
}

// must repeats a request of the administrator until it is answered with one of two codes.
func (c *client) must(ctx context.Context, admin *client, method, path, body string, codes ...int) (code int, answer []byte, ok bool) {
	for ctx.Err() == nil {
		server := admin.any()
		code, answer, err := admin.send(ctx, server, method, path, plainJSON, body)
		if err == nil {
			for _, want := range codes {
				if code == want {
					c.answered = server
					return code, answer, true
				}
			}
		}
		c.rest(ctx)
	}
	return 0, nil, false
}

// revocations are the ways in which a right ends, named after the object that the client deletes or replaces: the account of
// the token, which may come back with its name; the Secret or the Pod to which the token is bound; the binding; the role, which may
// be one of the cluster, or its rules.
var revocations = []string{"account", "account-again", "secret", "pod", "binding", "role", "cluster-role", "rules"}

// rights is a service account whose tokens and rights are granted and revoked while it sends requests to every server.
func (c *client) rights(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	offset := c.rand.IntN(len(revocations))
	for turn := 0; ctx.Err() == nil; turn++ {
		account := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		if !c.right(ctx, admin, account, revocations[(turn+offset)%len(revocations)], c.granted(turn)) {
			return
		}
	}
}

// right gives an account a right, takes it away, and tries it all the time.
func (c *client) right(ctx context.Context, admin *client, account, revocation string, granted time.Duration) bool {
	const accounts, secrets = "/api/v1/namespaces/red/serviceaccounts", "/api/v1/namespaces/red/secrets"
	named := fmt.Sprintf(`{"metadata":{"name":%q}}`, account)
	rules := `"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]`
	role := func(rules string) string { return fmt.Sprintf(`{"metadata":{"name":%q},%s}`, account, rules) }
	roles, roleKind := rolesPath+"roles", "Role"
	if revocation == "cluster-role" {
		roles, roleKind = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRole"
	}
	for _, made := range [][2]string{{accounts, named}, {secrets, named}, {roles, role(rules)}} {
		if _, _, ok := c.must(ctx, admin, http.MethodPost, made[0], made[1], http.StatusCreated, http.StatusConflict); !ok {
			return false
		}
	}
	pod := history.Op{Kind: history.Create, Field: "v", Key: history.Key{Resource: pods.resource, Namespace: "red", Name: account}}
	if revocation == "pod" {
		body := func(id string) string { return podBody(account, id, account, false) }
		if _, ok := admin.until(ctx, pod, http.MethodPost, pods.path("red", ""), plainJSON, body, history.OK, history.Exists); !ok {
			return false
		}
	}
	spec := `{"expirationSeconds":600}`
	if kind := map[string]string{"secret": "Secret", "pod": "Pod"}[revocation]; kind != "" {
		spec = fmt.Sprintf(`{"expirationSeconds":600,"boundObjectRef":{"apiVersion":"v1","kind":%q,"name":%q}}`, kind, account)
	}
	if !c.request(ctx, admin, accounts+"/"+account+"/token", `{"spec":`+spec+`}`) {
		return false
	}
	c.try(ctx, account, 500*time.Millisecond) // without a right
	binding := fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":"red"}]}`, account, roleKind, account, account)
	if !c.change(ctx, admin, account, true, http.MethodPost, rolesPath+"rolebindings", binding, http.StatusCreated, http.StatusConflict) {
		return false
	}
	c.try(ctx, account, granted)
	method, path, body, codes := http.MethodDelete, accounts+"/"+account, "", []int{http.StatusOK, http.StatusNotFound} // a token dies with its account
	switch revocation {
	case "secret":
		path = secrets + "/" + account
	case "pod":
		path = pods.path("red", account) + "?gracePeriodSeconds=0"
	case "binding":
		path = rolesPath + "rolebindings/" + account
	case "role", "cluster-role":
		path = roles + "/" + account
	case "rules":
		method, path, body = http.MethodPut, roles+"/"+account, role(`"rules":[]`)
	}
	pod.ID, pod.Kind, pod.Field, pod.Call, pod.Outcome = c.rec.ID(), history.Delete, "", c.rec.Now(), history.OK
	revoked := c.change(ctx, admin, account, false, method, path, body, codes...)
	if revocation == "pod" {
		if pod.Return = c.rec.Now(); !revoked {
			pod.Outcome = history.Unknown
		}
		c.rec.Add(&pod)
	}
	if !revoked {
		return false
	}
	if revocation == "account-again" { // another one, for which the token is not
		if _, _, ok := c.must(ctx, admin, http.MethodPost, accounts, named, http.StatusCreated, http.StatusConflict); !ok {
			return false
		}
	}
	c.try(ctx, account, afterwards)
	for _, path := range []string{accounts, secrets, rolesPath + "rolebindings", roles} {
		c.must(ctx, admin, http.MethodDelete, path+"/"+account, "", http.StatusOK, http.StatusNotFound)
	}
	return true
}

// request gets a token that is valid for ten minutes: another one, as from a server whose clock is set, is no use elsewhere.
func (c *client) request(ctx context.Context, admin *client, path, body string) bool {
	for ctx.Err() == nil {
		_, answer, ok := c.must(ctx, admin, http.MethodPost, path, body, http.StatusCreated)
		if !ok {
			return false
		}
		var request struct {
			Status struct {
				Token               string
				ExpirationTimestamp time.Time
			}
		}
		if err := json.Unmarshal(answer, &request); err != nil || request.Status.Token == "" {
			c.rec.Stuck(fmt.Sprintf("%s: a TokenRequest was answered with %s", c.name, answer))
			return false
		}
		c.token = request.Status.Token
		if left := time.Until(request.Status.ExpirationTimestamp); left > 5*time.Minute && left < 20*time.Minute {
			return true
		}
		c.rest(ctx)
	}
	return false
}

// change grants or revokes. Tries without an answer count from the first one on.
func (c *client) change(ctx context.Context, admin *client, account string, grant bool, method, path, body string, codes ...int) bool {
	r := &history.Right{Subject: account, Granted: grant, Call: c.rec.Now(), Outcome: history.OK}
	code, _, ok := c.must(ctx, admin, method, path, body, codes...)
	if r.Return = c.rec.Now(); !ok {
		r.Outcome = history.Unknown
	} else if !c.loose && code != http.StatusConflict { // a conflict: another server may have made it, without an answer
		r.Server = c.answered + 1
	}
	c.rec.Add(r)
	return ok
}

// try reads an object that the subject may read at times, and one that it may never read.
func (c *client) try(ctx context.Context, account string, long time.Duration) {
	for i, began := 0, time.Now(); time.Since(began) < long && ctx.Err() == nil; i++ {
		for what, path := range map[string]string{
			"read":  []string{"/api/v1/namespaces/red/configmaps/secret-of-red", "/api/v1/namespaces/red/configmaps?resourceVersion=0"}[i%2],
			"never": []string{"/api/v1/namespaces/blue/configmaps/secret-of-blue", "/api/v1/configmaps?resourceVersion=0", "/api/v1/namespaces/blue/configmaps?watch=1&timeoutSeconds=1"}[i%3],
		} {
			c.attempt(ctx, account, what, http.MethodGet, path, "", "")
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.pace):
		}
	}
}
