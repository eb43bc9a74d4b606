//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const pastGroup = "/apis/history.rowlock.dev/v1"

// historians reads registers as they were, and all their writes, by the group history.rowlock.dev, the revisions of times, and everything at
// the oldest revision that it names, and at the one before.
func (c *client) historians(ctx context.Context) {
	for ctx.Err() == nil {
		switch v := c.someVersion(c); c.rand.IntN(12) {
		case 0:
			c.oldest(ctx)
		case 1, 2, 3, 4, 5:
			c.moment(ctx)
		case 6, 7:
			c.writes(ctx)
		default:
			if v != 0 {
				c.asOf(ctx, v)
			}
		}
		c.rest(ctx)
	}
}

// moment asks for the revision of a time some seconds before, of which the log or only packed history is kept.
func (c *client) moment(ctx context.Context) {
	ago := time.Second + time.Duration(c.rand.Int64N(int64(3*time.Second)))
	if c.rand.IntN(2) == 0 {
		ago = history.LogRetention + time.Duration(c.rand.Int64N(int64(history.Retention-history.LogRetention)))
	}
	at := time.Now().Add(-ago)
	var named struct{ Revision string }
	server := c.any()
	code, answer, err := c.send(ctx, server, http.MethodGet, pastGroup+"/moments/"+at.UTC().Format(time.RFC3339Nano), "", "")
	if err != nil || code != http.StatusOK {
		return
	}
	err = json.Unmarshal(answer, &named)
	revision, wrong := strconv.ParseUint(named.Revision, 10, 64)
	if err != nil || wrong != nil {
		c.rec.Stuck(fmt.Sprintf("%s: a moment was answered with %.300s", c.name, answer))
		return
	}
	c.rec.Add(&history.Moment{Server: server, Of: c.rec.At(at), Revision: revision, At: c.rec.Now()})
}

// oldest lists every scope at the oldest revision that the server keeps.
func (c *client) oldest(ctx context.Context) {
	var moment struct{ Oldest string }
	code, answer, err := c.send(ctx, c.any(), http.MethodGet, pastGroup+"/moments/now", "", "")
	if err != nil || code != http.StatusOK {
		return
	}
	err = json.Unmarshal(answer, &moment)
	oldest, wrong := strconv.ParseUint(moment.Oldest, 10, 64)
	if err != nil || wrong != nil {
		c.rec.Stuck(fmt.Sprintf("%s: a moment was answered with %.300s", c.name, answer))
		return
	}
	back := uint64(c.rand.IntN(2))
	for _, scope := range scopes {
		if oldest > back && scope != crowdScope && ctx.Err() == nil {
			c.list(context.Background(), &history.List{Scope: scope, Match: history.Exact, Asked: oldest - back}, 0)
		}
	}
}

// asOf reads a register as of a revision, and records that as a list of one name.
func (c *client) asOf(ctx context.Context, revision uint64) {
	n := c.rand.IntN(registered)
	k, ns := register(n)
	name := c.gens.some(c.round, n)
	if name == "" {
		return
	}
	l := &history.List{Client: c.name, Server: c.next(), Scope: history.Scope{Resource: k.resource, Namespace: ns}, Selector: history.Selector{Name: name}, Match: history.Exact, Asked: revision, Call: c.rec.Now()}
	code, answer, err := c.send(ctx, l.Server, http.MethodGet, fmt.Sprintf("%s/namespaces/%s/revisions/%s:%s:%d", pastGroup, ns, k.resource, name, revision), "", "")
	l.Return, l.Code, l.Outcome = c.rec.Now(), code, outcome(code, answer, err)
	page := history.Page{Version: revision}
	var refusal struct{ Details struct{ Kind string } }
	switch l.Outcome {
	case history.OK:
		item, err := written(answer)
		if err != nil {
			c.rec.Stuck(fmt.Sprintf("%s: a revision was answered with %.300s: %v", c.name, answer, err))
			return
		}
		if item != nil {
			page.Items = []history.Item{*item}
		}
		l.Pages = []history.Page{page}
	case history.NotFound:
		if json.Unmarshal(answer, &refusal) != nil || refusal.Details.Kind != "revisions" {
			return
		}
		l.Outcome, l.Pages = history.OK, []history.Page{page} // it was not there
	case history.Expired:
		l.Refused = l.Return
	default:
		return
	}
	c.rec.Add(l)
}

// writes lists the writes of a register, in pages from all servers in turn.
func (c *client) writes(ctx context.Context) {
	n := c.rand.IntN(registered)
	k, ns := register(n)
	name := c.gens.some(c.round, n)
	if name == "" {
		return
	}
	l := &history.Past{Client: c.name, Server: c.next(), Key: history.Key{Resource: k.resource, Namespace: ns, Name: name}, Call: c.rec.Now()}
	q := url.Values{"fieldSelector": {"object.resource=" + k.resource + ",object.name=" + name}, "content": {"true"}, "limit": {strconv.Itoa(1 + c.rand.IntN(20))}}
	for server := l.Server; !l.Whole; server = c.next() {
		code, answer, err := c.send(ctx, server, http.MethodGet, fmt.Sprintf("%s/namespaces/%s/revisions?%s", pastGroup, ns, q.Encode()), "", "")
		if history.Faulty(code) {
			c.rec.Stuck(fmt.Sprintf("a list of the writes of %s is refused: %d %s", l.Key, code, message(answer)))
		}
		if err != nil || code != http.StatusOK {
			break
		}
		more, err := addWrites(l, answer)
		if err != nil {
			c.rec.Stuck(fmt.Sprintf("%s: writes were listed with %.300s: %v", c.name, answer, err))
			return
		}
		q.Set("continue", more)
		l.Whole = more == ""
	}
	if l.Return = c.rec.Now(); len(l.Writes) > 0 || l.Whole {
		c.rec.Add(l)
	}
}

// addWrites adds a page to a list of writes, and returns the token that continues it.
func addWrites(l *history.Past, answer []byte) (more string, err error) {
	var page struct {
		Metadata struct{ Continue string }
		Items    []struct {
			Revision, Previous, Change string
			Content                    json.RawMessage
		}
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return "", err
	}
	for _, w := range page.Items {
		revision, err := strconv.ParseUint(w.Revision, 10, 64)
		if err != nil {
			return "", err
		}
		item, err := history.ParseObject(w.Content, revision)
		if err != nil {
			return "", err
		}
		previous, _ := strconv.ParseUint(w.Previous, 10, 64) // "": 0
		l.Writes = append(l.Writes, history.PastWrite{Change: w.Change, Previous: previous, State: item.State})
	}
	return page.Metadata.Continue, nil
}

// written returns the object that a revision wrote; nil if it was deleted.
func written(answer []byte) (*history.Item, error) {
	var r struct {
		Revision, Change string
		Content          json.RawMessage
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil, err
	}
	version, err := strconv.ParseUint(r.Revision, 10, 64)
	if err != nil || r.Change == "delete" {
		return nil, err
	}
	item, err := history.ParseObject(r.Content, version)
	return &item, err
}
