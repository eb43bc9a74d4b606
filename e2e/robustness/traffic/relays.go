//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// relays patches an object at one server after the other. Each patch tests the value that the patch before has written, so no server may
// refuse it. An unanswered patch ends the turn, because the object may have either value.
func (c *client) relays(ctx context.Context) {
	for turn := 0; ctx.Err() == nil && !c.rec.Lost(); turn++ {
		c.relay(ctx, fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn))
	}
}

// relay does that with one object, until its value is unknown.
func (c *client) relay(ctx context.Context, name string) {
	value, path := c.rec.ID(), configMaps.path(fleetNamespace, "") // where the judge does not expect ConfigMaps
	if _, _, ok := c.must(ctx, c, http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":%q},"data":{"v":%q}}`, name, value), http.StatusCreated, http.StatusConflict); !ok {
		return
	}
	refusals := []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
	for ctx.Err() == nil && !c.rec.Lost() {
		next := c.rec.ID()
		query := ""
		if c.rand.IntN(4) == 0 {
			query = "?dryRun=All"
		}
		check := &history.Check{Property: "register", What: "a patch of " + name + " that tests what was written last", Server: c.next(), Call: c.rec.Now()}
		code, answer, err := c.send(ctx, check.Server, http.MethodPatch, path+"/"+name+query, jsonPatch, fmt.Sprintf(`[{"op":"test","path":"/data/v","value":%q},{"op":"replace","path":"/data/v","value":%q}]`, value, next))
		check.Return = c.rec.Now()
		switch o := outcome(code, answer, err); {
		case slices.Contains(refusals, code) && err == nil:
			check.Wrong = fmt.Sprintf("a server refuses it with %d, although %s was acknowledged: %.300s", code, value, answer)
			c.rec.Add(check)
			return
		case o == history.OK:
			if c.rec.Add(check); query == "" {
				value = next
			}
		case o == history.Unknown:
			return
		}
		if c.rand.IntN(3) == 0 {
			c.rest(ctx)
		}
	}
}
