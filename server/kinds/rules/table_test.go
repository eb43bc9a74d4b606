package rules_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestRules: the errors of each rule, with the path and the text that clients see.
func TestRules(t *testing.T) {
	p := field.NewPath("x")
	minus, zero := int32(-1), int32(0)
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: []string{"not a label"}}}}
	for name, c := range map[string]struct {
		errs field.ErrorList
		want string // the first error; "": none
	}{
		"the same":             {rules.Immutable([]string{}, []string(nil), p), ""},
		"changed":              {rules.Immutable("a", "b", p), `x: Invalid value: "a": field is immutable`},
		"no number":            {rules.NotNegativePtr[int32](nil, p), ""},
		"zero":                 {rules.NotNegativePtr(&zero, p), ""},
		"below zero":           {rules.NotNegativePtr(&minus, p), "x: Invalid value: -1: must be greater than or equal to 0"},
		"at the bound":         {rules.AtMost(3, 3, p, "m"), ""},
		"beyond the bound":     {rules.AtMost(4, 3, p, "m"), "x: Invalid value: 4: m"},
		"known":                {rules.OneOf("b", p, "a", "b"), ""},
		"unknown":              {rules.OneOf("c", p, "b", "a"), `x: Unsupported value: "c": supported values: "b", "a"`},
		"neither":              {rules.IntOrPercent(intstr.IntOrString{Type: 7}, p), `x: Invalid value: intstr.IntOrString{Type:7, IntVal:0, StrVal:""}: must be an integer or percentage (e.g '5%%')`},
		"no selector":          {rules.Selector(nil, p), ""},
		"a strict selector":    {rules.Selector(bad, p), `x.matchExpressions[0].values[0]: Invalid value: "not a label": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		"a kept selector":      {rules.LooseSelector(bad, true, p), ""},
		"a qualified name":     {rules.QualifiedName("a.example/b", p), ""},
		"a subdomain":          {rules.Subdomain("a.example", p), ""},
		"a label":              {rules.Label("0-a", p), ""},
		"a label of a Service": {rules.ServiceLabel("a-0", p), ""},
		"IPv4":                 {rules.Addresses{}.IP("192.0.2.1", p), ""},
		"IPv6":                 {rules.Addresses{}.IP("2001:db8::1", p), ""},
		"no address":           {rules.Addresses{}.IP("x", p), `x: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
	} {
		got := ""
		if len(c.errs) > 0 {
			got = c.errs[0].Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, errs := range map[string]field.ErrorList{
		"qualified name": rules.QualifiedName("a/b/c", p), "subdomain": rules.Subdomain("A", p), "label": rules.Label("a.b", p), "label of a Service": rules.ServiceLabel("0a", p),
	} {
		if len(errs) != 1 || errs[0].Type != field.ErrorTypeInvalid || errs[0].Field != "x" {
			t.Errorf("a wrong %s: %v", name, errs)
		}
		if twice := rules.Twice(errs); len(twice) != 2 || twice[0] != twice[1] || len(errs) != 1 {
			t.Errorf("%v twice is %v", errs, twice)
		}
	}
	if rules.SelectorInvalid(nil) || !rules.SelectorInvalid(bad) || rules.SelectorEmpty(nil) || rules.SelectorEmpty(bad) || !rules.SelectorEmpty(&metav1.LabelSelector{}) {
		t.Error("selectors are judged wrongly")
	}
	if !rules.IsIP("010.0.0.1") || rules.IsIP("10.0.0") {
		t.Error("addresses are judged wrongly")
	}
}

// TestAddresses: fields that predate the strict rule take odd forms before it, and those that the old object has after it.
func TestAddresses(t *testing.T) {
	p := field.NewPath("x")
	loose, strict := rules.Addresses{}, rules.Addresses{Strict: true}
	kept := rules.Addresses{Strict: true, Kept: rules.In([]string{"010.0.0.1", "10.0.0.1/8"})}
	for text, got := range map[string]field.ErrorList{
		"": slices.Concat(loose.IP("010.0.0.1", p), loose.IP("::ffff:1.2.3.4", p), loose.CIDR("010.0.0.1/8", p), kept.IP("010.0.0.1", p), kept.CIDR("10.0.0.1/8", p), strict.IP("1.2.3.4", p), strict.CIDR("10.0.0.0/8", p)),
		`x: Invalid value: "10.0.0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`:     loose.IP("10.0.0", p),
		`x: Invalid value: "10.0.0.1": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`: loose.CIDR("10.0.0.1", p),
		`x: Invalid value: "010.0.0.1": must not have leading 0s`:                                       strict.IP("010.0.0.1", p),
		`x: Invalid value: "010.0.0.2": must not have leading 0s`:                                       kept.IP("010.0.0.2", p),
		`x: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length`:               strict.CIDR("10.0.0.1/8", p),
	} {
		if err := got.ToAggregate(); text == "" && err != nil || text != "" && (err == nil || err.Error() != text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	if rules.IPWarnings("no address", p) != nil || rules.CIDRWarnings("no network", p) != nil {
		t.Error("warnings about what is refused")
	}
}

func TestValues(t *testing.T) {
	var p *int
	if rules.Value(p) != 0 {
		t.Error("nothing has a value")
	}
	rules.DefaultTo(&p, 3)
	rules.DefaultTo(&p, 4)
	if rules.Value(p) != 3 {
		t.Errorf("the default is %d", rules.Value(p))
	}
	seen := rules.Seen[string]{}
	if seen.Again("a") || seen.Again("b") || !seen.Again("a") {
		t.Error("values are not noted")
	}
}
