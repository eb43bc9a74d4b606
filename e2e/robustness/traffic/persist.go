//go:build unix

package traffic

import (
	"context"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// lingers is for how long a client that is refused goes on when its time is over: the last fault is mended, and then nothing is broken for
// longer than a refusal may last (package judge).
const lingers = judge.RefusedTime + 8*time.Second

// shortRefusal is the time up to which refusals are not recorded.
const shortRefusal = 2 * time.Second

// persist calls try with servers until it reports that a request is done, or ctx ends. A server that answers otherwise, and with no
// failure, refuses the request: persist records for how long.
func (c *client) persist(ctx context.Context, what string, try func(ctx context.Context, server int) (code int, done bool)) bool {
	refused := map[int]*history.Refusal{}
	defer func() {
		for _, r := range refused {
			if r.Last-r.First > shortRefusal {
				c.rec.Add(r)
			}
		}
	}()
	var over time.Time
	for {
		if ctx.Err() != nil && over.IsZero() {
			if len(refused) == 0 || c.rec.Lost() { // the database may lack what the request is about
				return false
			}
			ctx, over = context.WithoutCancel(ctx), time.Now()
		}
		if !over.IsZero() && time.Since(over) > lingers {
			return false
		}
		server, now := c.any(), c.rec.Now()
		code, done := try(ctx, server)
		if done {
			return true
		}
		if code != 0 && code != http.StatusTooManyRequests && code < 500 {
			r := refused[server]
			if r == nil {
				r = &history.Refusal{Client: c.name, Server: server, What: what, First: now}
				refused[server] = r
			}
			r.Last, r.Code = c.rec.Now(), code
			r.Times++
		}
		c.rest(ctx)
	}
}

// mostTries bounds how often insist repeats a request.
const mostTries = 20

// insist repeats a request until it is done. A request without an answer is the last one when ctx has ended: then nothing is broken,
// and the others would keep the round from being judged for minutes.
func (c *client) insist(ctx context.Context, try func() history.Outcome) {
	for range mostTries {
		switch out := try(); {
		case out == history.OK, out == history.Unknown && ctx.Err() != nil:
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// must repeats a request of the administrator until it is answered with one of some codes.
func (c *client) must(ctx context.Context, admin *client, method, path, body string, codes ...int) (code int, answer []byte, ok bool) {
	return c.mustAs(ctx, admin, plainJSON, method, path, body, codes...)
}

// mustPatch repeats a merge patch until it is answered with one of some codes.
func (c *client) mustPatch(ctx context.Context, path, patch string, codes ...int) bool {
	_, _, ok := c.mustAs(ctx, c, mergePatch, http.MethodPatch, path, patch, codes...)
	return ok
}

func (c *client) mustAs(ctx context.Context, admin *client, contentType, method, path, body string, codes ...int) (code int, answer []byte, ok bool) {
	ok = admin.persist(ctx, method+" "+path, func(ctx context.Context, server int) (int, bool) {
		var err error
		if code, answer, err = admin.send(ctx, server, method, path, contentType, body); err != nil {
			if method == http.MethodPost {
				c.silent++
			}
			return 0, false
		}
		for _, want := range codes {
			if code == want {
				c.answered = server
				return code, true
			}
		}
		return code, false
	})
	if !ok {
		return 0, nil, false
	}
	return code, answer, true
}

// until repeats an operation with new IDs until its outcome is one of some, or ctx ends.
func (c *client) until(ctx context.Context, op history.Op, method, path, contentType string, body func(id string) string, wanted ...history.Outcome) (done *history.Op, ok bool) {
	ok = c.persist(ctx, method+" "+path, func(_ context.Context, server int) (int, bool) {
		next := op
		next.ID, next.Server = c.rec.ID(), server
		done = c.do(&next, method, path, contentType, body(next.ID))
		for _, o := range wanted {
			if next.Outcome == o {
				return next.Code, true
			}
		}
		if next.Outcome == history.Unknown {
			return 0, false
		}
		return next.Code, false
	})
	return done, ok
}
