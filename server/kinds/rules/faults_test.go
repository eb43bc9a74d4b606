package rules_test

import (
	"runtime"
	"strconv"
	"testing"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyFaults: a list with a fault for every item, of three bytes in a body of 3 MiB, has as many errors as an answer lists, and
// takes little memory.
func TestManyFaults(t *testing.T) {
	const many = 1_000_000
	owners := make([]metav1.OwnerReference, many/4)
	for i := range owners {
		owners[i].Name = strconv.Itoa(i)
	}
	pairs := make(map[string]string, many/8)
	for i := range many / 8 {
		pairs["-"+strconv.Itoa(i)] = "-"
	}
	meta := func(m metav1.ObjectMeta) field.ErrorList {
		m.Name, m.Namespace = "x", "ns"
		return apivalidation.ValidateObjectMetaAccessor(rules.Metadata(&m), true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	}
	selector := func(s metav1.LabelSelector) field.ErrorList { return rules.Selector(&s, field.NewPath("selector")) }
	for name, check := range map[string]func() field.ErrorList{
		"finalizers":  func() field.ErrorList { return meta(metav1.ObjectMeta{Finalizers: make([]string, many)}) },
		"owners":      func() field.ErrorList { return meta(metav1.ObjectMeta{OwnerReferences: owners}) },
		"labels":      func() field.ErrorList { return meta(metav1.ObjectMeta{Labels: pairs}) },
		"annotations": func() field.ErrorList { return meta(metav1.ObjectMeta{Annotations: pairs}) },
		"conditions": func() field.ErrorList {
			return rules.Conditions(make([]metav1.Condition, many/4), field.NewPath("status"))
		},
		"match labels": func() field.ErrorList { return selector(metav1.LabelSelector{MatchLabels: pairs}) },
		"expressions": func() field.ErrorList {
			return selector(metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, many/4)})
		},
		"values": func() field.ErrorList {
			values := make([]string, many)
			for i := range values {
				values[i] = "-"
			}
			return selector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: values}}})
		},
	} {
		var errs field.ErrorList
		n := allocated(func() { errs = check() })
		if len(errs) < rules.MaxErrors/4 || len(errs) > 2*rules.MaxErrors || n > 64<<20 {
			t.Errorf("%s: %d errors, %d bytes are allocated", name, len(errs), n)
		}
	}
}

// TestLongMetadata: long lists without faults, or with few, are checked as a whole.
func TestLongMetadata(t *testing.T) {
	m := metav1.ObjectMeta{Name: "x", Namespace: "ns", Labels: map[string]string{}}
	for i := range 5000 {
		name := "example.com/x" + strconv.Itoa(i)
		m.Finalizers = append(m.Finalizers, name)
		m.Labels[name] = ""
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: types.UID(name)})
	}
	check := func() field.ErrorList {
		return apivalidation.ValidateObjectMetaAccessor(rules.Metadata(&m), true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	}
	if errs := check(); len(errs) > 0 {
		t.Fatal(errs)
	}
	yes := true
	m.Finalizers[4999], m.Labels["-"], m.OwnerReferences[0].Controller, m.OwnerReferences[4999].Controller = "", "", &yes, &yes
	want := apivalidation.ValidateObjectMetaAccessor(&m, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	if errs := check(); len(errs) != len(want) || len(errs) < 4 {
		t.Errorf("%d errors, want %d", len(errs), len(want))
	}
}

// TestSelectorErrors compares the errors about selectors with those of the library.
func TestSelectorErrors(t *testing.T) {
	for _, s := range []*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"a": "b"}}, {MatchLabels: map[string]string{"-": "-"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{}, {Key: "a", Operator: "In"}, {Key: "b", Operator: "Exists", Values: []string{"-"}}, {Key: "c", Operator: "NotIn", Values: []string{"x", "-"}}}},
	} {
		for _, keep := range []bool{false, true} {
			p := field.NewPath("spec", "selector")
			want := metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: keep}, p)
			got := rules.LooseSelector(s, keep, p)
			if len(got) != len(want) {
				t.Fatalf("%v: %v, want %v", s, got, want)
			}
			for i := range want {
				if got[i].Error() != want[i].Error() {
					t.Errorf("%v: %v, want %v", s, got[i], want[i])
				}
			}
		}
	}
}
