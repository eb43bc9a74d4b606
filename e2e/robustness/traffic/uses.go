//go:build unix

package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// try uses the right that the subject has at times, in several ways, and tries what the subject may never do.
func (c *client) try(ctx context.Context, admin *client, s *subject, long time.Duration) {
	for i, began := 0, time.Now(); time.Since(began) < long && ctx.Err() == nil; i++ {
		switch i % 4 {
		case 0:
			c.attempt(ctx, s.account, "read", http.MethodGet, redMaps+"/secret-of-red", "", "")
		case 1:
			c.attempt(ctx, s.account, "read", http.MethodGet, redMaps+"?resourceVersion=0", "", "")
		case 2:
			c.asks(ctx, s)
		default:
			c.asked(ctx, admin, s)
		}
		c.forbidden(ctx, s, i)
		sleep(ctx, c.pace)
	}
}

// forbidden tries something that the subject may never do.
func (c *client) forbidden(ctx context.Context, s *subject, i int) {
	const blue = "/api/v1/namespaces/blue/configmaps"
	other := *c
	switch i % 10 {
	case 0:
		c.attempt(ctx, s.account, "never", http.MethodGet, blue+"/secret-of-blue", "", "")
	case 1:
		c.attempt(ctx, s.account, "never", http.MethodGet, "/api/v1/configmaps?resourceVersion=0", "", "")
	case 2:
		c.attempt(ctx, s.account, "never", http.MethodGet, blue+"?watch=1&timeoutSeconds=1", "", "")
	case 3:
		c.attempt(ctx, s.account, "never", http.MethodPost, redMaps+"?dryRun=All", plainJSON, `{"metadata":{"generateName":"never-"}}`)
	case 4:
		c.attempt(ctx, s.account, "never", http.MethodGet, redSecrets+"/"+s.account, "", "")
	case 5: // as somebody who may
		other.as = "system:serviceaccount:kube-system:namespace-controller"
		other.attempt(ctx, s.account, "never", http.MethodGet, blue+"/secret-of-blue", "", "")
	case 6: // without a token
		other.token = ""
		other.attempt(ctx, s.account, "never", http.MethodGet, redMaps+"/secret-of-red", "", "")
	case 8: // in a namespace whose name begins with that of the right
		c.attempt(ctx, s.account, "never", http.MethodGet, "/api/v1/namespaces/"+nearNamespace+"/configmaps?resourceVersion=0", "", "")
	case 7: // with a token for another audience
		other.token = s.elsewhere
		other.attempt(ctx, s.account, "never", http.MethodGet, redMaps+"/secret-of-red", "", "")
	default: // with a signature of another token
		if at := strings.LastIndexByte(c.token, '.') + 9; at < len(c.token) {
			changed := "A"
			if c.token[at] == 'A' {
				changed = "B"
			}
			other.token = c.token[:at] + changed + c.token[at+1:]
			other.attempt(ctx, s.account, "never", http.MethodGet, redMaps+"/secret-of-red", "", "")
		}
	}
	c.server = other.server
}

const reviewed = `"resourceAttributes":{"namespace":"red","verb":"get","resource":"configmaps","name":"secret-of-red"}`

// asks asks with the token of the subject whether it has the right.
func (c *client) asks(ctx context.Context, s *subject) {
	c.review(ctx, s, c, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{`+reviewed+`}}`)
}

// asked has the administrator ask for the right, or use it in the place of the subject; or, if the token is to be revoked, ask whose the
// token is.
func (c *client) asked(ctx context.Context, admin *client, s *subject) {
	switch {
	case s.credential() && s.bound: // before, it is no right to read
		c.review(ctx, s, admin, "/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":%q}}`, c.token))
	case s.credential():
	case c.rand.IntN(2) == 0:
		c.review(ctx, s, admin, "/apis/authorization.k8s.io/v1/subjectaccessreviews", fmt.Sprintf(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":%q,%s}}`, s.user(), reviewed))
	default:
		as := *admin
		as.as = s.user()
		as.attempt(ctx, s.account, "read", http.MethodGet, redMaps+"/secret-of-red", "", "")
	}
}

// review posts a review, and records its answer as that to a read.
func (c *client) review(ctx context.Context, s *subject, by *client, path, body string) {
	a := &history.Access{Subject: s.account, Server: c.next(), What: "read", Timed: by.token != harness.AdminToken || s.credential(), Call: c.rec.Now()}
	code, answer, err := by.send(ctx, a.Server, http.MethodPost, path, plainJSON, body)
	a.Return, a.Code = c.rec.Now(), code
	var review struct {
		Status struct{ Allowed, Authenticated bool }
	}
	if err == nil && code == http.StatusCreated {
		if err := json.Unmarshal(answer, &review); err != nil {
			c.rec.Stuck(fmt.Sprintf("a review was answered with %.300s", answer))
			return
		}
		if !review.Status.Allowed && !review.Status.Authenticated {
			a.Code = http.StatusForbidden
		}
	}
	if err == nil {
		c.rec.Add(a)
	}
}

// watching is how long a client waits until its watches have begun at all servers.
const watching = 4 * time.Second

// watched is an account that loses its right, or its credential, in the first seconds after the servers were upgraded, while it watches at
// all servers. Events that come to its watches are recorded: these have to end.
func (c *client) watched(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.upgraded:
	}
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	s := &subject{account: fmt.Sprintf("%s-r%d", c.name, c.round)}
	// One client loses rights, the other one credentials. The last way takes too long to begin.
	for s.revocation == "" || s.credential() != strings.HasSuffix(c.name, "0") {
		s.revocation = revocations[c.rand.IntN(len(revocations)-1)]
	}
	if !c.admit(ctx, admin, s) || !c.bind(ctx, admin, s) {
		return
	}
	within, stop := context.WithTimeout(ctx, watching)
	defer stop()
	begun := make(chan struct{}, c.c.Len())
	for server := range c.c.Len() {
		w := *c
		c.readers.Go(func() { w.follow(ctx, within, s, server, begun) })
	}
	for range c.c.Len() {
		select {
		case <-begun:
		case <-within.Done():
		}
	}
	if !c.revoke(ctx, admin, s) {
		return
	}
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	c.forget(end, admin, s)
}

// follow begins a watch at a server, within some time, and records when events come: one a second is enough.
func (c *client) follow(ctx, within context.Context, s *subject, server int, begun chan<- struct{}) {
	var resp *http.Response
	for resp == nil {
		r, err := c.open(ctx, server, http.MethodGet, redMaps+"?watch=1&timeoutSeconds=300", "", "")
		switch {
		case err == nil && r.StatusCode == http.StatusOK:
			resp = r
			continue
		case err == nil:
			r.Body.Close()
		}
		select {
		case <-within.Done():
			return
		case <-time.After(c.pace):
		}
	}
	defer resp.Body.Close()
	begun <- struct{}{}
	last := time.Duration(0)
	for lines := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		now := c.rec.Now()
		if now-last < time.Second {
			continue
		}
		if e, err := c.parseEvent(line); err == nil && e.Item.State.Version != 0 {
			last = now
			c.rec.Add(&history.Access{Subject: s.account, Server: server, What: history.Watching, Version: e.Item.State.Version, Call: now, Return: now, Code: http.StatusOK})
		}
	}
}
