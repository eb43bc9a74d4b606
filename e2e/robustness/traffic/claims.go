//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
)

// claimVersions are the served versions of ResourceClaims. v1beta1 has in a request itself what the others have in its part "exactly".
var claimVersions = []string{"v1", "v1beta1", "v1beta2"}

// claims creates ResourceClaims, allocates a device to each, and deletes them, in any version. All versions must show the same.
func (c *client) claims(ctx context.Context) {
	for ctx.Err() == nil && c.claimed(ctx, "claim-"+c.rec.ID()) {
	}
}

// claimed does that with one ResourceClaim.
func (c *client) claimed(ctx context.Context, name string) bool {
	path := func() (version, collection string) {
		version = claimVersions[c.rand.IntN(len(claimVersions))]
		return version, "/apis/resource.k8s.io/" + version + "/namespaces/" + narrowNamespace + "/resourceclaims"
	}
	look := func(want func(version string, o object) string) {
		version, collection := path()
		c.inspect(ctx, "reads", "the ResourceClaim "+name+" in "+version, collection+"/"+name, func(o object) string { return want(version, o) })
	}
	class, count := "class-"+c.rec.ID(), 1+c.rand.IntN(5)
	exact := fmt.Sprintf(`"deviceClassName":%q,"allocationMode":"ExactCount","count":%d`, class, count)
	silent := c.silent
	version, collection := path()
	defer c.tidy(ctx, collection+"/"+name)
	request := `"exactly":{` + exact + `}`
	if version == "v1beta1" {
		request = exact
	}
	if !c.made(ctx, c, [2]string{collection, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"devices":{"requests":[{"name":"r",%s}]}}}`, name, request)}) {
		return false
	}
	device := ""
	same := func(version string, o object) string {
		if o == nil {
			return "it is gone"
		}
		requests, _ := o.at("spec", "devices", "requests").([]any)
		results, _ := o.at("status", "allocation", "devices", "results").([]any)
		part, has := object{}, ""
		if len(requests) == 1 {
			part, _ = requests[0].(map[string]any)
		}
		if len(results) == 1 {
			result, _ := results[0].(map[string]any)
			has = object(result).text("device")
		}
		if version != "v1beta1" {
			part, _ = part.at("exactly").(map[string]any)
		}
		if n, _ := part.at("count").(float64); part.text("deviceClassName") != class || int(n) != count || has != device {
			return fmt.Sprintf("it requests %v and has the device %q, and must have %d of %s and the device %q", part, has, count, class, device)
		}
		return ""
	}
	look(same)
	allocation := func(device string) string {
		return fmt.Sprintf(`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"robust.rowlock.dev","pool":"p","device":%q}]}}}}`, device)
	}
	_, collection = path()
	allocated := c.rec.ID()
	if !c.mustPatch(ctx, collection+"/"+name+"/status", allocation(allocated), http.StatusOK) {
		return false
	}
	device = allocated
	for range 3 {
		c.rest(ctx)
		look(same)
		_, collection = path()
		c.rule(ctx, &rule{what: "another device of a ResourceClaim", method: http.MethodPatch, path: collection + "/" + name + "/status", contentType: mergePatch, body: allocation(c.rec.ID()), code: http.StatusUnprocessableEntity})
	}
	if ok := c.unmade(ctx, c, collection+"/"+name); !ok || c.silent != silent { // the server may execute an unanswered request later
		return ok
	}
	look(func(_ string, o object) string {
		if o != nil {
			return "it is still there"
		}
		return ""
	})
	return true
}
