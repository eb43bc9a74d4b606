package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

// mutators is a cluster whose policies change objects.
type mutators struct {
	*cluster
	chain *admission.Chain
}

func newMutators(t testing.TB, served bool) *mutators {
	resources := builtin.Resources()
	if served {
		if _, err := kinds.Enable(release.Default, resources, map[string]string{"api/alpha": "true"}, true, func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{t: t, catalogue: kinds.NewCatalogue(resources)}
	c.cache = cache.New(c.catalogue)
	m := &mutators{c, admission.NewChain(policy.NewMutating(policy.Config{
		Cluster: criteria.Cluster{Namespaces: c, Equivalents: criteria.NewEquivalents(c.catalogue)}, Catalogue: c.catalogue,
		Schemas: schema.New(c.catalogue), Cache: c.cache, Objects: objects.New(c.catalogue, nil, c.cache), Authorizer: c,
	}))}
	c.set("namespaces", "", "ns", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","labels":{"team":"a"}}}`)
	return m
}

// configMaps are the rules of most policies here.
const configMaps = `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["*"],"resources":["configmaps","pods"]}]},`

// policy stores a policy with a binding.
func (m *mutators) policy(name, spec, binding string) {
	const head = `{"apiVersion":"admissionregistration.k8s.io/v1alpha1","kind":"MutatingAdmissionPolicy%s","metadata":{"name":%q},"spec":{%s}}`
	m.set("mutatingadmissionpolicies.admissionregistration.k8s.io", "", name, fmt.Sprintf(head, "", name, spec))
	m.set("mutatingadmissionpolicybindings.admissionregistration.k8s.io", "", name, fmt.Sprintf(head, "Binding", name, fmt.Sprintf(`"policyName":%q%s`, name, binding)))
}

func (m *mutators) admit(ctx context.Context, op admission.Operation, r *kinds.Resource, obj, old runtime.Object) error {
	return m.chain.Admit(ctx, &admission.Attributes{
		Operation: op, Resource: r, Namespace: "ns", Name: "a", Object: obj, Old: old, Options: &metav1.CreateOptions{},
		User: &authx.Identity{Name: "paula"}, Warn: func(string) {}, Annotate: func(string, string) {},
	})
}

// change returns a ConfigMap with k: v after its mutation, as JSON without the kind, or the error.
func (m *mutators) change(ctx context.Context) (string, error) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Data: map[string]string{"k": "v"}}
	if err := m.admit(ctx, admission.Create, m.catalogue.Lookup("", "v1", "configmaps"), obj, nil); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"labels": obj.Labels, "data": obj.Data})
	return string(data), err
}

// apply and patch are mutations.
func apply(text string) string {
	return fmt.Sprintf(`{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":%q}}`, text)
}

func patch(text string) string {
	return fmt.Sprintf(`{"patchType":"JSONPatch","jsonPatch":{"expression":%q}}`, text)
}

func mutations(list ...string) string { return `"mutations":[` + strings.Join(list, ",") + `]` }

