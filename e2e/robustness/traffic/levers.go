//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// soon is for how long a client tries what holds at once.
const soon = 3 * time.Second

// lever is a setting of the cluster that forbids some requests, and permits them at other times.
type lever struct {
	what   string
	permit func() bool               // sets everything that the requests depend on
	forbid func(subject string) bool // changes the setting, and records that the right of the subject has ended
	tries  []trial                   // what it forbids
}

// trial is a request that is tried again and again.
type trial struct {
	what, method, path, contentType, body string
	without                               string // a text that the answer lacks if the setting had no effect on the request; "": the request is refused
	with                                  string // a text that the answer must have
	table                                 bool   // the answer is a Table
	accept                                string // the Accept header; "": that of the form
	tagged                                bool   // the request names the ETag of the last answer, and the same may be the answer
}

// tagged is an answer with its ETag.
type tagged struct {
	tag    string
	answer []byte
}

// pull permits requests and then forbids them, and tries all the time what the lever forbids, and what nothing does. Whether something is
// permitted is recorded as a right: a request that begins some time after the change must be refused, or done.
func (c *client) pull(ctx context.Context, turn int, l *lever, free []trial) bool {
	if !l.permit() {
		return false
	}
	granted := &history.Right{Subject: fmt.Sprintf("%s-r%d-%d %s", c.name, c.round, turn, l.what), Granted: true, Call: c.rec.Now(), Return: c.rec.Now(), Outcome: history.OK}
	if !c.loose {
		granted.Server = c.answered + 1
	}
	c.rec.Add(granted)
	try := func(long time.Duration) {
		for n, began := c.rand.IntN(len(l.tries)), time.Now(); time.Since(began) < long && ctx.Err() == nil; n++ {
			if len(free) > 0 && n%4 == 3 {
				c.tries(ctx, history.Free, free[n/4%len(free)], "")
			} else {
				c.tries(ctx, "read", l.tries[n%len(l.tries)], granted.Subject)
			}
			c.rest(ctx)
			c.rest(ctx)
		}
	}
	// A change holds at once at the server that acknowledged it, and elsewhere some time later.
	long := func() time.Duration {
		if (c.loose || c.c.Len() > 1) && c.rand.IntN(2) == 0 {
			return afterwards
		}
		return soon
	}
	try(long())
	if !l.forbid(granted.Subject) {
		return false
	}
	try(long())
	return true
}

// tries is one trial. An answer that has the text that shows the effect of the setting counts as a refusal.
func (c *client) tries(ctx context.Context, what string, t trial, subject string) {
	if subject == "" {
		subject = t.what
	}
	c.form = history.Whole
	if t.table {
		c.form = history.Table
	}
	a := &history.Access{Subject: subject, Server: c.next(), What: what, Call: c.rec.Now()}
	by := *c
	had := c.tags[t.accept+" "+t.path]
	if by.accept = t.accept; t.tagged {
		by.tag = had.tag
	}
	code, header, answer, err := by.exchange(ctx, a.Server, t.method, t.path, t.contentType, t.body)
	if a.Return, a.Code = c.rec.Now(), code; err != nil {
		return
	}
	switch {
	case t.tagged && code == http.StatusNotModified:
		code, answer = http.StatusOK, had.answer
		a.Code = code
	case t.tagged && code == http.StatusOK:
		if c.tags == nil {
			c.tags = map[string]tagged{}
		}
		c.tags[t.accept+" "+t.path] = tagged{header.Get("Etag"), answer}
	}
	if done := code >= 200 && code < 300; code == http.StatusUnprocessableEntity || done && (t.without != "" && contains(answer, t.without) || t.with != "" && !contains(answer, t.with)) {
		a.Code = http.StatusForbidden
	}
	c.rec.Add(a)
}

// pulls pulls one lever after the other until ctx ends.
func (c *client) pulls(ctx context.Context, levers []lever, free []trial) {
	for turn := c.round; ctx.Err() == nil && c.pull(ctx, turn, &levers[turn%len(levers)], free); turn++ {
	}
}

// patched repeats a JSON patch of the administrator until it is done.
func (c *client) patched(ctx context.Context, admin *client, path, patch string) bool {
	for ctx.Err() == nil {
		server := admin.any()
		code, answer, err := admin.send(ctx, server, http.MethodPatch, path, jsonPatch, patch)
		if outcome(code, answer, err) == history.OK {
			c.answered = server
			return true
		}
		c.rest(ctx)
	}
	return false
}

// made makes objects that may be there.
func (c *client) made(ctx context.Context, admin *client, objects ...[2]string) bool {
	for _, o := range objects {
		if _, _, ok := c.must(ctx, admin, http.MethodPost, o[0], o[1], http.StatusCreated, http.StatusConflict); !ok {
			return false
		}
	}
	return true
}

// unmade deletes an object that may be gone.
func (c *client) unmade(ctx context.Context, admin *client, path string) bool {
	_, _, ok := c.must(ctx, admin, http.MethodDelete, path, "", http.StatusOK, http.StatusNotFound)
	return ok
}
