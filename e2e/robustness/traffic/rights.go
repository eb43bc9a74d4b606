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

// revocations are the ways in which a right ends, named after the object that the client deletes or replaces: the account of
// the token, which may come back with its name; the Secret, the Pod or the Node to which the token is bound, or the Secret that holds it; the binding;
// the role, which may be one of the cluster, or its rules; or the subjects of the binding.
var revocations = []string{"account", "account-again", "secret", "pod", "node", "binding", "subjects", "role", "cluster-role", "rules", "stored"}

// rights is a service account whose tokens and rights are granted and revoked while it sends requests to every server.
func (c *client) rights(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	offset := 4*c.round + 2*int(c.name[len(c.name)-1]-'0') // so that all of them come in a few rounds
	for turn := 0; ctx.Err() == nil; turn++ {
		account := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		if !c.right(ctx, admin, account, revocations[(turn+offset)%len(revocations)], c.granted(turn)) {
			return
		}
	}
}

// subject is a service account, whose right to read ends in one of the revocations.
type subject struct {
	account, revocation string
	roles, roleKind     string
	pod                 history.Op
	bound               bool
	elsewhere           string // a token for another audience
}

const (
	redAccounts = "/api/v1/namespaces/red/serviceaccounts"
	redSecrets  = "/api/v1/namespaces/red/secrets"
	redMaps     = "/api/v1/namespaces/red/configmaps"
	nodeObjects = "/api/v1/nodes"
	reading     = `"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]`
)

// user returns the name of the account as that of a user.
func (s *subject) user() string { return "system:serviceaccount:red:" + s.account }

// credential reports whether the credential ends, and not what it allows.
func (s *subject) credential() bool {
	switch s.revocation {
	case "binding", "subjects", "role", "cluster-role", "rules":
		return false
	}
	return true
}

func (s *subject) role(rules string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},%s}`, s.account, rules)
}

// right gives an account a right, takes it away, and tries it all the time.
func (c *client) right(ctx context.Context, admin *client, account, revocation string, granted time.Duration) bool {
	s := &subject{account: account, revocation: revocation}
	if !c.admit(ctx, admin, s) {
		return false
	}
	c.try(ctx, admin, s, 500*time.Millisecond) // without a right
	if !c.bind(ctx, admin, s) {
		return false
	}
	c.try(ctx, admin, s, granted)
	if !c.revoke(ctx, admin, s) {
		return false
	}
	c.try(ctx, admin, s, afterwards)
	c.forget(ctx, admin, s)
	return true
}

// admit makes an account, a role and what else the subject needs, and gets a token.
func (c *client) admit(ctx context.Context, admin *client, s *subject) bool {
	named := fmt.Sprintf(`{"metadata":{"name":%q}}`, s.account)
	s.roles, s.roleKind = rolesPath+"roles", "Role"
	if s.revocation == "cluster-role" {
		s.roles, s.roleKind = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRole"
	}
	secret := named
	if s.revocation == "stored" {
		secret = fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"kubernetes.io/service-account.name":%[1]q}},"type":"kubernetes.io/service-account-token"}`, s.account)
	}
	for _, made := range [][2]string{{redAccounts, named}, {redSecrets, secret}, {s.roles, s.role(reading)}} {
		if _, _, ok := c.must(ctx, admin, http.MethodPost, made[0], made[1], http.StatusCreated, http.StatusConflict); !ok {
			return false
		}
	}
	s.pod = history.Op{Kind: history.Create, Field: "v", Key: history.Key{Resource: pods.resource, Namespace: "red", Name: s.account}}
	if s.revocation == "pod" {
		body := func(id string) string { return podBody(s.account, id, s.account, false) }
		if _, ok := admin.until(ctx, s.pod, http.MethodPost, pods.path("red", ""), plainJSON, body, history.OK, history.Exists); !ok {
			return false
		}
	}
	spec := `{"expirationSeconds":600}`
	if s.revocation == "node" && !c.made(ctx, admin, [2]string{nodeObjects, named}) {
		return false
	}
	if kind := map[string]string{"secret": "Secret", "pod": "Pod", "node": "Node"}[s.revocation]; kind != "" {
		spec = fmt.Sprintf(`{"expirationSeconds":600,"boundObjectRef":{"apiVersion":"v1","kind":%q,"name":%q}}`, kind, s.account)
	}
	tokens, ok := redAccounts+"/"+s.account+"/token", false
	if s.elsewhere, ok = c.request(ctx, admin, tokens, `{"spec":{"expirationSeconds":600,"audiences":["elsewhere"]}}`); ok && s.revocation == "stored" {
		return c.stored(ctx, admin, redSecrets+"/"+s.account)
	} else if ok {
		c.token, ok = c.request(ctx, admin, tokens, `{"spec":`+spec+`}`)
	}
	return ok
}

