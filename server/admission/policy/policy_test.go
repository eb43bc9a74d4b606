package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
)

// cluster is a cache with a plugin that follows it.
type cluster struct {
	t         testing.TB
	catalogue *kinds.Catalogue
	cache     *cache.Cache
	plugin    *policy.Plugin
	revision  int64
	asked     int // questions to the authorizer

	metrics    *policy.Metrics
	conditions *conditions.Metrics
}

func newCluster(t testing.TB, custom ...*kinds.Resource) *cluster {
	c := &cluster{
		t: t, catalogue: kinds.NewCatalogue(slices.Concat(builtin.Resources(), custom)), metrics: policy.NewMetrics(), conditions: conditions.NewMetrics(),
	}
	c.cache = cache.New(c.catalogue)
	c.plugin = policy.New(policy.Config{
		Cluster: criteria.Cluster{Namespaces: c, Equivalents: criteria.NewEquivalents(c.catalogue)}, Catalogue: c.catalogue, Cache: c.cache,
		Objects: objects.New(c.catalogue, nil, c.cache), Authorizer: c, Metrics: c.metrics, Conditions: c.conditions,
	})
	c.set("namespaces", "", "ns", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","labels":{"team":"a"}}}`)
	return c
}

// Item implements criteria.Namespaces.
func (c *cluster) Item(_ context.Context, storage, namespace, name string) (*cache.Item, error) {
	return c.cache.Get(storage, namespace, name), nil
}

// Authorize implements authx.Authorizer: everybody may get.
func (c *cluster) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	c.asked++
	if a.Verb == "get" {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "no", nil
}

// set stores an object, or removes it where text is "".
func (c *cluster) set(storage, namespace, name, text string) {
	c.revision++
	row := sqlstore.Row{Key: sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}, Revision: c.revision, Value: []byte(text), Deleted: text == ""}
	ch := sqlstore.Change{Row: row}
	if old := c.cache.Get(storage, namespace, name); old != nil {
		ch.PrevRevision = old.Revision
		if text == "" {
			ch.Value = []byte(`{"metadata":{}}`)
		}
	}
	c.cache.Apply([]sqlstore.Change{ch})
}

