//go:build unix

package traffic

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

const (
	judging       = "/api/v1/namespaces/judging/configmaps"
	params        = judging + "/most"
	judgedPolicy  = policies + "/judged"
	judgedBinding = bindings + "/judged"
	judgedHook    = webhooks + "/judged"
	judgedRules   = `[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE","UPDATE"]}]`

	// Conditions of the policy and of the webhook: one for each way not to be meant by it, in different places.
	byName  = `!object.metadata.name.startsWith('free-')`
	byMark  = `!has(object.metadata.annotations) || !('free' in object.metadata.annotations)`
	never   = `false`
	matches = `"matchConditions":[{"name":"by-name","expression":"` + byName + `"},{"name":"by-mark","expression":"` + byMark + `"}]`

	mutatingPolicies = "/apis/admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicies"
	mutatingBindings = "/apis/admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicybindings"
	mutatingBinding  = `{"metadata":{"name":"judged"},"spec":{"policyName":"judged"}}`

	bindingBody = `{"metadata":{"name":"judged"},"spec":{"policyName":"judged","validationActions":["Deny"],"paramRef":{"namespace":"judging","name":"most","parameterNotFoundAction":"Deny"}}}`
)

var policyBody = `{"metadata":{"name":"judged"},"spec":{"failurePolicy":"Fail","paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"matchConstraints":{` + judged("policy").only() + `,"resourceRules":` + judgedRules + `},` + matches + `,
"variables":[{"name":"n","expression":"has(object.data) && 'n' in object.data ? int(object.data.n) : 0"}],"validations":[{"expression":"variables.n <= int(params.data.most)","reason":"Forbidden"}]}}`

var mutatingBody = `{"metadata":{"name":"judged"},"spec":{"failurePolicy":"Fail","reinvocationPolicy":"Never","matchConstraints":{` + judged("policy").only() + `,"resourceRules":` + judgedRules + `},
"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: \"add\", path: \"/data/changed\", value: \"yes\"}]"}}]}}`

// judged names the namespace of the writes to which a policy or a webhook applies.
type judged string

func (j judged) name() string { return "judged-by-" + string(j) }

func (j judged) path() string { return "/api/v1/namespaces/" + j.name() + "/configmaps" }

func (j judged) only() string {
	return fmt.Sprintf(`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q,"judged":"yes"}}`, j.name())
}

// judgedBody returns a ConfigMap, or a patch of one.
func judgedBody(metadata, n string) string {
	return fmt.Sprintf(`{"metadata":{%s},"data":{"n":%q}}`, metadata, n)
}

func (j judged) create(what, metadata, n string) trial {
	return trial{what: what, method: http.MethodPost, path: j.path() + "?dryRun=All", contentType: plainJSON, body: judgedBody(metadata, n)}
}

func (j judged) patch(metadata, n string) trial {
	return trial{method: http.MethodPatch, path: j.path() + "/kept?dryRun=All", contentType: mergePatch, body: judgedBody(metadata, n)}
}

