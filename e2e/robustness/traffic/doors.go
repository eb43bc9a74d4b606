//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
)

const doorsGroup = "doors.rowlock.dev"

// aggregatedDiscovery asks for all groups with their resources in one document.
const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// doors changes a definition: a default and a rule of its schema, a column, a field that selects, and which versions are served. Discovery
// and the OpenAPI documents follow, also for a client that has an earlier document and asks only for a newer one.
func (c *client) doors(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	c.loose = true
	const (
		path     = definitions + "/doors." + doorsGroup
		objects  = "/apis/" + doorsGroup + "/v1/doors"
		first    = "/spec/versions/0"
		color    = first + "/schema/openAPIV3Schema/properties/spec/properties/color/default"
		rule     = first + "/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule"
		column   = first + "/additionalPrinterColumns/0/name"
		anything = "self.width >= 0"
		schema   = `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"` + anything + `"}],"properties":{"color":{"type":"string","default":"red"},"width":{"type":"integer"}}}}}}`
		byColor  = first + "/selectableFields"
		columns  = `"additionalPrinterColumns":[{"name":"Color","type":"string","jsonPath":".spec.color"}]`
		body     = `{"metadata":{"name":"doors.` + doorsGroup + `"},"spec":{"group":"` + doorsGroup + `","scope":"Cluster","names":{"plural":"doors","singular":"door","kind":"Door","listKind":"DoorList"},
"versions":[{"name":"v1","served":true,"storage":true,` + schema + `,` + columns + `},{"name":"v2","served":true,"storage":false,` + schema + `}]}}`
	)
	if !c.made(ctx, admin, [2]string{definitions, body}, [2]string{objects, `{"apiVersion":"` + doorsGroup + `/v1","kind":"Door","metadata":{"name":"kept"},"spec":{"color":"green","width":1}}`}) {
		return
	}
	create := func(what, width string) trial {
		return trial{what: what, method: http.MethodPost, path: objects + "?dryRun=All", contentType: plainJSON, body: fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Door","metadata":{"name":"door"},"spec":{"width":%s}}`, doorsGroup, width)}
	}
	get := func(path, with string) trial { return trial{method: http.MethodGet, path: path, with: with} }
	tagged := func(t trial, accept string) trial {
		t.tagged, t.accept = true, accept
		return t
	}
	// between has a field of the definition have a value, and then another one.
	between := func(what, field, permitted, forbidden string, tries ...trial) lever {
		return lever{what, func() bool { return c.patched(ctx, admin, path, replaced(field, permitted)) }, func(subject string) bool {
			return c.changePatch(ctx, admin, path, subject, false, replaced(field, forbidden))
		}, tries}
	}
	served := func(on bool) string {
		return fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/1/served","value":%v}]`, on)
	}
	red := create("", "1")
	red.with = `"color":"red"`
	c.pulls(ctx, []lever{
		between("of the former default of a schema", color, "red", "blue", red, tagged(get("/openapi/v3/apis/"+doorsGroup+"/v1", `"default":"red"`), "")),
		between("that a rule of a schema forbids", rule, anything, "self.width < 5", create("", "7")),
		{"of a version that is not served", func() bool { return c.patched(ctx, admin, path, served(true)) }, func(subject string) bool {
			return c.changePatch(ctx, admin, path, subject, false, served(false))
		}, []trial{get("/apis/"+doorsGroup+"/v2", ""), get("/apis", `"groupVersion":"`+doorsGroup+`/v2"`), get("/openapi/v3", `"apis/`+doorsGroup+`/v2"`),
			tagged(get("/apis", `"group":"`+doorsGroup+`","version":"v2"`), aggregatedDiscovery), get("/apis/"+doorsGroup+"/v2/doors", "")}},
		{"by a field that selects no more", func() bool {
			return c.patched(ctx, admin, path, fmt.Sprintf(`[{"op":"add","path":%q,"value":[{"jsonPath":".spec.color"}]}]`, byColor))
		}, func(subject string) bool {
			return c.changePatch(ctx, admin, path, subject, false, fmt.Sprintf(`[{"op":"add","path":%q,"value":[]}]`, byColor))
		}, []trial{get(objects+"?fieldSelector=spec.color%3Dgreen", `"name":"kept"`)}},
		between("of a column that has another name", column, "Color", "Colour", trial{method: http.MethodGet, path: objects, with: `"name":"Color"`, table: true}),
	}, []trial{create("a width that each rule of a schema allows", "2")})
}
