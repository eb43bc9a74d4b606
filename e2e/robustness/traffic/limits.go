//go:build unix

package traffic

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
)

const (
	limitedNamespace = "limited"
	limited          = "/api/v1/namespaces/" + limitedNamespace
	limitedRange     = limited + "/limitranges/few"
)

func contains(answer []byte, text string) bool { return bytes.Contains(answer, []byte(text)) }

// limitRange has bounds for containers, Pods and claims, and a default, which patches change.
const limitRange = `{"metadata":{"name":"few"},"spec":{"limits":[
{"type":"Container","min":{"cpu":"50m"},"max":{"cpu":"1"},"default":{"cpu":"300m"},"defaultRequest":{"cpu":"100m"},"maxLimitRequestRatio":{"cpu":"4"}},
{"type":"Pod","max":{"cpu":"1500m"}},{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"5Gi"}}]}}`

func limitDefault(cpu string) string {
	return fmt.Sprintf(`[{"op":"replace","path":"/spec/limits/0/default/cpu","value":%q}]`, cpu)
}

// cpus returns a dry run of a Pod with a container for each pair of a request and a limit; one whose pair begins with init is an init
// container, and one without a pair sets nothing.
func cpus(what string, pairs ...string) trial {
	var containers, inits []string
	for i, pair := range pairs {
		pair, init := strings.CutPrefix(pair, "init ")
		resources := ""
		if request, limit, ok := strings.Cut(pair, "/"); ok {
			resources = fmt.Sprintf(`,"resources":{"requests":{"cpu":%q},"limits":{"cpu":%q}}`, request, limit)
		}
		container := fmt.Sprintf(`{"name":"c%d","image":"i"%s}`, i, resources)
		if init {
			inits = append(inits, container)
		} else {
			containers = append(containers, container)
		}
	}
	body := fmt.Sprintf(`{"metadata":{"name":"limited"},"spec":{"automountServiceAccountToken":false,"initContainers":[%s],"containers":[%s]}}`, strings.Join(inits, ","), strings.Join(containers, ","))
	return trial{what: what, method: http.MethodPost, path: limited + "/pods?dryRun=All", contentType: plainJSON, body: body}
}

func claim(what, storage string) trial {
	return trial{what: what, method: http.MethodPost, path: limited + "/persistentvolumeclaims?dryRun=All", contentType: plainJSON,
		body: fmt.Sprintf(`{"metadata":{"name":"limited"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":%q}}}}`, storage)}
}

// limits makes a LimitRange, changes it, and deletes it. Pods and claims beyond its bounds are refused, and Pods that set nothing get its
// default.
func (c *client) limits(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	bare := cpus("a Pod without limits", "")
	there := func() bool { return c.made(ctx, admin, [2]string{limited + "/limitranges", limitRange}) }
	absent := func() bool { return c.unmade(ctx, admin, limitedRange) }
	// The account of Pods comes some time after the namespace.
	if !c.made(ctx, admin, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + limitedNamespace + `"}}`}) || !absent() || !c.made(ctx, admin, [2]string{bare.path, bare.body}) {
		return
	}
	defaulted, former := bare, bare
	defaulted.without, former.without = `"limits":{"cpu":"300m"}`, `"limits":{"cpu":"200m"}`
	beyond := []trial{
		defaulted, cpus("", "600m/2"), cpus("", "100m/100m", "600m/2"), cpus("", "100m/100m", "init 600m/2"), cpus("", "500m/900m", "500m/900m"),
		cpus("", "10m/40m"), cpus("", "100m/900m"), claim("", "10Gi"), claim("", "100Mi"),
	}
	own := cpus("a Pod that keeps its own limits", "100m/400m")
	own.with = `"limits":{"cpu":"400m"}`
	within := []trial{own, cpus("a Pod within its limits", "100m/400m", "init 500m/1"), claim("a claim within its limits", "3Gi")}
	levers := []lever{
		{"beyond a LimitRange", absent, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodPost, limited+"/limitranges", limitRange, http.StatusCreated, http.StatusConflict)
		}, beyond},
		{"with the former default of a LimitRange", func() bool { return there() && c.patched(ctx, admin, limitedRange, limitDefault("300m")) }, func(subject string) bool {
			return c.changePatch(ctx, admin, limitedRange, subject, false, limitDefault("200m"))
		}, []trial{former}},
	}
	c.pulls(ctx, levers, within)
}
