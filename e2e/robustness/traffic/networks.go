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
	serviceCIDRs = "/apis/networking.k8s.io/v1/servicecidrs"
	ipAddresses  = "/apis/networking.k8s.io/v1/ipaddresses"

	// keptNetwork is how long a deleted network stays in use: longer than networkGrace, for which the controller keeps the finalizer of
	// a network that is not in use.
	keptNetwork  = 13 * time.Second
	networkGrace = 10 * time.Second
)

// networks creates ServiceCIDRs, uses an address of each, and deletes the ServiceCIDR, which must stay as long as the address is in use,
// but must not provide further addresses.
func (c *client) networks(ctx context.Context) {
	for turn := 0; ctx.Err() == nil && c.network(ctx, turn); turn++ {
	}
}

// network does that with one ServiceCIDR.
func (c *client) network(ctx context.Context, turn int) bool {
	name, number := fmt.Sprintf("network-r%d-%d", c.round, turn), 64*c.round+turn
	address := func(i int) string { return fmt.Sprintf("10.97.%d.%d", number/16%256, number%16*16+i) }
	service := func(metadata string, i int) string {
		return fmt.Sprintf(`{"metadata":{%s},"spec":{"clusterIP":%q,"ports":[{"port":80}]}}`, metadata, address(i))
	}
	const services = narrow + "/services"
	silent, path, taker, shown, thief := c.silent, serviceCIDRs+"/"+name, services+"/"+name, ipAddresses+"/"+address(5), name+"-2"
	defer c.tidy(ctx, taker, services+"/"+thief, path)
	if !c.made(ctx, c, [2]string{serviceCIDRs, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"cidrs":["%s/28"]}}`, name, address(0))}) || !c.networkReady(ctx, path) {
		return false
	}
	if !c.takes(ctx, services, name, service(fmt.Sprintf(`"name":%q`, name), 5)) {
		return false
	}
	hold := &history.Hold{What: "the address " + address(5), Most: 1, Holder: name, From: c.rec.Now()}
	c.rec.Add(hold)
	subject := fmt.Sprintf("%s-r%d-%d of a network", c.name, c.round, turn)
	c.rec.Add(&history.Right{Subject: subject, Granted: true, Call: c.rec.Now(), Return: c.rec.Now(), Outcome: history.OK})
	try := trial{method: http.MethodPost, path: services + "?dryRun=All", contentType: plainJSON, body: service(`"generateName":"try-"`, 7)}
	owned := func(o object) string {
		if by := o.text("spec", "parentRef", "name"); o != nil && by != name {
			return "it is that of " + by
		}
		return there(o)
	}
	stays := there
	each := func(n int) {
		switch n % 4 {
		case 0:
			c.inspect(ctx, "holds", "the IPAddress "+address(5)+" of "+name, shown, owned)
		case 1:
			c.inspect(ctx, "lifecycle", "the ServiceCIDR "+name+", of which a Service has an address", path, stays)
		case 2:
			c.rule(ctx, &rule{what: "a Service with the address of another", method: http.MethodPost, path: services, contentType: plainJSON, body: service(fmt.Sprintf(`"name":%q`, thief), 5), code: http.StatusUnprocessableEntity})
		default:
			c.tries(ctx, "read", try, subject)
		}
	}
	c.during(ctx, 2*time.Second, each)
	if !c.change(ctx, c, subject, false, http.MethodDelete, path, "", http.StatusOK, http.StatusNotFound) {
		return false
	}
	marked := time.Time{}
	stays = func(o object) string {
		marked, _ = time.Parse(time.RFC3339, o.text("metadata", "deletionTimestamp"))
		return going(o)
	}
	c.during(ctx, keptNetwork, each)
	hold.Until = c.rec.Now()
	if !c.unmade(ctx, c, taker) {
		return false
	}
	if c.silent != silent { // an unanswered request may create again what was deleted
		return true
	}
	for range c.c.Len() {
		c.inspect(ctx, "holds", "the IPAddress "+address(5)+" of "+name+", which is deleted", shown, func(o object) string {
			if o.text("spec", "parentRef", "name") == name {
				return "it is still there"
			}
			return ""
		})
	}
	if age := time.Since(marked); age < networkGrace || age > time.Hour { // too recent, or by a clock that was changed
		return true
	}
	return c.vanishes(ctx, path)
}

// networkReady waits until the controller has marked a ServiceCIDR as ready.
func (c *client) networkReady(ctx context.Context, path string) bool {
	return c.persist(ctx, "GET "+path+" until it is ready", func(ctx context.Context, server int) (int, bool) {
		code, answer, err := c.send(ctx, server, http.MethodGet, path, "", "")
		var network struct {
			Metadata struct{ Finalizers []string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err != nil {
			return 0, false
		}
		if json.Unmarshal(answer, &network) != nil || len(network.Metadata.Finalizers) == 0 || len(network.Status.Conditions) == 0 {
			return code, false
		}
		return code, network.Status.Conditions[0].Status == "True"
	})
}

// takes creates a Service with a given address. A refusal may be due to an earlier, unanswered attempt.
func (c *client) takes(ctx context.Context, services, name, body string) bool {
	return c.persist(ctx, "POST "+services+" "+body, func(ctx context.Context, server int) (int, bool) {
		code, _, err := c.send(ctx, server, http.MethodPost, services, plainJSON, body)
		if err != nil {
			c.silent++
			return 0, false
		}
		if code == http.StatusUnprocessableEntity {
			if found, _, err := c.send(ctx, server, http.MethodGet, services+"/"+name, "", ""); err == nil && found == http.StatusOK {
				return found, true
			}
		}
		return code, code == http.StatusCreated || code == http.StatusConflict
	})
}
