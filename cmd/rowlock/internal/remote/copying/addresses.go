package copying

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// keepAddresses keeps the addresses of an existing Service, which cannot change: an earlier run may have
// received other addresses than those of the source.
func (c *copier) keepAddresses(ctx context.Context, t *task, live []byte) error {
	if t.Resource != "services" {
		return nil
	}
	done, err := c.look(ctx, live)
	if err != nil {
		return err
	}
	defer done()
	there, err := decode(live)
	if err != nil {
		return err
	}
	has, _ := there["spec"].(map[string]any)
	spec, _ := t.object["spec"].(map[string]any)
	if !isAddress(spec["clusterIP"]) || !isAddress(has["clusterIP"]) {
		return nil
	}
	if !reflect.DeepEqual(spec["clusterIPs"], has["clusterIPs"]) {
		c.report.note(t, fmt.Sprintf("has another address in the target, and keeps it: %v instead of %v", has["clusterIP"], spec["clusterIP"]))
	}
	for _, name := range []string{"clusterIP", "clusterIPs"} {
		spec[name] = has[name]
	}
	return nil
}

// isAddress distinguishes an address from a missing field and from "None".
func isAddress(v any) bool {
	s, _ := v.(string)
	return s != "" && s != "None"
}

// withoutAddresses removes the addresses or ports of a Service that the target refuses, so that the target
// allocates others. ok is false if the refusal has another reason.
func (c *copier) withoutAddresses(t *task, err error) (ok bool) {
	var refused *remote.StatusError
	if t.Resource != "services" || !errors.As(err, &refused) || refused.Code != http.StatusUnprocessableEntity {
		return false
	}
	spec, _ := t.object["spec"].(map[string]any)
	for _, cause := range refused.Causes {
		switch {
		case strings.HasPrefix(cause.Field, "spec.clusterIP") && spec["clusterIP"] != nil && spec["clusterIP"] != "None":
			c.report.note(t, fmt.Sprintf("gets another address: %v is not free: %s", spec["clusterIP"], cause.Message))
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
			ok = true
		case strings.HasSuffix(cause.Field, "odePort"): // nodePort, healthCheckNodePort
			c.report.note(t, fmt.Sprintf("gets other node ports: %s: %s", cause.Field, cause.Message))
			delete(spec, "healthCheckNodePort")
			ports, _ := spec["ports"].([]any)
			for _, p := range ports {
				if p, isMap := p.(map[string]any); isMap {
					delete(p, "nodePort")
				}
			}
			ok = true
		}
	}
	return ok
}
