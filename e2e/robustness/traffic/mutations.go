//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
)

// mutations checks that a mutating policy changes ConfigMaps as its conditions, mutation, parameters and binding say, and no other ones.
func (c *client) mutations(ctx context.Context) {
	const (
		name      = "mutating"
		param     = judging + "/value"
		policy    = mutatingPolicies + "/" + name
		binding   = mutatingBindings + "/" + name
		condition = "/spec/matchConditions/0/expression"
		mutation  = "/spec/mutations/0/jsonPatch/expression"
		adds      = `[JSONPatch{op: "add", path: "/data/by", value: "policy"}, JSONPatch{op: "add", path: "/data/value", value: params.data.value}]`
		addsOther = `[JSONPatch{op: "add", path: "/data/by", value: "other"}, JSONPatch{op: "add", path: "/data/value", value: params.data.value}]`
	)
	by, admin := judged("mutation"), c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	policyBody := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"failurePolicy":"Fail","reinvocationPolicy":"Never","paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"matchConstraints":{%s,"resourceRules":%s},%s,
"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":%q}}]}}`, name, by.only(), judgedRules, matches, adds)
	bindingBody := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%[1]q,"paramRef":{"namespace":"judging","name":"value","parameterNotFoundAction":"Deny"}}}`, name)
	bound := func() bool {
		return c.made(ctx, admin, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"judging"}}`}, [2]string{judging, `{"metadata":{"name":"value"},"data":{"value":"first"}}`}, [2]string{mutatingPolicies, policyBody}, [2]string{mutatingBindings, bindingBody}) &&
			c.patched(ctx, admin, policy, replaced(condition, byName)) && c.patched(ctx, admin, policy, replaced(mutation, adds)) && c.patched(ctx, admin, param, replaced("/data/value", "first"))
	}
	create := func(with string) []trial {
		t := by.create("", `"name":"meant"`, "1")
		t.with = with
		return []trial{t}
	}
	const done, first = `"by":"policy"`, `"value":"first"`
	unmeant := func(what, metadata string) trial {
		t := by.create(what, metadata, "1")
		t.without = `"by":"`
		return t
	}
	levers := []lever{
		{"as a policy that is no longer bound changes it", bound, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodDelete, binding, "", http.StatusOK, http.StatusNotFound)
		}, create(done)},
		{"as the former parameter of a policy has it", bound, func(subject string) bool {
			return c.changePatch(ctx, admin, param, subject, false, replaced("/data/value", "second"))
		}, create(first)},
		{"as a policy changes it whose conditions exclude all", bound, func(subject string) bool {
			return c.changePatch(ctx, admin, policy, subject, false, replaced(condition, never))
		}, create(done)},
		{"as the former mutation of a policy has it", bound, func(subject string) bool {
			return c.changePatch(ctx, admin, policy, subject, false, replaced(mutation, addsOther))
		}, create(done)},
		{"as a policy that is gone changes it", bound, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodDelete, policy, "", http.StatusOK, http.StatusNotFound)
		}, create(done)},
	}
	free := []trial{
		unmeant("a name that a condition of a mutating policy excludes", `"name":"free-1"`),
		unmeant("a mark that a condition of a mutating policy excludes", `"name":"meant","annotations":{"free":"yes"}`),
	}
	if !by.make(ctx, c, admin) {
		return
	}
	c.pulls(ctx, levers, free)
	c.tidy(ctx, binding, policy)
}