// make makes the namespace, with an object, while nothing refuses that.
func (j judged) make(ctx context.Context, c, admin *client) bool {
	return c.made(ctx, admin, [2]string{"/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"judged":"yes"}}}`, j.name())}, [2]string{j.path(), judgedBody(`"name":"kept","labels":{"guarded":"yes"}`, "1")})
}

func replaced(path, value string) string {
	return fmt.Sprintf(`[{"op":"replace","path":%q,"value":%q}]`, path, value)
}

// policies has a policy forbid some writes of ConfigMaps, by its parameters, its conditions and its binding, and another one change them.
// Others, which the policy does not mean, are never refused.
func (c *client) policies(ctx context.Context) {
	const most, condition = "/data/most", "/spec/matchConditions/0/expression"
	by, admin := judged("policy"), c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	// strict has the policy forbid what it can.
	strict := func() bool {
		return c.made(ctx, admin, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"judging"}}`}, [2]string{judging, `{"metadata":{"name":"most"},"data":{"most":"3"}}`}, [2]string{policies, policyBody}, [2]string{bindings, bindingBody}) &&
			c.patched(ctx, admin, judgedPolicy, replaced(condition, byName)) && c.patched(ctx, admin, params, replaced(most, "3"))
	}
	tries := []trial{by.create("", `"name":"meant"`, "5"), by.patch("", "7")}
	changed := by.create("", `"name":"meant"`, "1")
	changed.without = `"changed":"yes"`
	levers := []lever{
		{"above the parameter of a policy", func() bool { return strict() && c.patched(ctx, admin, params, replaced(most, "9")) }, func(subject string) bool {
			return c.changePatch(ctx, admin, params, subject, false, replaced(most, "3"))
		}, tries},
		{"of a policy without a binding", func() bool { return strict() && c.unmade(ctx, admin, judgedBinding) }, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodPost, bindings, bindingBody, http.StatusCreated, http.StatusConflict)
		}, tries},
		{"of a policy whose conditions exclude all", func() bool { return strict() && c.patched(ctx, admin, judgedPolicy, replaced(condition, never)) }, func(subject string) bool {
			return c.changePatch(ctx, admin, judgedPolicy, subject, false, replaced(condition, byName))
		}, tries},
		{"without the change of a policy", func() bool {
			// It has changed writes at each server before its binding goes.
			return strict() && c.made(ctx, admin, [2]string{mutatingPolicies, mutatingBody}, [2]string{mutatingBindings, mutatingBinding}) && c.meets(ctx, &changed) && c.unmade(ctx, admin, mutatingBindings+"/judged")
		}, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodPost, mutatingBindings, mutatingBinding, http.StatusCreated, http.StatusConflict)
		}, []trial{changed}},
	}
	free := []trial{
		by.create("a number that a policy allows", `"name":"meant"`, "2"),
		by.create("a name that a condition of a policy excludes", `"name":"free-1"`, "5"),
		by.create("a mark that a condition of a policy excludes", `"name":"meant","annotations":{"free":"yes"}`, "5"),
	}
	if !by.make(ctx, c, admin) {
		return
	}
	c.pulls(ctx, levers, free)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	c.unmade(end, admin, judgedBinding)
	c.unmade(end, admin, mutatingBindings+"/judged")
}

// meets sends a request to every server until it is changed, or for as long as that may take.
func (c *client) meets(ctx context.Context, t *trial) bool {
	for server := range c.c.Len() {
		for began := time.Now(); time.Since(began) < soon && ctx.Err() == nil; c.rest(ctx) {
			if _, answer, err := c.send(ctx, server, t.method, t.path, t.contentType, t.body); err == nil && contains(answer, t.without) {
				break
			}
		}
	}
	return ctx.Err() == nil
}

// conditions has a webhook forbid some writes of ConfigMaps, by its selectors, its conditions and its presence. An object is
// meant by the labels that it has, or had.
func (c *client) conditions(ctx context.Context) {
	const selector, condition = "/webhooks/0/objectSelector/matchLabels/guarded", "/webhooks/0/matchConditions/1/expression"
	server, ca, err := refusing()
	if err != nil {
		c.rec.Stuck("a webhook: " + err.Error())
		return
	}
	defer server.Close()
	by, admin := judged("webhook"), c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	hook := fmt.Sprintf(`{"metadata":{"name":"judged"},"webhooks":[{"name":"judge.rowlock.dev","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":5,"failurePolicy":"Fail",
"clientConfig":{"url":%q,"caBundle":%q},%s,"objectSelector":{"matchLabels":{"guarded":"yes"}},"rules":%s,%s}]}`, server.URL, base64.StdEncoding.EncodeToString(ca), by.only(), judgedRules, matches)
	const label, guarded = "/metadata/labels/judged", `"labels":{"guarded":"yes"}`
	home := "/api/v1/namespaces/" + by.name()
	strict := func() bool {
		return c.made(ctx, admin, [2]string{webhooks, hook}) && c.patched(ctx, admin, judgedHook, replaced(selector, "yes")) && c.patched(ctx, admin, judgedHook, replaced(condition, byMark)) && c.patched(ctx, admin, home, replaced(label, "yes"))
	}
	tries := []trial{by.create("", `"name":"meant",`+guarded, "0"), by.patch("", "2"), by.patch(`"labels":{"guarded":null}`, "1"), by.patch(`"labels":{"guarded":null,"on":"yes"}`, "2")}
	levers := []lever{
		{"of a webhook that selects other objects", func() bool { return strict() && c.patched(ctx, admin, judgedHook, replaced(selector, "no")) }, func(subject string) bool {
			return c.changePatch(ctx, admin, judgedHook, subject, false, replaced(selector, "yes"))
		}, tries},
		{"of a webhook whose conditions exclude all", func() bool { return strict() && c.patched(ctx, admin, judgedHook, replaced(condition, never)) }, func(subject string) bool {
			return c.changePatch(ctx, admin, judgedHook, subject, false, replaced(condition, byMark))
		}, tries},
		{"in a namespace that a webhook does not select", func() bool { return strict() && c.patched(ctx, admin, home, replaced(label, "no")) }, func(subject string) bool {
			return c.changePatch(ctx, admin, home, subject, false, replaced(label, "yes"))
		}, tries},
		{"of a webhook that is gone", func() bool { return strict() && c.unmade(ctx, admin, judgedHook) }, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodPost, webhooks, hook, http.StatusCreated, http.StatusConflict)
		}, tries},
	}
	free := []trial{
		by.create("an object that a webhook does not select", `"name":"meant"`, "0"),
		by.create("a name that a condition of a webhook excludes", `"name":"free-2",`+guarded, "0"),
		by.create("a mark that a condition of a webhook excludes", `"name":"meant","annotations":{"free":"yes"},`+guarded, "0"),
	}
	// One of an earlier round has another address.
	if !c.unmade(ctx, admin, judgedHook) || !by.make(ctx, c, admin) {
		return
	}
	c.pulls(ctx, levers, free)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	c.unmade(end, admin, judgedHook)
}