// policy stores a policy of ConfigMaps and, where binding is not "", what binds it.
func (c *cluster) policy(name, spec, binding string) {
	c.set("validatingadmissionpolicies.admissionregistration.k8s.io", "", name, fmt.Sprintf(
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%q},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},%s}}`, name, spec))
	if binding != "" {
		c.set("validatingadmissionpolicybindings.admissionregistration.k8s.io", "", name, fmt.Sprintf(
			`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%q},"spec":{"policyName":%q,%s}}`, name, name, binding))
	}
}

// create asks about the creation of a ConfigMap.
func (c *cluster) create(data map[string]string) (said string, err error) {
	var b strings.Builder
	a := &admission.Attributes{
		Operation: admission.Create, Resource: c.catalogue.Lookup("", "v1", "configmaps"), Namespace: "ns", Name: "a",
		Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Data: data}, Options: &metav1.CreateOptions{},
		User: &authx.Identity{Name: "paula"}, Warn: func(text string) { b.WriteString(text + "\n") }, Annotate: func(k, v string) { b.WriteString(k + "=" + v + "\n") },
	}
	err = c.plugin.Validate(context.Background(), a)
	return b.String(), err
}

const deny = `"validationActions":["Deny"]`

func TestPolicies(t *testing.T) {
	data := map[string]string{"k": "v"}
	for name, p := range map[string]struct{ spec, binding, want, said string }{
		"passes":                               {spec: `"validations":[{"expression":"object.data.k == 'v'"}]`, binding: deny},
		"not bound":                            {spec: `"validations":[{"expression":"false"}]`},
		"refuses":                              {spec: `"validations":[{"expression":"false","message":" no "}]`, binding: deny, want: `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no`},
		"the expression":                       {spec: `"validations":[{"expression":" object.data.k == 'w' "}]`, binding: deny, want: "failed expression: object.data.k == 'w'"},
		"warns":                                {spec: `"validations":[{"expression":"false","messageExpression":"'hi ' + request.userInfo.username"}]`, binding: `"validationActions":["Warn"]`, said: "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': hi paula\n"},
		"audits":                               {spec: `"validations":[{"expression":"false"}]`, binding: `"validationActions":["Audit"]`, said: `validation.policy.admission.k8s.io/validation_failure=[{"binding":"p","expressionIndex":0,"message":"failed expression: false","policy":"p","validationActions":["Audit"]}]` + "\n"},
		"annotates":                            {spec: `"auditAnnotations":[{"key":"k","valueExpression":"string(object.data.k)"},{"key":"none","valueExpression":"null"}]`, binding: deny, said: "p/k=v\n"},
		"bad annotation":                       {spec: `"auditAnnotations":[{"key":"k","valueExpression":"string(object.data.x)"}]`, binding: deny, want: "expression 'string(object.data.x)' resulted in error: no such key: x"},
		"fails":                                {spec: `"validations":[{"expression":"object.data.x == ''"}]`, binding: deny, want: "expression 'object.data.x == ''' resulted in error: no such key: x"},
		"fails softly":                         {spec: `"failurePolicy":"Ignore","validations":[{"expression":"object.data.x == ''"}]`, binding: deny},
		"spared":                               {spec: `"matchConditions":[{"name":"c","expression":"object.data.k != 'v'"}],"validations":[{"expression":"false"}]`, binding: deny},
		"another team":                         {spec: `"validations":[{"expression":"false"}]`, binding: deny + `,"matchResources":{"namespaceSelector":{"matchLabels":{"team":"b"}}}`},
		"its team":                             {spec: `"validations":[{"expression":"namespaceObject.metadata.labels.team == 'b'"}]`, binding: deny + `,"matchResources":{"namespaceSelector":{"matchLabels":{"team":"a"}}}`, want: "failed expression"},
		"conditions do not know the namespace": {spec: `"matchConditions":[{"name":"c","expression":"namespaceObject != null"}],"validations":[{"expression":"false"}]`, binding: deny},
		"variables":                            {spec: `"variables":[{"name":"n","expression":"object.data.size()"},{"name":"m","expression":"variables.n + 1"}],"validations":[{"expression":"variables.m == 3","messageExpression":"string(variables.m)"}]`, binding: deny, want: "denied request: 2"},
		"a variable that fails":                {spec: `"variables":[{"name":"n","expression":"object.data.x"}],"validations":[{"expression":"variables.n == ''"}]`, binding: deny, want: `composited variable "n" fails to evaluate: no such key: x`},
		"the authorizer":                       {spec: `"validations":[{"expression":"authorizer.requestResource.check('get').allowed() && !authorizer.path('/x').check('post').allowed()"}]`, binding: deny},
		"no message from the authorizer":       {spec: `"variables":[{"name":"r","expression":"authorizer.path('/x').check('post').reason()"}],"validations":[{"expression":"false","message":"fixed","messageExpression":"variables.r"}]`, binding: deny, want: "denied request: fixed"},
		"a reason":                             {spec: `"validations":[{"expression":"false","reason":"Forbidden"}]`, binding: deny, want: "denied request"},
		"no such kind of parameters":           {spec: `"paramKind":{"apiVersion":"x.example.org/v1","kind":"X"},"validations":[{"expression":"true"}]`, binding: deny, want: "failed to configure policy: failed to find resource referenced by paramKind: 'x.example.org/v1, Kind=X'"},
		"no parameters":                        {spec: `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params == null"}]`, binding: deny},
		"missing parameters":                   {spec: `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"true"}]`, binding: deny + `,"paramRef":{"name":"x","parameterNotFoundAction":"Deny"}`, want: "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		"parameters of a namespace":            {spec: `"paramKind":{"apiVersion":"v1","kind":"Namespace"},"validations":[{"expression":"true"}]`, binding: deny + `,"paramRef":{"name":"x","namespace":"ns","parameterNotFoundAction":"Deny"}`, want: "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"},
		"selected parameters":                  {spec: `"paramKind":{"apiVersion":"v1","kind":"Namespace"},"validations":[{"expression":"params.metadata.labels.team == 'b' && params.kind == 'Namespace'"}]`, binding: deny + `,"paramRef":{"selector":{"matchLabels":{"team":"a"}},"parameterNotFoundAction":"Deny"}`, want: "failed expression"},
		"costly":                               {spec: `"validations":[{"expression":"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))"}]`, binding: deny, want: "cost limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.policy("p", p.spec, p.binding)
			said, err := c.create(data)
			if p.want == "" && err != nil || p.want != "" && (err == nil || !strings.Contains(err.Error(), p.want)) {
				t.Errorf("%v, want %q", err, p.want)
			}
			if said != p.said {
				t.Errorf("said %q, want %q", said, p.said)
			}
			if st := (*apierrors.StatusError)(nil); errors.As(err, &st) {
				want := int32(422)
				if name == "a reason" {
					want = 403
				}
				if st.ErrStatus.Code != want {
					t.Errorf("code %d", st.ErrStatus.Code)
				}
			}
		})
	}
}

