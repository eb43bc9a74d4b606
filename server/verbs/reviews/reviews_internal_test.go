package reviews

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

type (
	spec     = authorizationv1.SubjectAccessReviewSpec
	resource = authorizationv1.ResourceAttributes
	path     = authorizationv1.NonResourceAttributes
)

func messages(errs field.ErrorList) string {
	var texts []string
	for _, e := range errs {
		texts = append(texts, e.Field+": "+status.Body(release.Default, e))
	}
	return strings.Join(texts, "; ")
}

func TestValidate(t *testing.T) {
	fields := func(raw string, r ...metav1.FieldSelectorRequirement) *resource {
		return &resource{FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: raw, Requirements: r}}
	}
	labels := func(raw string, r ...metav1.LabelSelectorRequirement) *resource {
		return &resource{LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: raw, Requirements: r}}
	}
	for _, tc := range []struct {
		name string
		spec spec
		want string
	}{
		{"user", spec{User: "u", ResourceAttributes: &resource{}}, ""},
		{"group", spec{Groups: []string{"g"}, NonResourceAttributes: &path{}}, ""},
		{"nobody", spec{ResourceAttributes: &resource{}}, `spec.user: Invalid value: "": at least one of user or group must be specified`},
		{"nothing", spec{User: "u"}, `spec.resourceAttributes: Invalid value: "null": exactly one of nonResourceAttributes or resourceAttributes must be specified`},
		{"both", spec{User: "u", ResourceAttributes: &resource{}, NonResourceAttributes: &path{Path: "/x"}},
			`spec.nonResourceAttributes: Invalid value: authorization.NonResourceAttributes{Path:"/x", Verb:""}: cannot be specified in combination with resourceAttributes`},
		{"raw", spec{User: "u", ResourceAttributes: fields("a=b")}, ""},
		{"raw that does not parse", spec{User: "u", ResourceAttributes: labels("a b c")}, ""},
		{"raw of the longest text", spec{User: "u", ResourceAttributes: labels(strings.Repeat("a,", maxRawSelector/2))}, ""},
		{"too long fields", spec{User: "u", ResourceAttributes: fields(strings.Repeat("a", maxRawSelector+1))},
			"spec.resourceAttributes.fieldSelector.rawSelector: Too long: may not be more than 16384 bytes"},
		{"too long labels", spec{User: "u", ResourceAttributes: labels(strings.Repeat("a", maxRawSelector+1))},
			"spec.resourceAttributes.labelSelector.rawSelector: Too long: may not be more than 16384 bytes"},
		{"no selector", spec{User: "u", ResourceAttributes: fields("")},
			"spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"},
		{"two selectors", spec{User: "u", ResourceAttributes: labels("a=b", metav1.LabelSelectorRequirement{Key: "a", Operator: "Exists"})},
			`spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements`},
		{"unknown operator", spec{User: "u", ResourceAttributes: labels("", metav1.LabelSelectorRequirement{Key: "a", Operator: "Near"})}, ""},
		{"bad requirement", spec{User: "u", ResourceAttributes: fields("", metav1.FieldSelectorRequirement{Operator: "In", Values: []string{"x"}})},
			"spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified"},
	} {
		if got := messages(validateSubject(&tc.spec, &metav1.ObjectMeta{})); got != tc.want {
			t.Errorf("%s: %s\nwant %s", tc.name, got, tc.want)
		}
		local := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "x"}, Spec: tc.spec}
		if tc.spec.ResourceAttributes != nil {
			a := *tc.spec.ResourceAttributes
			a.Namespace = "x"
			local.Spec.ResourceAttributes = &a
		}
		if got := messages(validateLocal(local)); tc.spec.NonResourceAttributes == nil && got != tc.want {
			t.Errorf("%s, local: %s\nwant %s", tc.name, got, tc.want)
		}
		self := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: tc.spec.ResourceAttributes, NonResourceAttributes: tc.spec.NonResourceAttributes,
		}}
		if got := messages(validateSelf(self)); tc.name != "nobody" && got != tc.want {
			t.Errorf("%s, self: %s\nwant %s", tc.name, got, tc.want)
		}
	}
	good := spec{User: "u", ResourceAttributes: &resource{Namespace: "x"}}
	named := metav1.ObjectMeta{Name: "n", Namespace: "x", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
	if got := messages(validateSubject(&good, &named)); !strings.HasPrefix(got, `metadata: Invalid value: v1.ObjectMeta{Name:"n"`) || !strings.HasSuffix(got, ": must be empty") {
		t.Error(got)
	}
	local := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: named, Spec: good}
	if got := messages(validateLocal(local)); !strings.HasSuffix(got, ": must be empty except for namespace") {
		t.Error(got)
	}
	local.Name, local.Spec.ResourceAttributes = "", &resource{Namespace: "y"}
	if got := messages(validateLocal(local)); got != `spec.resourceAttributes.namespace: Invalid value: "y": must match metadata.namespace` {
		t.Error(got)
	}
	local.Spec.ResourceAttributes, local.Spec.NonResourceAttributes = nil, &path{Path: "/x", Verb: "get"}
	if got := messages(validateLocal(local)); got != `spec.nonResourceAttributes: Invalid value: authorization.NonResourceAttributes{Path:"/x", Verb:"get"}: disallowed on this kind of request` {
		t.Error(got)
	}
}

