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

// later lists the clients of features that not all releases have. They start when all servers run the release of the round, and end before
// the next round.
var later = []struct {
	since cluster.Release
	name  string
	run   func(*client, context.Context)
}{
	{cluster.Oldest, "mutations", (*client).mutations},
	{cluster.Oldest, "migrates", (*client).migrates},
	{cluster.Oldest, "impersonates", (*client).impersonates},
	{33, "networks", (*client).networks},
	{33, "resizes", (*client).resizes},
	{33, "ordered", (*client).ordered},
	{33, "later-rules", (*client).breaksLater},
	{33, "elections", (*client).elections},
	{34, "claims", (*client).claims},
	{34, "classes-in-use", (*client).classesInUse},
	{36, "groups-in-use", (*client).groupsInUse},
	{36, "shards", (*client).shards},
}

// Upgraded starts the traffic for the release of the round. Call it once, when all servers run that release.
func (t *Traffic) Upgraded() { close(t.upgraded) }

// startLater waits for Upgraded, and starts the clients of the release.
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

// object is a decoded object of an answer; nil if there is none.
type object map[string]any

// at returns the value at a path; nil if there is none.
func (o object) at(path ...string) any {
	var part any = map[string]any(o)
	for _, name := range path {
		members, _ := part.(map[string]any)
		part = members[name]
	}
	return part
}

// text returns the string at a path; "" if there is none.
func (o object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

// inspect reads an object that no other client writes at one of the servers, and records what wrong finds in the answer.
func (c *client) inspect(ctx context.Context, property, what, path string, wrong func(object) string) {
	c.inspectFor(ctx, &history.Check{Property: property, What: what, Server: c.next(), Call: c.rec.Now()}, path, wrong)
}

// inspectFor reads an object, and records what wrong finds in the answer as the result of a check.
func (c *client) inspectFor(ctx context.Context, check *history.Check, path string, wrong func(object) string) {
	code, answer, err := c.send(ctx, check.Server, http.MethodGet, path, "", "")
	check.Return = c.rec.Now()
	var o object
	if err != nil || code != http.StatusNotFound && (code != http.StatusOK || json.Unmarshal(answer, &o) != nil) {
		return
	}
	check.Wrong = wrong(o)
	c.rec.Add(check)
}

// there describes the fault if an object that must exist is absent; "" if it exists.
func there(o object) string {
	if o == nil {
		return "it is gone"
	}
	return ""
}

// going describes the fault if an object is absent or not marked for deletion; "" if it is marked.
func going(o object) string {
	if o != nil && o.at("metadata", "deletionTimestamp") == nil {
		return "it is not marked"
	}
	return there(o)
}

// vanishes waits until an object no longer exists.
func (c *client) vanishes(ctx context.Context, path string) bool {
	return c.persist(ctx, "GET "+path+" until it is gone", func(ctx context.Context, server int) (int, bool) {
		code, _, err := c.send(ctx, server, http.MethodGet, path, "", "")
		if err != nil {
			return 0, false
		}
		return code, code == http.StatusNotFound
	})
}

// tidy deletes objects that a turn may have left, even after ctx has ended.
func (c *client) tidy(ctx context.Context, paths ...string) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	for _, path := range paths {
		c.unmade(end, c, path)
	}
}

// during calls do repeatedly for some time, with pauses.
func (c *client) during(ctx context.Context, long time.Duration, do func(n int)) {
	for n, began := c.rand.IntN(60), time.Now(); time.Since(began) < long && ctx.Err() == nil; n++ {
		do(n)
		c.rest(ctx)
		c.rest(ctx)
	}
}
