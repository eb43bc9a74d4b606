package quotas

import (
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/claims"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
)

// TestQuotasAfterUpdates: a quota is counted when an update takes an object out of its scope, or makes it smaller, and not
// when the update does neither.
func TestQuotasAfterUpdates(t *testing.T) {
	pod := func(spec, status string) string {
		return `{"spec":{` + spec + `"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}]},"status":{"phase":"Running"` + status + `}}`
	}
	has := func(cpu string) string {
		return `,"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"` + cpu + `"}}}]`
	}
	sidecar := func(cpu string) string {
		return `"initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"` + cpu + `"}}}],`
	}
	claim := func(class, status string) string {
		return `{"spec":{"volumeAttributesClassName":"` + class + `"},"status":{` + status + `}}`
	}
	inGold := `{"spec":{"hard":{"persistentvolumeclaims":"5"},"scopeSelector":{"matchExpressions":[{"scopeName":"VolumeAttributesClass","operator":"In","values":["gold"]}]}}}`
	for name, c := range map[string]struct{ storage, quota, before, after, of, first, then string }{
		"a deadline": {"pods", `{"spec":{"hard":{"pods":"5"},"scopes":["NotTerminating"]}}`, pod("", ""), pod(`"activeDeadlineSeconds":60,`, ""), "pods", "1", "0"},
		"a resize":   {"pods", limit("requests.cpu", "5"), pod("", has("400m")), pod("", has("100m")), "requests.cpu", "400m", "100m"},
		"infeasible": {
			"pods", limit("requests.cpu", "5"), pod("", has("50m")), pod("", has("50m")+`,"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}]`),
			"requests.cpu", "100m", "50m",
		},
		"a sidecar":       {"pods", limit("requests.cpu", "5"), pod(sidecar("400m"), ""), pod(sidecar("100m"), ""), "requests.cpu", "500m", "200m"},
		"the pod":         {"pods", limit("requests.cpu", "5"), pod(`"resources":{"requests":{"cpu":"2"}},`, ""), pod(`"resources":{"requests":{"cpu":"1"}},`, ""), "requests.cpu", "2", "1"},
		"the same size":   {"pods", limit("requests.cpu", "5"), pod("", ""), pod("", has("100m")), "requests.cpu", "100m", ""},
		"another class":   {claims.Storage, inGold, claim("silver", `"currentVolumeAttributesClassName":"gold"`), claim("silver", `"currentVolumeAttributesClassName":"silver"`), "persistentvolumeclaims", "1", "0"},
		"no longer a way": {claims.Storage, inGold, claim("silver", `"modifyVolumeStatus":{"targetVolumeAttributesClassName":"gold","status":"Pending"}`), claim("silver", ""), "persistentvolumeclaims", "1", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
				w.Set(c.storage, "a", "x", c.before)
				w.Set(quotasStorage, "a", "q", c.quota)
				controllertest.Advance(10 * time.Second)
				uses(w, "a", "q", c.of, c.first)
				if c.then == "" { // a count would find this
					c.then = "4"
					charge(w, "a", "q", c.of, c.then)
					controllertest.Advance(10 * time.Second)
				}
				w.Set(c.storage, "a", "x", c.after)
				controllertest.Advance(10 * time.Second)
				uses(w, "a", "q", c.of, c.then)
			}, runQuotas(0))
		})
	}
}
