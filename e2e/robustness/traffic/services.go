//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	narrowNamespace = "narrow"
	narrow          = "/api/v1/namespaces/" + narrowNamespace
)

// Bounds of Services.
const (
	mostServices = 4                // of each client
	freeAddress  = "10.96.0.%d"     // of the part of the servers' range that is given only on request; each of two clients asks for one
	refusedTime  = 15 * time.Second // how long an address that is free may be refused
	refusedTimes = 10               // and how often, as each attempt may last as long
	patientTime  = 2 * time.Minute  // how long something may take that every server must do in the end
)

// services makes Services, which are given addresses and ports of nodes, and deletes them. An address that a dry run named can be
// taken afterwards.
func (c *client) services(ctx context.Context) {
	const path = narrow + "/services"
	var held [][]*history.Hold // of each Service
	giveBack := func(ctx context.Context) {
		for _, h := range held[0] {
			h.Until = c.rec.Now()
		}
		c.must(ctx, c, http.MethodDelete, path+"/"+held[0][0].Holder, "", http.StatusOK, http.StatusNotFound)
		held = held[1:]
	}
	// Remains of an earlier round are in the way.
	c.must(ctx, c, http.MethodDelete, path+"?labelSelector=by%3D"+c.name, "", http.StatusOK)
	for ctx.Err() == nil {
		switch n := c.rand.IntN(8); {
		case n == 0:
			c.fixed(ctx, path)
		case n < 5 && len(held) < mostServices:
			name := "service-" + c.rec.ID()
			code, answer, err := c.send(ctx, c.any(), http.MethodPost, path, plainJSON, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"by":%q}},"spec":{"type":"NodePort","ports":[{"port":80}]}}`, name, c.name))
			if o := outcome(code, answer, err); o == history.Unknown { // it may be there
				c.must(ctx, c, http.MethodDelete, path+"/"+name, "", http.StatusOK, http.StatusNotFound)
			} else if o == history.OK {
				held = append(held, c.given(name, answer))
			}
		case len(held) > 0:
			i := c.rand.IntN(len(held))
			held[0], held[i] = held[i], held[0]
			giveBack(ctx)
		}
		c.rest(ctx)
	}
	end, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	for len(held) > 0 {
		giveBack(end)
	}
}

// given records the address and the port that a Service was given.
func (c *client) given(name string, answer []byte) (holds []*history.Hold) {
	var made struct {
		Spec struct {
			ClusterIP string
			Ports     []struct{ NodePort int }
		}
	}
	if err := json.Unmarshal(answer, &made); err != nil || len(made.Spec.Ports) != 1 {
		c.rec.Stuck(fmt.Sprintf("%s: a Service was answered with %.300s", c.name, answer))
	}
	taken := []string{"the address " + made.Spec.ClusterIP}
	for _, p := range made.Spec.Ports {
		taken = append(taken, fmt.Sprintf("the port %d", p.NodePort))
	}
	for _, what := range taken {
		h := &history.Hold{What: what, Most: 1, Holder: name, From: c.rec.Now()}
		c.rec.Add(h)
		holds = append(holds, h)
	}
	return holds
}

// fixed asks for an address by a dry run, and then takes it for a moment.
func (c *client) fixed(ctx context.Context, path string) {
	name, address := "fixed-"+c.rec.ID(), fmt.Sprintf(freeAddress, 5+c.name[len(c.name)-1]%2)
	body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"by":%q,"fixed":%[2]q}},"spec":{"clusterIP":%[3]q,"ports":[{"port":80}]}}`, name, c.name, address)
	_, _, _ = c.send(ctx, c.any(), http.MethodPost, path+"?dryRun=All", plainJSON, body) // its answer promises nothing
	for refused, times := (time.Time{}), 0; ; c.rest(ctx) {
		code, answer, _ := c.must(ctx, c, http.MethodPost, path, body, http.StatusCreated, http.StatusConflict, http.StatusUnprocessableEntity)
		if code != http.StatusUnprocessableEntity {
			break
		}
		if refused.IsZero() {
			refused = time.Now()
		}
		// An attempt without an answer may have made it, and a database that goes back has one that was deleted.
		c.must(ctx, c, http.MethodDelete, path+"?labelSelector=fixed%3D"+c.name, "", http.StatusOK)
		// A server of a release without IPAddresses leaves that of a Service that it deletes.
		c.unmade(ctx, c, ipAddresses+"/"+address)
		if times++; times > refusedTimes && time.Since(refused) > refusedTime {
			c.rec.Stuck(fmt.Sprintf("%s: an address for which only a dry run had asked cannot be taken: %s: %.300s", c.name, body, answer))
			break
		}
	}
	c.must(ctx, c, http.MethodDelete, path+"/"+name, "", http.StatusOK, http.StatusNotFound)
}