// TestAnnotationsOfManyParameters: the annotations of a policy have each value once, in the order of its parameters, and a bounded
// number of bytes, however many parameters there are.
func TestAnnotationsOfManyParameters(t *testing.T) {
	c := newCluster(t)
	const most, size = 256 << 10, 10 << 10
	for i := range 4 * most / size {
		value := fmt.Sprintf("%03d", i/2) + strings.Repeat("v", size-3)
		c.set("configmaps", "ns", fmt.Sprintf("p%03d", i), fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p%03d","namespace":"ns"},"data":{"v":%q}}`, i, value))
	}
	c.policy("p", `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"auditAnnotations":[{"key":"a","valueExpression":"string(params.data.v)"},{"key":"b","valueExpression":"'b' + string(params.data.v).substring(0, 3)"}]`,
		deny+`,"paramRef":{"selector":{},"parameterNotFoundAction":"Deny"}`)
	said, err := c.create(nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b, ok := strings.Cut(said, "\n")
	if first := "p/a=000" + strings.Repeat("v", size-3) + ", 001v"; !ok || !strings.HasPrefix(a, first) || !strings.HasPrefix(b, "p/b=b000, b001, b002") {
		t.Errorf("it says %.100q... and %.100q...", a, b)
	}
	if n := len(said); n < most/2 || n > most+most/8 {
		t.Errorf("the annotations have %d bytes", n)
	}
}

// TestFollows changes what there is between writes.
func TestFollows(t *testing.T) {
	c := newCluster(t)
	refused := func(want bool) {
		t.Helper()
		if _, err := c.create(nil); (err != nil) != want {
			t.Errorf("%v, want a refusal: %t", err, want)
		}
	}
	refused(false)
	c.policy("p", `"validations":[{"expression":"false"}]`, deny)
	refused(true)
	c.policy("p", `"validations":[{"expression":"true"}]`, "")
	refused(false)
	c.policy("p", `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params.data.ok == 'yes'"}]`, deny+`,"paramRef":{"name":"limits","parameterNotFoundAction":"Allow"}`)
	refused(false)
	for _, ok := range []string{"no", "yes"} {
		data, err := json.Marshal(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "limits"}, Data: map[string]string{"ok": ok}})
		if err != nil {
			t.Fatal(err)
		}
		c.set("configmaps", "ns", "limits", string(data))
		refused(ok == "no")
	}
	c.policy("p", `"validations":[{"expression":"false"}]`, deny)
	refused(true)
	c.set("validatingadmissionpolicybindings.admissionregistration.k8s.io", "", "p", "")
	refused(false)
}

// TestAuthorizerIsAskedOnce for the same question.
func TestAuthorizerIsAskedOnce(t *testing.T) {
	c := newCluster(t)
	const question = `authorizer.group('apps').resource('deployments').namespace('ns').check('get').allowed()`
	c.policy("p", `"validations":[{"expression":"`+question+`"},{"expression":"`+question+` && !authorizer.serviceAccount('ns', 'other').group('apps').resource('deployments').namespace('ns').check('put').allowed()"}]`, deny)
	if _, err := c.create(nil); err != nil || c.asked != 2 {
		t.Errorf("%d questions, %v", c.asked, err)
	}
}

// BenchmarkValidate measures the cost of policies for a write: none at all, one with three rules,
// and one that does not match.
func BenchmarkValidate(b *testing.B) {
	three := `"validations":[{"expression":"object.data.size() < 9"},{"expression":"!has(object.data.secret)"},{"expression":"object.metadata.name.startsWith('a')"}]`
	for name, set := range map[string]func(*cluster){
		"none":  func(*cluster) {},
		"three": func(c *cluster) { c.policy("p", three, deny) },
		"other": func(c *cluster) {
			c.policy("p", three, deny+`,"matchResources":{"namespaceSelector":{"matchLabels":{"team":"b"}}}`)
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(b)
			set(c)
			data := map[string]string{"k": "v"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.create(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestSpared: a policy that refuses everything does not refuse what takes it away.
func TestSpared(t *testing.T) {
	c := newCluster(t)
	c.set("validatingadmissionpolicies.admissionregistration.k8s.io", "", "no",
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"no"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]},"validations":[{"expression":"false"}]}}`)
	c.set("validatingadmissionpolicybindings.admissionregistration.k8s.io", "", "no",
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"no"},"spec":{"policyName":"no","validationActions":["Deny"]}}`)
	for _, tc := range []struct {
		group, plural string
		isExempt      bool
	}{
		{"", "configmaps", false},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", false},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", true},
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", true},
		{"authorization.k8s.io", "subjectaccessreviews", true},
	} {
		r := c.catalogue.Lookup(tc.group, "v1", tc.plural)
		err := c.plugin.Validate(t.Context(), &admission.Attributes{
			Operation: admission.Delete, Resource: r, Name: "a", Options: &metav1.DeleteOptions{}, User: &authx.Identity{Name: "paula"},
			Old: r.New(), Warn: func(string) {}, Annotate: func(string, string) {},
		})
		if (err == nil) != tc.isExempt {
			t.Errorf("%s: %v", tc.plural, err)
		}
	}
}
