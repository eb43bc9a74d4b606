package apiregistration_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

// TestWhatTheServerWrites: the APIServices that the server itself keeps are valid.
func TestWhatTheServerWrites(t *testing.T) {
	custom := apiregistration.OfDefinition(schema.GroupVersion{Group: "stable.example", Version: "v1"})
	if custom.Name != "v1.stable.example" || custom.Labels[apiregistration.AutoManaged] != apiregistration.Always {
		t.Errorf("of a definition: %+v", custom)
	}
	local := apiregistration.Local(schema.GroupVersion{Group: "apps", Version: "v1"})
	if local.Name != "v1.apps" || local.Labels[apiregistration.AutoManaged] != apiregistration.OnStart {
		t.Errorf("of a built-in group: %+v", local)
	}
	for _, s := range []*apiregistrationv1.APIService{custom, local} {
		if errs := apiregistration.APIService.Validate(t.Context(), s); len(errs) > 0 {
			t.Errorf("%s: %v", s.Name, errs)
		}
	}
	if s := apiregistration.Local(schema.GroupVersion{Group: "none.example", Version: "v1"}); s != nil {
		t.Errorf("of a group that there is not: %+v", s)
	}
}

// TestNames: a generateName must be the name itself, which the version and the group determine.
func TestNames(t *testing.T) {
	s := apiregistration.OfDefinition(schema.GroupVersion{Group: "x.example", Version: "v1"})
	s.GenerateName = s.Name
	if errs := apiregistration.APIService.Validate(t.Context(), s); len(errs) > 0 {
		t.Error(errs)
	}
	s.GenerateName = "v1.x"
	if errs := apiregistration.APIService.Validate(t.Context(), s); len(errs) != 1 || errs[0].Field != "metadata.generateName" {
		t.Error(errs)
	}
}

// TestConditions: the valid content of a status, and its cells in the table.
func TestConditions(t *testing.T) {
	is := func(status apiregistrationv1.ConditionStatus, reason string) apiregistrationv1.APIServiceCondition {
		return apiregistrationv1.APIServiceCondition{Type: apiregistrationv1.Available, Status: status, Reason: reason}
	}
	other := apiregistrationv1.APIServiceCondition{Type: "Other", Status: apiregistrationv1.ConditionTrue}
	for name, c := range map[string]struct {
		list  []apiregistrationv1.APIServiceCondition
		shown string
		err   string
	}{
		"none":       {nil, "Unknown", ""},
		"another":    {[]apiregistrationv1.APIServiceCondition{other}, "Unknown", ""},
		"available":  {[]apiregistrationv1.APIServiceCondition{other, is("True", "Passed")}, "True", ""},
		"no reason":  {[]apiregistrationv1.APIServiceCondition{is("False", "")}, "False", ""},
		"a reason":   {[]apiregistrationv1.APIServiceCondition{is("False", "Gone")}, "False (Gone)", ""},
		"not one":    {[]apiregistrationv1.APIServiceCondition{is("Maybe", "")}, "Maybe", `status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"`},
		"twice said": {[]apiregistrationv1.APIServiceCondition{other, other}, "Unknown", `status.conditions[1].type: Duplicate value: "Other"`},
	} {
		s := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.x.example"}}
		s.Status.Conditions = c.list
		if got := apiregistration.APIServiceColumns.Cells(s, time.Now())[2]; got != c.shown {
			t.Errorf("%s: %v is shown, want %s", name, got, c.shown)
		}
		got := ""
		if errs := apiregistration.APIService.Status.ValidateUpdate(t.Context(), s, s); len(errs) > 0 {
			got = errs[0].Error()
		}
		if got != c.err {
			t.Errorf("%s: %q, want %q", name, got, c.err)
		}
	}
}
