//go:build unix

package traffic

import (
	"context"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

const (
	ruledClaims = "/apis/resource.k8s.io/v1/namespaces/" + ruledNamespace + "/resourceclaims"
	ruledGroups = "/apis/scheduling.k8s.io/v1alpha2/namespaces/" + ruledNamespace + "/podgroups"
	fixedClass  = "/apis/storage.k8s.io/v1/volumeattributesclasses"
	oneDevice   = `"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}`
	toClimber   = `"subjects":[{"kind":"ServiceAccount","name":"climber","namespace":"` + ruledNamespace + `"}]`
)

// laterRule is a rule that servers enforce from a release on.
type laterRule struct {
	since cluster.Release
	rule
}

// laterSetup lists the objects that these rules need, in addition to rulesSetup.
var laterSetup = []struct {
	since cluster.Release
	made  [2]string
}{
	{34, [2]string{ruledClaims, `{"metadata":{"name":"fixed"},` + oneDevice + `}`}},
	{34, [2]string{fixedClass, `{"metadata":{"name":"fixed"},"driverName":"robust.rowlock.dev","parameters":{"a":"b"}}`}},
	{36, [2]string{ruledGroups, `{"metadata":{"name":"fixed"},"spec":{"schedulingPolicy":{"basic":{}}}}`}},
	{36, [2]string{ruledRoles + "/roles", `{"metadata":{"name":"claims"},"rules":[{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims/status"],"verbs":["patch","update"]}]}`}},
	{36, [2]string{ruledRoles + "/rolebindings", `{"metadata":{"name":"claims"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"claims"},` + toClimber + `}`}},
}

var laterRules = []laterRule{
	{33, rule{what: "another owner of an IPAddress", method: http.MethodPatch, path: ipAddresses + "/10.96.0.1?dryRun=All", contentType: mergePatch, body: `{"spec":{"parentRef":{"name":"other"}}}`, code: 422}},
	{33, rule{what: "an IPAddress whose name is no address", method: http.MethodPost, path: ipAddresses + "?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"10.96.0.300"},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"}}}`, code: 422}},
	{33, rule{what: "other networks of a ServiceCIDR", method: http.MethodPatch, path: serviceCIDRs + "/kubernetes?dryRun=All", contentType: mergePatch, body: `{"spec":{"cidrs":["10.98.0.0/24"]}}`, code: 422}},
	{33, rule{what: "a resize that changes the class of service of a Pod", method: http.MethodPatch, path: ruled + "/pods/fixed/resize?dryRun=All", contentType: strategicPatch, body: `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`, code: 422}},
	{34, rule{what: "a token for an account with another UID", method: http.MethodPost, path: ruled + "/serviceaccounts/climber/token", contentType: plainJSON, body: `{"metadata":{"uid":"00000000-0000-4000-8000-000000000000"},"spec":{"expirationSeconds":600}}`, code: 409}},
	{34, rule{what: "another spec of a ResourceClaim", method: http.MethodPatch, path: ruledClaims + "/fixed?dryRun=All", contentType: mergePatch, body: `{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"other"}}]}}}`, code: 422}},
	{34, rule{what: "a ResourceClaim of an administrator in a namespace that is not for these", method: http.MethodPost, path: ruledClaims + "?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"wrong"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","adminAccess":true}}]}}}`, code: 422}},
	{34, rule{what: "a ResourceClaim that is reserved and not allocated", method: http.MethodPatch, path: ruledClaims + "/fixed/status?dryRun=All", contentType: mergePatch, body: `{"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}}`, code: 422}},
	{34, rule{what: "other parameters of a VolumeAttributesClass", method: http.MethodPatch, path: fixedClass + "/fixed?dryRun=All", contentType: mergePatch, body: `{"parameters":{"a":"c"}}`, code: 422}},
	{34, rule{what: "a ResourceSlice of another node", as: agent, groups: agents, method: http.MethodPost, path: "/apis/resource.k8s.io/v1/resourceslices?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"other"},"spec":{"driver":"robust.rowlock.dev","pool":{"name":"p","generation":1,"resourceSliceCount":1},"nodeName":"other","devices":[]}}`, code: 403}},
	{36, rule{what: "an allocation by a user who may not bind claims", as: climber, method: http.MethodPatch, path: ruledClaims + "/fixed/status?dryRun=All", contentType: mergePatch, body: `{"status":{"allocation":{}}}`, code: 422}},
	{36, rule{what: "another policy of a PodGroup", method: http.MethodPatch, path: ruledGroups + "/fixed?dryRun=All", contentType: mergePatch, body: `{"spec":{"schedulingPolicy":{"basic":null,"gang":{"minCount":2}}}}`, code: 422}},
}

// breaksLater tries to break each rule of the release in turn at every server.
func (c *client) breaksLater(ctx context.Context) {
	setup := rulesSetup
	for _, s := range laterSetup {
		if c.release >= s.since {
			setup = append(setup[:len(setup):len(setup)], s.made)
		}
	}
	if !c.made(ctx, c, setup...) {
		return
	}
	for n := c.rand.IntN(len(laterRules)); ctx.Err() == nil; n++ {
		if r := &laterRules[n%len(laterRules)]; c.release >= r.since {
			c.rule(ctx, &r.rule)
			c.rest(ctx)
		}
	}
}
