//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// later are the clients of features that not all releases have. They begin when all servers are of the release of the round, and end before
// the next one begins.
var later = []struct {
	since cluster.Release
	name  string
	run   func(*client, context.Context)
}{
	{cluster.Oldest, "mutations", (*client).mutations},
	{cluster.Oldest, "migrates", (*client).migrates},
	{33, "networks", (*client).networks},
	{33, "resizes", (*client).resizes},
	{33, "ordered", (*client).ordered},
	{33, "later-rules", (*client).breaksLater},
	{34, "claims", (*client).claims},
	{34, "classes-in-use", (*client).classesInUse},
	{36, "groups-in-use", (*client).groupsInUse},
	{36, "impersonates", (*client).impersonates},
	{36, "shards", (*client).shards},
}

// Upgraded begins the traffic for the release of the round. It is called once, when all servers are of that release.
func (t *Traffic) Upgraded() { close(t.upgraded) }

// startLater starts the clients of the release once all servers are of it.
func (t *Traffic) startLater(ctx context.Context, start func(n int, name string, f func(*client, context.Context))) {
	select {
	case <-ctx.Done():
		return
	case <-t.upgraded:
	}
	for _, l := range later {
		if t.release >= l.since {
			start(1, l.name, l.run)
		}
	}
}

// object is an object as an answer has it; nil: it is not there.
type object map[string]any

// at returns a part of the object; nil: it is not there.
func (o object) at(path ...string) any {
	var part any = map[string]any(o)
	for _, name := range path {
		members, _ := part.(map[string]any)
		part = members[name]
	}
	return part
}

// text returns a text of the object; "": it is not there.
func (o object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

// inspect reads an object, which no other client writes, at one of the servers, and records each fault of the answer.
func (c *client) inspect(ctx context.Context, property, what, path string, wrong func(object) string) {
	check := &history.Check{Property: property, What: what, Server: c.next(), Call: c.rec.Now()}
	code, answer, err := c.send(ctx, check.Server, http.MethodGet, path, "", "")
	check.Return = c.rec.Now()
	var o object
	if err != nil || code != http.StatusNotFound && (code != http.StatusOK || json.Unmarshal(answer, &o) != nil) {
		return
	}
	check.Wrong = wrong(o)
	c.rec.Add(check)
}

// there is the error of an object that must be there, going that of one that must be marked for deletion and stay.
func there(o object) string {
	if o == nil {
		return "it is gone"
	}
	return ""
}

func going(o object) string {
	if o != nil && o.at("metadata", "deletionTimestamp") == nil {
		return "it is not marked"
	}
	return there(o)
}

// vanishes waits until an object is gone.
func (c *client) vanishes(ctx context.Context, path string) bool {
	return c.persist(ctx, "GET "+path+" until it is gone", func(ctx context.Context, server int) (int, bool) {
		code, _, err := c.send(ctx, server, http.MethodGet, path, "", "")
		if err != nil {
			return 0, false
		}
		return code, code == http.StatusNotFound
	})
}

// tidy deletes objects that a turn may have left, also when the traffic has ended.
func (c *client) tidy(ctx context.Context, paths ...string) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	for _, path := range paths {
		c.unmade(end, c, path)
	}
}

// during repeats something for some time, with rests.
func (c *client) during(ctx context.Context, long time.Duration, do func(n int)) {
	for n, began := c.rand.IntN(60), time.Now(); time.Since(began) < long && ctx.Err() == nil; n++ {
		do(n)
		c.rest(ctx)
		c.rest(ctx)
	}
}
