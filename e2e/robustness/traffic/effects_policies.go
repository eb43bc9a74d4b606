//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
)

// effectPolicy returns a policy for creates in the namespace defaulted, and its binding. Conditions are of the form of matchConditions.
func effectPolicy(name, resource, more, match, expression, binding string) [][2]string {
	group := ""
	if resource == widgets.plural {
		group = "robust.rowlock.dev"
	}
	return [][2]string{
		{policies, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"failurePolicy":"Fail",%s"matchConstraints":{%s"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"defaulted"}},
"resourceRules":[{"apiGroups":[%q],"apiVersions":["v1"],"resources":[%q],"operations":["CREATE"]}]},"validations":[{"expression":%q,"message":"as %[1]s has it"}]}}`, name, more, match, group, resource, expression)},
		{bindings, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%[1]q,%s}}`, name, binding)},
	}
}

// effectPolicies are the policies that effects need: for a resource in one of its versions or in each, with a warning in place of a
// refusal, without the object of their parameters, and by what expressions can see.
func effectPolicies() (all [][2]string) {
	const deny, named = `"validationActions":["Deny"]`, `object.metadata.name != `
	for _, made := range [][][2]string{
		effectPolicy("effect-equivalent", widgets.plural, "", "", named+`'equivalent'`, deny),
		effectPolicy("effect-exact", widgets.plural, "", `"matchPolicy":"Exact",`, named+`'exact'`, deny),
		effectPolicy("effect-warning", "configmaps", "", "", named+`'warned'`, `"validationActions":["Warn"]`),
		effectPolicy("effect-unset", "podtemplates", `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},`, "", "true",
			deny+`,"paramRef":{"name":"nowhere","namespace":"defaulted","parameterNotFoundAction":"Deny"}`),
		effectPolicy("effect-sees", "configmaps", "", "", named+`'seen' || namespaceObject.metadata.name == 'defaulted' && oldObject == null && request.operation == 'CREATE' && request.dryRun`+
			` && request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups && authorizer.group('').resource('secrets').namespace('defaulted').check('get').allowed()`, deny),
	} {
		all = append(all, made...)
	}
	return all
}

// madeWidget is a create of a custom resource in a version.
func madeWidget(what, version, name string, code int) effect {
	k := inVersion(widgets, version)
	return effect{what: what, method: http.MethodPost, path: k.path("defaulted", "") + "?dryRun=All", contentType: plainJSON, code: code, body: fmt.Sprintf(`{"apiVersion":%q,"kind":"Widget","metadata":{"name":%q}}`, k.apiVersion, name)}
}

// policyEffects are the effects of these policies.
var policyEffects = []effect{
	madeWidget("a write that a policy forbids", "v1", "equivalent", http.StatusUnprocessableEntity),
	madeWidget("a write in another version that a policy forbids", "v2", "equivalent", http.StatusUnprocessableEntity),
	madeWidget("a write that a policy for exactly its version forbids", "v1", "exact", http.StatusUnprocessableEntity),
	madeWidget("a write in another version than a policy is for", "v2", "exact", 0),
	dry("the warning of a policy", defaulted+"/configmaps", `{"metadata":{"name":"warned"}}`, "Validation failed for ValidatingAdmissionPolicy 'effect-warning'", "as effect-warning has it"),
	{what: "a write under a policy that lacks its parameters", method: http.MethodPost, path: defaulted + "/podtemplates?dryRun=All", contentType: plainJSON, body: oneTemplateBody, code: http.StatusUnprocessableEntity},
	dry("what the expressions of a policy see", defaulted+"/configmaps", `{"metadata":{"name":"seen"}}`),
}

// aged is an object that is stored before its schema gets a default, which reads must show, and a bound, which its content exceeds: writes
// that leave that as it is must be done.
const aged = agingPath + "v2/antiques/aged"

var agedEffects = []effect{
	{what: "a default of an object that was stored without it", method: http.MethodGet, path: aged, with: []string{`"color":"brown"`, `"years":90`}},
	{what: "a default in a list", method: http.MethodGet, path: agingPath + "v2/antiques?fieldSelector=metadata.name%3Daged", with: []string{`"color":"brown"`}},
	{what: "a write that leaves what a schema no longer allows", method: http.MethodPatch, path: aged + "?dryRun=All", contentType: mergePatch, body: `{"metadata":{"labels":{"a":"b"}}}`, with: []string{`"years":90`}},
	{what: "a write of what a schema no longer allows", method: http.MethodPatch, path: aged + "?dryRun=All", contentType: mergePatch, body: `{"spec":{"years":91}}`, code: http.StatusUnprocessableEntity},
}

// age makes the object, and then changes its schema.
func (c *client) age(ctx context.Context) bool {
	const definition = definitions + "/antiques.aging.rowlock.dev"
	schema := func(color, years string) string {
		return `[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties","value":{"spec":{"type":"object","properties":{"color":{"type":"string"` + color + `},"years":{"type":"integer"` + years + `}}}}}]`
	}
	return c.patched(ctx, c, definition, schema("", "")) &&
		c.made(ctx, c, [2]string{agingPath + "v2/antiques", `{"apiVersion":"aging.rowlock.dev/v2","kind":"Antique","metadata":{"name":"aged"}}`}) &&
		c.persist(ctx, "PATCH "+aged+" until it has its age", func(ctx context.Context, server int) (int, bool) {
			code, answer, err := c.send(ctx, server, http.MethodPatch, aged, mergePatch, `{"spec":{"years":90}}`)
			if err != nil {
				return 0, false
			}
			return code, code == http.StatusOK && contains(answer, `"years":90`)
		}) && c.patched(ctx, c, definition, schema(`,"default":"brown"`, `,"maximum":50`))
}
