//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Lists that wait until their revision is gone.
const (
	waitingLists = 5
	waitingRests = 3 // between requests
)

// waiting is a list of which the client has the first page.
type waiting struct {
	rest  history.Rest
	token string
}

// expires begins lists of old states, waits until their revision is gone, and continues them with the token in the refusal.
func (c *client) expires(ctx context.Context) {
	slow := func() {
		for range waitingRests {
			c.rest(ctx)
		}
	}
	for ctx.Err() == nil {
		var open []*waiting
		for len(open) < waitingLists && ctx.Err() == nil {
			c.form = []history.Form{history.Whole, history.Whole, history.Partial, history.CBOR}[c.rand.IntN(4)]
			l := c.someList()
			w := &waiting{rest: history.Rest{Client: c.name, Scope: l.Scope, Selector: l.Selector, Form: c.form}}
			if c.begins(ctx, w) {
				open = append(open, w)
			}
			slow()
		}
		for len(open) > 0 && ctx.Err() == nil {
			w := open[0]
			open = open[1:]
			c.form = w.rest.Form
			_, _, code, answer := c.page(ctx, w, c.next(), w.token, 0)
			if code == http.StatusGone {
				c.continues(ctx, w, answer)
			} else { // it is still there
				open = append(open, w)
			}
			slow()
		}
	}
}

// oldestBack is how many revisions back a client looks for an old state.
const oldestBack = 1 << 14

// begins gets the first page of a list of an old state, which will be gone soon, and reports whether more follows.
func (c *client) begins(ctx context.Context, w *waiting) bool {
	newest := c.newest.Load()
	for back := uint64(oldestBack); back > 0; back /= 4 {
		if back >= newest {
			continue
		}
		page, more, code, _ := c.page(ctx, w, c.next(), "", newest-back)
		if code == http.StatusOK && more != "" && len(page.Items) > 0 {
			w.rest.After, w.token = page.Items[len(page.Items)-1], more
			return true
		}
		if code != http.StatusGone {
			break
		}
		c.rest(ctx)
	}
	return false
}

// continues takes the rest of a list whose revision is gone.
func (c *client) continues(ctx context.Context, w *waiting, refusal []byte) {
	var status listAnswer
	r := &w.rest
	r.Call, r.Token = c.rec.Now(), json.Unmarshal(refusal, &status) == nil && status.Metadata.Continue != ""
	for more := status.Metadata.Continue; more != ""; {
		server := c.next()
		if len(r.Pages) == 0 {
			r.Server = server
		}
		page, next, code, answer := c.page(ctx, w, server, more, 0)
		if r.Outcome = outcome(code, answer, ctx.Err()); r.Outcome != history.OK {
			break
		}
		r.Pages, more = append(r.Pages, page), next
		c.rest(ctx)
	}
	c.rec.Add(r)
}

// page gets a page of a list, of a revision if that is not 0, with a code of 0 if there was no answer.
func (c *client) page(ctx context.Context, w *waiting, server int, token string, revision uint64) (page history.Page, more string, code int, answer []byte) {
	q := scopeQuery(w.rest.Selector)
	q.Set("limit", strconv.Itoa(1+c.rand.IntN(3)))
	if token != "" {
		q.Set("continue", token)
	}
	if revision != 0 {
		q.Set("resourceVersion", strconv.FormatUint(revision, 10))
		q.Set("resourceVersionMatch", "Exact")
	}
	code, answer, err := c.send(ctx, server, http.MethodGet, kindOf(w.rest.Scope.Resource).path(w.rest.Scope.Namespace, "")+"?"+q.Encode(), "", "")
	if err == nil && code == http.StatusOK {
		page, more, err = c.parsePage(answer)
	}
	if err != nil {
		return page, "", 0, answer
	}
	return page, more, code, answer
}