// bind gives the subject its right, by one of the two names of its user.
func (c *client) bind(ctx context.Context, admin *client, s *subject) bool {
	who := fmt.Sprintf(`{"kind":"ServiceAccount","name":%q,"namespace":"red"}`, s.account)
	if c.rand.IntN(2) == 0 {
		who = fmt.Sprintf(`{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}`, s.user())
	}
	s.bound = c.change(ctx, admin, s.account, true, http.MethodPost, rolesPath+"rolebindings", s.binding(who), http.StatusCreated, http.StatusConflict)
	return s.bound
}

func (s *subject) binding(subjects string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%[1]q},"subjects":[%[3]s]}`, s.account, s.roleKind, subjects)
}

// revoke takes the right away, or the credential.
func (c *client) revoke(ctx context.Context, admin *client, s *subject) bool {
	method, path, body, codes := http.MethodDelete, redAccounts+"/"+s.account, "", []int{http.StatusOK, http.StatusNotFound} // a token dies with its account
	switch s.revocation {
	case "secret", "stored":
		path = redSecrets + "/" + s.account
	case "pod":
		path = pods.path("red", s.account) + "?gracePeriodSeconds=0"
	case "node":
		path = nodeObjects + "/" + s.account
	case "binding":
		path = rolesPath + "rolebindings/" + s.account
	case "subjects":
		method, path, body = http.MethodPut, rolesPath+"rolebindings/"+s.account, s.binding("")
	case "role", "cluster-role":
		path = s.roles + "/" + s.account
	case "rules":
		method, path, body = http.MethodPut, s.roles+"/"+s.account, s.role(`"rules":[]`)
	}
	s.pod.ID, s.pod.Kind, s.pod.Field, s.pod.Call, s.pod.Outcome = c.rec.ID(), history.Delete, "", c.rec.Now(), history.OK
	revoked := c.change(ctx, admin, s.account, false, method, path, body, codes...)
	if s.revocation == "pod" {
		if s.pod.Return = c.rec.Now(); !revoked {
			s.pod.Outcome = history.Unknown
		}
		c.rec.Add(&s.pod)
	}
	if revoked && s.revocation == "account-again" { // another one, for which the token is not
		_, _, revoked = c.must(ctx, admin, http.MethodPost, redAccounts, fmt.Sprintf(`{"metadata":{"name":%q}}`, s.account), http.StatusCreated, http.StatusConflict)
	}
	return revoked
}

// forget deletes the account, Secret, binding, role and Node of the subject that remain.
func (c *client) forget(ctx context.Context, admin *client, s *subject) {
	for _, path := range []string{redAccounts, redSecrets, rolesPath + "rolebindings", s.roles, nodeObjects} {
		c.must(ctx, admin, http.MethodDelete, path+"/"+s.account, "", http.StatusOK, http.StatusNotFound)
	}
}

// request gets a token that is valid for ten minutes: another one, as from a server whose clock is set, is no use elsewhere.
func (c *client) request(ctx context.Context, admin *client, path, body string) (token string, ok bool) {
	ok = admin.persist(ctx, "POST "+path, func(ctx context.Context, server int) (int, bool) {
		code, answer, err := admin.send(ctx, server, http.MethodPost, path, plainJSON, body)
		if err != nil {
			return 0, false
		}
		var request struct {
			Status struct {
				Token               string
				ExpirationTimestamp time.Time
			}
		}
		if code != http.StatusCreated || json.Unmarshal(answer, &request) != nil {
			return code, false
		}
		token = request.Status.Token
		left := time.Until(request.Status.ExpirationTimestamp)
		return code, token != "" && left > 5*time.Minute && left < 20*time.Minute
	})
	return token, ok
}

// stored waits until a controller puts a token into a Secret, and takes it.
func (c *client) stored(ctx context.Context, admin *client, path string) bool {
	return admin.persist(ctx, "GET "+path+" until it has a token", func(ctx context.Context, server int) (int, bool) {
		var secret struct{ Data struct{ Token []byte } }
		code, answer, err := admin.send(ctx, server, http.MethodGet, path, "", "")
		if err != nil {
			return 0, false
		}
		if json.Unmarshal(answer, &secret) != nil || len(secret.Data.Token) == 0 {
			return code, false
		}
		c.token = string(secret.Data.Token)
		return code, true
	})
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
