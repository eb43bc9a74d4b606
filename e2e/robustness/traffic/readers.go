//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

type listAnswer struct {
	Metadata struct {
		ResourceVersion    string `json:"resourceVersion"`
		Continue           string `json:"continue"`
		RemainingItemCount *int   `json:"remainingItemCount"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
	tableRows
}

// tableRows are the objects of a Table.
type tableRows struct {
	Columns []struct{ Name string } `json:"columnDefinitions"`
	Rows    []struct {
		Cells  []any           `json:"cells"`
		Object json.RawMessage `json:"object"`
	} `json:"rows"`
}

// holders notes the holders of Leases that the rows show.
func (t *tableRows) holders(items []history.Item) {
	at := slices.IndexFunc(t.Columns, func(c struct{ Name string }) bool { return c.Name == "Holder" })
	for i := range t.Rows {
		if at >= 0 && at < len(t.Rows[i].Cells) {
			items[i].Holder, _ = t.Rows[i].Cells[at].(string)
		}
	}
}

// misplaced returns the name of an object whose row does not begin with it, or has another number of cells than the Table has columns.
func (t *tableRows) misplaced(items []history.Item) (name string, ok bool) {
	for i := range t.Rows {
		if cells := t.Rows[i].Cells; len(cells) != len(t.Columns) || len(cells) == 0 || cells[0] != items[i].Name {
			return items[i].Name, true
		}
	}
	return "", false
}

func scopeQuery(s history.Selector) url.Values {
	q := url.Values{}
	if labels := s.Labels(); labels != "" {
		q.Set("labelSelector", labels)
	}
	if fields := s.Fields(); fields != "" {
		q.Set("fieldSelector", fields)
	}
	return q
}

// list lists a scope, in pages of a limit if there is one, each from the next server, and records it.
func (c *client) list(ctx context.Context, l *history.List, limit int) *history.List {
	q := scopeQuery(l.Selector)
	switch l.Match {
	case history.Any:
		q.Set("resourceVersion", "0")
	case history.NotOlder:
		q.Set("resourceVersion", strconv.FormatUint(l.Asked, 10))
		q.Set("resourceVersionMatch", "NotOlderThan")
	case history.Exact:
		q.Set("resourceVersion", strconv.FormatUint(l.Asked, 10))
		q.Set("resourceVersionMatch", "Exact")
	}
	k := servedAs(l.Scope.Resource, l.Served)
	if c.form == history.Protobuf && (k.custom() || k.resource == deployments.resource) { // custom resources have none, and no null is in that of a Deployment's template
		c.form = history.Whole
	}
	if l.Limit, l.Form = limit, c.form; limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if l.Served = ""; k.custom() && (l.Form == history.Whole || l.Form == history.YAML) {
		l.Served = k.apiVersion
	}
	return c.listPages(ctx, l, k.path(l.Scope.Namespace, ""), q)
}

// listPages requests the pages of a list, each from the next server. If the revision of a page is gone, the client lists the objects after the last received one again.
func (c *client) listPages(ctx context.Context, l *history.List, path string, q url.Values) *history.List {
	rest := ""
	l.Client, l.Server, l.Call = c.name, c.next(), c.rec.Now()
	for server := l.Server; ; server = c.next() {
		code, answer, err := c.send(ctx, server, http.MethodGet, path+"?"+q.Encode(), "", "")
		if len(l.Pages) == 0 {
			l.Return = c.rec.Now()
		}
		l.Code, l.Outcome = code, outcome(code, answer, err)
		if l.Outcome != history.OK {
			switch {
			case l.Outcome == history.Expired:
				l.Refused, rest = c.rec.Now(), continued(answer)
			case history.Faulty(code):
				c.rec.Stuck(fmt.Sprintf("a list that breaks no rule is refused: %s: %s", l, message(answer)))
			}
			break
		}
		page, more, err := c.parsePage(answer)
		if err != nil {
			l.Outcome = history.Unknown
			c.rec.Stuck(fmt.Sprintf("an answer is no list: %s: %v", l, err))
			break
		}
		l.Pages = append(l.Pages, page)
		if more == "" {
			break
		}
		q = nextQuery(l, more)
		if c.rest(ctx); c.rand.IntN(longRest) == 0 { // so that more is written, and compacted, meanwhile
			sleep(ctx, 3*time.Second)
		}
	}
	if len(l.Pages) > 0 {
		c.saw(l.Pages[0].Version)
	}
	if len(l.Pages) > 0 || l.Refused != 0 {
		c.rec.Add(l)
	}
	if last := l.Last(); rest != "" && last != nil {
		behind := &history.List{Scope: l.Scope, Selector: l.Selector, Limit: l.Limit, Form: l.Form, Served: l.Served, Behind: last}
		c.listPages(ctx, behind, path, nextQuery(behind, rest))
	}
	return l
}

// longRest is the number of pages of which one is followed by a long rest.
const longRest = 60

// nextQuery asks for the page of a list that a token continues with.
func nextQuery(l *history.List, token string) url.Values {
	q := scopeQuery(l.Selector)
	q.Set("limit", strconv.Itoa(l.Limit))
	q.Set("continue", token)
	return q
}

// continued returns the token in the refusal of a page; "": none.
func continued(answer []byte) string {
	var refusal struct{ Metadata struct{ Continue string } }
	_ = json.Unmarshal(answer, &refusal) // a body that is not JSON has no token
	return refusal.Metadata.Continue
}

func (t *Traffic) parsePage(answer []byte) (p history.Page, more string, err error) {
	var a listAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return p, "", err
	}
	if p.Version, err = strconv.ParseUint(a.Metadata.ResourceVersion, 10, 64); err != nil {
		return p, "", err
	}
	p.More, p.Rest = a.Metadata.Continue != "", a.Metadata.RemainingItemCount
	for _, row := range a.Rows {
		a.Items = append(a.Items, row.Object)
	}
	for _, object := range a.Items {
		item, err := t.parsed.Parse(object)
		if err != nil {
			return p, "", err
		}
		p.Items = append(p.Items, *item)
	}
	a.holders(p.Items)
	if name, wrong := a.misplaced(p.Items); wrong {
		return p, "", fmt.Errorf("the row of %s in a Table is not its own", name)
	}
	return p, a.Metadata.Continue, nil
}

// wideKinds have objects in several namespaces, each with a name that occurs in one of them only.
var wideKinds = []kind{widgets, deployments}

func (c *client) someScope() history.Scope {
	if c.rand.IntN(6) == 0 {
		return history.Scope{Resource: wideKinds[c.rand.IntN(len(wideKinds))].resource}
	}
	if c.rand.IntN(12) == 0 {
		return history.Scope{Resource: nearKinds[c.rand.IntN(len(nearKinds))].resource, Namespace: nearNamespace}
	}
	if c.rand.IntN(12) == 0 {
		return csiScope
	}
	return history.Scope{Resource: kinds[c.rand.IntN(len(kinds))].resource, Namespace: Namespaces[c.rand.IntN(len(Namespaces))]}
}

func (c *client) someSelector() (s history.Selector) {
	n := c.rand.IntN(8)
	s.On, s.Off, s.Way = n == 0 || n == 1, n == 2, c.rand.IntN(12)
	s.Not = c.rand.IntN(4) == 0
	if n := c.rand.IntN(6); n == 0 {
		s.Name = c.gens.some(c.round, c.rand.IntN(registered))
	}
	return s
}

func (c *client) someList() *history.List {
	l := &history.List{Scope: c.someScope(), Selector: c.someSelector()}
	if l.Scope == csiScope && l.Selector.Name != "" {
		l.Selector.Name = csiName(c.rand.IntN(someCSINodes))
	}
	if l.Scope.Resource == pods.resource && c.rand.IntN(2) == 0 {
		l.Selector.Node = nodes[c.rand.IntN(len(nodes))]
	}
	if l.Scope.Resource == pods.resource && c.rand.IntN(3) == 0 {
		l.Selector.Phase = phases[c.rand.IntN(len(phases))]
	}
	if l.Scope.Resource == widgets.resource {
		l.Selector.Side, l.Served = c.rand.IntN(4) == 0, widgetVersions[c.rand.IntN(2)].apiVersion
	}
	return l
}

// someForm has the next lists be in one of the forms, most often whole.
func (c *client) someForm() {
	c.form = []history.Form{history.Whole, history.Whole, history.Partial, history.Table, history.Protobuf, history.YAML, history.CBOR}[c.rand.IntN(7)]
}

// pages lists in small pages, of now and of the past.
func (c *client) pages(ctx context.Context) {
	for ctx.Err() == nil {
		c.someForm()
		l := c.someList()
		if v := c.someVersion(c); v != 0 && c.rand.IntN(3) == 0 {
			l.Match, l.Asked = history.Exact, v
		}
		c.list(context.Background(), l, 1+c.rand.IntN(4))
		c.rest(ctx)
	}
}

// past reads exact old states.
func (c *client) past(ctx context.Context) {
	for ctx.Err() == nil {
		c.someForm()
		if v := c.someVersion(c); v != 0 {
			l := c.someList()
			l.Match, l.Asked = history.Exact, v
			c.list(context.Background(), l, 0)
		}
		c.rest(ctx)
	}
}

// lists lists the current state, from memory, and not older than any revision that a client has seen.
func (c *client) lists(ctx context.Context) {
	for ctx.Err() == nil {
		c.someForm()
		l, limit := c.someList(), 0
		switch c.rand.IntN(4) {
		case 0:
			l.Match = history.Any
		case 1:
			if v := c.newest.Load(); v != 0 {
				l.Match, l.Asked, limit = history.NotOlder, v, 3*c.rand.IntN(2)
			}
		}
		c.list(context.Background(), l, limit)
		c.rest(ctx)
	}
}

// finalTime bounds how long a server may fail to answer a list when all is quiet.
const finalTime = 30 * time.Second

// Finally lists every scope at every server, when all is quiet. The lists are recorded as final ones.
func (t *Traffic) Finally(ctx context.Context) error {
	for i := range t.c.Len() {
		c := t.client(fmt.Sprintf("final-%d", i), "HTTP/2", false)
		for _, scope := range scopes {
			for _, match := range []history.Match{history.Latest, history.NotOlder} {
				for began := time.Now(); ; c.rest(ctx) { // again where a busy machine did not answer in time
					l := &history.List{Scope: scope, Match: match, Final: true}
					if match == history.NotOlder {
						l.Asked = t.newest.Load()
					}
					c.server = i - 1 // the next one is i
					if c.list(ctx, l, 0); l.Outcome == history.OK {
						break
					}
					if time.Since(began) > finalTime {
						return fmt.Errorf("%s", l)
					}
				}
			}
		}
		c.http.CloseIdleConnections()
	}
	return nil
}
