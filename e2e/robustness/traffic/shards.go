//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// shards lists objects as two shards, by the hashes of their UIDs, and as a whole, at one revision and from any server. The shards together
// must have each object of the whole once.
func (c *client) shards(ctx context.Context) {
	for ctx.Err() == nil {
		c.rest(ctx)
		path := redMaps
		split := fmt.Sprintf("0x%016x", c.rand.Uint64()>>1+1<<62)
		part := func(first, last string) string {
			return "&shardSelector=" + url.QueryEscape(fmt.Sprintf("shardRange(object.metadata.uid, '%s', '%s')", first, last))
		}
		check := &history.Check{Property: "list", What: "the parts of the list of " + path + " at " + split, Server: c.next(), Call: c.rec.Now()}
		low, version, ok := c.names(ctx, check.Server, path+"?resourceVersion="+part("0x0000000000000000", split))
		if !ok {
			continue
		}
		exact := path + "?resourceVersionMatch=Exact&resourceVersion=" + version
		high, _, ok := c.names(ctx, c.any(), exact+part(split, "0x10000000000000000"))
		if !ok {
			continue
		}
		whole, _, ok := c.names(ctx, c.any(), exact)
		if !ok {
			continue
		}
		check.Return = c.rec.Now()
		both := slices.Concat(low, high)
		if slices.Sort(both); !slices.Equal(both, whole) {
			check.Wrong = fmt.Sprintf("of version %s they have %d and %d objects, and the whole has %d", version, len(low), len(high), len(whole))
		}
		c.rec.Add(check)
	}
}

// names returns the sorted names of a list, and its version; false if the server did not answer, or no longer has the version.
func (c *client) names(ctx context.Context, server int, path string) (names []string, version string, ok bool) {
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	code, answer, err := c.send(ctx, server, http.MethodGet, path, "", "")
	if err != nil || code != http.StatusOK || json.Unmarshal(answer, &list) != nil {
		return nil, "", false
	}
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	slices.Sort(names)
	return names, list.Metadata.ResourceVersion, true
}