func TestMutations(t *testing.T) {
	const failed = "policy 'p' with binding 'p' denied request: "
	huge := `[JSONPatch{op: "add", path: "/data/x", value: [["xxxxxxxxxx"]]` + strings.Repeat(`.map(x, x + x)`, 19) + `[0]}]`
	for name, c := range map[string]struct{ spec, binding, want string }{
		"apply":                {spec: mutations(apply(`Object{data: {"a": "b"}}`)), want: `{"data":{"a":"b","k":"v"},"labels":null}`},
		"patch":                {spec: mutations(patch(`[JSONPatch{op: "replace", path: "/data/k", value: "w"}]`)), want: `{"data":{"k":"w"},"labels":null}`},
		"one after the other":  {spec: mutations(apply(`Object{data: {"a": "b"}}`), apply(`Object{data: {"c": string(object.data.a) + "d"}}`)), want: `{"data":{"a":"b","c":"bd","k":"v"},"labels":null}`},
		"a test that fails":    {spec: mutations(patch(`[JSONPatch{op: "test", path: "/data/k", value: "w"}, JSONPatch{op: "remove", path: "/data/k"}]`)), want: `{"data":{"k":"v"},"labels":null}`},
		"nothing":              {spec: mutations(apply(`Object{}`), patch(`false ? [JSONPatch{}] : []`)), want: `{"data":{"k":"v"},"labels":null}`},
		"all that is known":    {spec: `"variables":[{"name":"n","expression":"object.data.size() + 1"}],` + mutations(apply(`Object{data: {"n": string(variables.n), "t": string(namespaceObject.metadata.labels.team), "u": request.userInfo.username, "o": string(oldObject == null), "r": string(authorizer.requestResource.check("get").allowed())}}`)), want: `{"data":{"k":"v","n":"2","o":"true","r":"true","t":"a","u":"paula"},"labels":null}`},
		"a condition":          {spec: `"matchConditions":[{"name":"c","expression":"object.data.k != 'v'"}],` + mutations(apply(`Object{data: {"a": "b"}}`)), want: `{"data":{"k":"v"},"labels":null}`},
		"a condition fails":    {spec: `"matchConditions":[{"name":"c","expression":"object.data.x != 'v'"}],` + mutations(apply(`Object{}`)), want: failed + "expression 'object.data.x != 'v'' resulted in error: no such key: x"},
		"narrowed":             {spec: mutations(apply(`Object{data: {"a": "b"}}`)), binding: `,"matchResources":{"objectSelector":{"matchLabels":{"x":"y"}}}`, want: `{"data":{"k":"v"},"labels":null}`},
		"parameters":           {spec: `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},` + mutations(apply(`Object{data: {"p": string(params.data.v), "n": string(object.data[?"p"].orValue("none"))}}`)), binding: `,"paramRef":{"selector":{},"parameterNotFoundAction":"Deny"}`, want: `{"data":{"k":"v","n":"1","p":"2"},"labels":null}`},
		"no parameters":        {spec: `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},` + mutations(apply(`Object{}`)), binding: `,"paramRef":{"name":"none","parameterNotFoundAction":"Deny"}`, want: failed + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		"no such kind":         {spec: `"paramKind":{"apiVersion":"x/v1","kind":"X"},` + mutations(apply(`Object{}`)), want: `policy "p" denied request: failed to configure policy: failed to find resource referenced by paramKind: 'x/v1, Kind=X'`},
		"an unknown field":     {spec: mutations(apply(`Object{nope: "x"}`)), want: failed + "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema"},
		"an unknown name":      {spec: mutations(patch(`[JSONPatch{op: "add", path: "/nope", value: 1}]`)), want: `Internal error occurred: strict decoding error: unknown field "nope"`},
		"another kind":         {spec: mutations(patch(`[JSONPatch{op: "replace", path: "/kind", value: "Secret"}]`)), want: "Internal error occurred: a mutating policy made the object a /v1, Kind=Secret"},
		"the wrong place":      {spec: mutations(apply(`Object{metadata: Object.spec{}}`)), want: failed + `type mismatch: unexpected type name "Object.spec", expected "Object.metadata"`},
		"a patch that fails":   {spec: mutations(patch(`[JSONPatch{op: "remove", path: "/data/x"}]`)), want: failed + "JSON Patch: error in remove for path: '/data/x': Unable to remove nonexistent key: x: missing value"},
		"does not compile":     {spec: mutations(apply(`Object{`)), want: failed + "compilation failed: ERROR: <input>:1:8: Syntax error"},
		"failures are ignored": {spec: `"failurePolicy":"Ignore",` + mutations(apply(`Object{data: {"a": object.data.x + ""}}`), patch(huge), apply(`Object{data: {"a": "b"}}`)), want: `{"data":{"a":"b","k":"v"},"labels":null}`},
		"too costly":           {spec: mutations(apply(`Object{data: {"a": string(lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, z >= 0))))}}`)), want: failed},
		"too large":            {spec: mutations(patch(huge)), want: failed + "JSONPath valueExpression evaluated to a type that could not marshal to JSON: the expression makes more than 3145728 bytes"},
		"grown too large":      {spec: mutations(patch(`[JSONPatch{op: "add", path: "/data/x", value: (["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]` + strings.Repeat(`.map(x, x + x)`, 16) + `)[0]}, JSONPatch{op: "copy", from: "/data/x", path: "/data/y"}]`)), want: failed + "the object would have 4194"},
	} {
		m := newMutators(t, true)
		m.set("configmaps", "ns", "one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"ns"},"data":{"v":"1"}}`)
		m.set("configmaps", "ns", "two", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two","namespace":"ns"},"data":{"v":"2"}}`)
		m.policy("p", configMaps+c.spec, c.binding)
		got, err := m.change(context.Background())
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if st, ok := errors.AsType[*apierrors.StatusError](err); ok && st.ErrStatus.Code != http.StatusForbidden && st.ErrStatus.Code != http.StatusInternalServerError {
			t.Errorf("%s: code %d", name, st.ErrStatus.Code)
		}
	}
}

// TestWholesAreRefused: an apply configuration cannot replace what does not merge.
func TestWholesAreRefused(t *testing.T) {
	m := newMutators(t, true)
	m.policy("p", configMaps+mutations(apply(`Object{spec: Object.spec{nodeSelector: {"a": "b"}, tolerations: [Object.spec.tolerations{key: "k"}]}}`)), "")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}
	err := m.admit(context.Background(), admission.Create, m.catalogue.Lookup("", "v1", "pods"), pod, nil)
	const want = "policy 'p' with binding 'p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector, .spec.tolerations"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestDefaultsAfterMutations: additions of a policy get defaults as if a client had sent them.
func TestDefaultsAfterMutations(t *testing.T) {
	m := newMutators(t, true)
	m.policy("p", configMaps+mutations(apply(`Object{spec: Object.spec{containers: [Object.spec.containers{name: "side", image: "i:1"}]}}`)), "")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if err := m.admit(context.Background(), admission.Create, m.catalogue.Lookup("", "v1", "pods"), pod, nil); err != nil {
		t.Fatal(err)
	}
	if list := pod.Spec.Containers; len(list) != 2 || list[1].Name != "side" || list[1].ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("%+v", list)
	}
}

// TestAgain: a policy sees an object again that was changed behind it, once, if it wants to.
func TestAgain(t *testing.T) {
	count := patch(`[JSONPatch{op: "add", path: "/data/@", value: string(int(object.data[?"@"].orValue("0")) + 1)}]`)
	for again, want := range map[string]string{
		`"IfNeeded"`: `{"data":{"a":"2","b":"1","k":"v"},"labels":null}`,
		`"Never"`:    `{"data":{"a":"1","b":"1","k":"v"},"labels":null}`,
	} {
		m := newMutators(t, true)
		m.policy("a", configMaps+`"reinvocationPolicy":`+again+`,`+mutations(strings.ReplaceAll(count, "@", "a")), "")
		m.policy("b", configMaps+`"reinvocationPolicy":"Never",`+mutations(strings.ReplaceAll(count, "@", "b")), "")
		if got, err := m.change(context.Background()); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", again, got, err, want)
		}
	}
}

// TestEquivalentVersion: a policy sees, and changes, the version that its rules name.
func TestEquivalentVersion(t *testing.T) {
	m := newMutators(t, true)
	m.policy("p", `"matchConstraints":{"matchPolicy":"Equivalent","resourceRules":[{"apiGroups":["autoscaling"],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["horizontalpodautoscalers"]}]},`+
		mutations(apply(`Object{spec: Object.spec{targetCPUUtilizationPercentage: 70, minReplicas: int(object.spec.maxReplicas) - 1}}`)), "")
	obj := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 5}}
	if err := m.admit(context.Background(), admission.Update, m.catalogue.Lookup("autoscaling", "v2", "horizontalpodautoscalers"), obj, obj.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if s := obj.Spec; len(s.Metrics) != 1 || *s.Metrics[0].Resource.Target.AverageUtilization != 70 || *s.MinReplicas != 4 {
		t.Errorf("%+v", s)
	}
}