// TestManyRequirements: any user may send a review. A selector of a million empty requirements has as many errors as an answer
// lists, and takes little memory.
func TestManyRequirements(t *testing.T) {
	const many = 1_000_000
	for name, r := range map[string]*resource{
		"fields": {FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: make([]metav1.FieldSelectorRequirement, many)}},
		"labels": {LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: make([]metav1.LabelSelectorRequirement, many)}},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		errs := validateSelf(review)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; len(errs) < rules.MaxErrors || len(errs) > rules.MaxErrors+10 || n > 32<<20 {
			t.Errorf("%s: %d errors, %d bytes are allocated", name, len(errs), n)
		}
	}
}

// decider gives the answer it was made with, and records what it was asked.
type decider struct {
	d      authx.Decision
	reason string
	err    error
	asked  *authx.Attributes
}

func (d *decider) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	d.asked = a
	return d.d, d.reason, d.err
}

func TestDecide(t *testing.T) {
	const lost = "spec.resourceAttributes.fieldSelector ignored due to parse error"
	for _, tc := range []struct {
		name string
		z    decider
		a    authx.Attributes
		want authorizationv1.SubjectAccessReviewStatus
	}{
		{"allowed", decider{d: authx.Allow, reason: "why"}, authx.Attributes{}, authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "why"}},
		{"denied", decider{d: authx.Deny, reason: "why"}, authx.Attributes{}, authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "why"}},
		{"nobody", decider{reason: "a\nb"}, authx.Attributes{}, authorizationv1.SubjectAccessReviewStatus{Reason: "a\nb"}},
		{"failed", decider{d: authx.Deny, err: errors.New("down")}, authx.Attributes{}, authorizationv1.SubjectAccessReviewStatus{Denied: true, EvaluationError: "down"}},
		{"selector", decider{}, authx.Attributes{FieldErr: errors.New("x")}, authorizationv1.SubjectAccessReviewStatus{EvaluationError: lost}},
		{"everything", decider{err: errors.New("down")}, authx.Attributes{FieldErr: errors.New("x"), LabelErr: errors.New("x"), LabelRequirements: nil},
			authorizationv1.SubjectAccessReviewStatus{EvaluationError: "down; " + lost + "; spec.resourceAttributes.labelSelector ignored due to parse error"}},
	} {
		r := &reviewer{Config{Authorizer: &tc.z}}
		if got := r.decide(t.Context(), &tc.a); got != tc.want || tc.z.asked != &tc.a {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestAttributes(t *testing.T) {
	user := &authx.Identity{Name: "u"}
	if got, want := attributes(user, nil, &path{Path: "/x", Verb: "get"}), (&authx.Attributes{User: user, Path: "/x", Verb: "get"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	a := attributes(user, &resource{Namespace: "ns", Verb: "list", Group: "apps", Resource: "deployments", Subresource: "scale", Name: "web"}, nil)
	if want := (&authx.Attributes{User: user, Verb: "list", Namespace: "ns", APIGroup: "apps", APIVersion: "*", Resource: "deployments", Subresource: "scale", Name: "web", ResourceRequest: true}); !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	for _, tc := range []struct {
		name           string
		fields         *authorizationv1.FieldSelectorAttributes
		labels         *authorizationv1.LabelSelectorAttributes
		field, label   string // the supported part
		fieldE, labelE bool
	}{
		{name: "raw", fields: &authorizationv1.FieldSelectorAttributes{RawSelector: "a=b,c!=d"}, labels: &authorizationv1.LabelSelectorAttributes{RawSelector: "a in (b),!c"}, field: "a=b,c!=d", label: "a in (b),!c"},
		{name: "raw nonsense", fields: &authorizationv1.FieldSelectorAttributes{RawSelector: "a b"}, labels: &authorizationv1.LabelSelectorAttributes{RawSelector: "a b"}, fieldE: true, labelE: true},
		{name: "requirements", fields: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "NotIn", Values: []string{"d"}}}},
			labels: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "DoesNotExist"}}}, field: "a=b,c!=d", label: "a in (b),!c"},
		{name: "some known", fields: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "Exists"}, {Key: "d", Operator: "In", Values: []string{"e", "f"}}}},
			labels: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}, {Key: "c", Operator: "Exists"}}}, field: "a=b", label: "c", fieldE: true, labelE: true},
	} {
		a := attributes(user, &resource{FieldSelector: tc.fields, LabelSelector: tc.labels}, nil)
		var field, label []string
		for _, r := range a.FieldRequirements {
			field = append(field, r.Field+string(r.Operator)+r.Value)
		}
		for i := range a.LabelRequirements {
			label = append(label, a.LabelRequirements[i].String())
		}
		if strings.Join(field, ",") != tc.field || strings.Join(label, ",") != tc.label || (a.FieldErr != nil) != tc.fieldE || (a.LabelErr != nil) != tc.labelE {
			t.Errorf("%s: %v %v, %v %v", tc.name, field, a.FieldErr, label, a.LabelErr)
		}
	}
	r := &reviewer{Config{IgnoreSelectors: true}}
	known := &resource{FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "a"}, LabelSelector: &authorizationv1.LabelSelectorAttributes{}}
	if r.known(known); known.FieldSelector != nil || known.LabelSelector != nil {
		t.Error("selectors without their gate")
	}
}
