//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// graceNode is a node without a kubelet: its Pods stay until a client deletes them at once.
const graceNode = "grace"

// graces deletes Pods that are on a node, with periods of grace. A Pod stays, with the shortest of them, until it is deleted with none.
func (c *client) graces(ctx context.Context) {
	if !c.made(ctx, c, [2]string{"/api/v1/nodes", `{"metadata":{"name":"` + graceNode + `"}}`}) {
		return
	}
	for ctx.Err() == nil && c.grace(ctx, "grace-"+c.rec.ID()) {
	}
}

// grace is the life of one Pod.
func (c *client) grace(ctx context.Context, name string) bool {
	silent, path := c.silent, narrow+"/pods/"+name
	defer c.tidy(ctx, path+"?gracePeriodSeconds=0")
	if !c.made(ctx, c, [2]string{narrow + "/pods", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":%q,"terminationGracePeriodSeconds":300,"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`, name, graceNode)}) {
		return false
	}
	first, began := 100+c.rand.IntN(100), c.rec.Now()
	for _, step := range [][2]int{{first, first}, {first + 1 + c.rand.IntN(90), first}, {first - 60, first - 60}} {
		if _, _, ok := c.must(ctx, c, http.MethodDelete, fmt.Sprintf("%s?gracePeriodSeconds=%d", path, step[0]), "", http.StatusOK, http.StatusAccepted, http.StatusNotFound); !ok {
			return false
		}
		for range 3 {
			check := &history.Check{Property: "lifecycle", What: fmt.Sprintf("the Pod %s, which is deleted with a period of grace of %d seconds", name, step[0]), Server: c.next(), Call: began, Clocked: true}
			c.inspectFor(ctx, check, path, func(o object) string {
				seconds, _ := o.at("metadata", "deletionGracePeriodSeconds").(float64)
				if wrong := going(o); wrong != "" || int(seconds) == step[1] {
					return wrong
				}
				return fmt.Sprintf("its period is %v and must be %d", seconds, step[1])
			})
			c.rest(ctx)
		}
	}
	if !c.unmade(ctx, c, path+"?gracePeriodSeconds=0") {
		return false
	}
	// What had no answer may be done late: the Pod may be there again.
	return c.silent != silent || c.vanishes(ctx, path)
}