// TestMutationsEnd: policies cost nothing where they are not served, are not asked about
// deletes and about policies, and end with the request.
func TestMutationsEnd(t *testing.T) {
	const unchanged = `{"data":{"k":"v"},"labels":null}`
	off := newMutators(t, false)
	off.policy("p", configMaps+mutations(apply(`Object{data: {"a": "b"}}`)), "")
	if got, err := off.change(context.Background()); err != nil || got != unchanged {
		t.Errorf("not served: %s, %v", got, err)
	}
	m := newMutators(t, true)
	m.policy("p", `"matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]},`+mutations(apply(`Object{nope: "x"}`)), "")
	if err := m.admit(context.Background(), admission.Delete, m.catalogue.Lookup("", "v1", "configmaps"), nil, &corev1.ConfigMap{}); err != nil {
		t.Errorf("delete: %v", err)
	}
	r := m.catalogue.Lookup("admissionregistration.k8s.io", "v1alpha1", "mutatingadmissionpolicies")
	if err := m.admit(context.Background(), admission.Update, r, r.New(), r.New()); err != nil {
		t.Errorf("a policy: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.policy("p", configMaps+`"failurePolicy":"Ignore",`+mutations(apply(`Object{data: {"a": string(lists.range(900).all(x, lists.range(900).all(y, y >= 0)))}}`)), "")
	if got, err := m.change(ctx); err == nil {
		t.Errorf("after the end of the request: %s", got)
	}
}
