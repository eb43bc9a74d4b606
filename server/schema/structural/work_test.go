package structural

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/rowlock/rowlock/server/release"
)

// ruled returns a schema of a list, l, of texts, whose rules are given.
func ruled(t *testing.T, rules ...string) *Schema {
	t.Helper()
	list := make([]map[string]any, len(rules))
	for i, r := range rules {
		list[i] = map[string]any{"rule": r, "messageExpression": "'no'"}
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	s := readSchema([]byte(fmt.Sprintf(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":%s}}}`, text)))
	if s == nil {
		t.Fatal("the schema is wrong")
	}
	return s
}

func texts(s string, n int) map[string]any {
	list := make([]any, n)
	for i := range list {
		list[i] = s
	}
	return map[string]any{"l": list}
}

// TestWorkOfRules: a rule that exceeds its work ends like one that exceeds its cost, and no rule is run after
// it.
func TestWorkOfRules(t *testing.T) {
	deep := "[dyn(1)]" + strings.Repeat(".map(x, dyn([x, x]))", 40)
	list := texts(strings.Repeat("a", 1000), 5000)
	errs := ruled(t, "[self]"+strings.Repeat(".map(x, x + x)", 30)+".size() == 1").Validate(t.Context(), nil, list, nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "a list of 1280000 elements is too large evaluating rule") {
		t.Error(errs)
	}
	for _, rule := range []string{
		deep + " == " + deep, "self.join('a') == ''",
		"self.map(x, self + self).size() == 1",
		"self.exists(x, x.matches('((a?){30}){30}b'))",
	} {
		errs := ruled(t, rule, "false").Validate(t.Context(), nil, list, nil)
		want := "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: " + rule
		if len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), want) {
			t.Errorf("%.60s: %v", rule, errs)
		}
	}
}

// TestWorkOfAnObject: all rules of an object have a common bound, whatever each of them costs: a rule is
// planned again for each value.
func TestWorkOfAnObject(t *testing.T) {
	const want = "l: Invalid value: \"array\": validation failed due to running out of cost budget, no further validation rules will be run"
	rules := make([]string, 20)
	for i := range rules {
		rules[i] = strings.Repeat(" ", i) + "self.map(x, x.replace('a', 'b')).size() > 0"
	}
	errs := ruled(t, rules...).Validate(t.Context(), nil, texts(strings.Repeat("a", 1000), 700), nil)
	if len(errs) != 1 || errs[0].Error() != want {
		t.Error(errs)
	}
	s := readSchema([]byte(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"boolean","x-kubernetes-validations":[{"rule":"true` + strings.Repeat("||true", 5000) + `"}]}}}}`))
	many := make([]any, 700)
	for i := range many {
		many[i] = true
	}
	if errs := s.Validate(t.Context(), nil, map[string]any{"l": many[:10]}, nil); len(errs) > 0 {
		t.Error(errs)
	}
	errs = s.Validate(t.Context(), nil, map[string]any{"l": many}, nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "running out of cost budget") {
		t.Error(errs)
	}
}

// TestWorkOfMessages: the cost of message expressions counts as well.
func TestWorkOfMessages(t *testing.T) {
	s := readSchema([]byte(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"false","messageExpression":"self.join('a')"},{"rule":"false"}]}}}`))
	errs := s.Validate(t.Context(), nil, texts(strings.Repeat("a", 1000), 5000), nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `no further validation rules will be run due to call cost exceeds limit for messageExpression: "self.join('a')"`) {
		t.Error(errs)
	}
}

// TestHugeExpressions: an expression that was stored before there was a bound is reported like one that does
// not compile.
func TestHugeExpressions(t *testing.T) {
	s := ruled(t, "optional.of(1)"+strings.Repeat(".optMap(x, x)", 40)+".hasValue()", "self.size() == 1")
	errs := s.Validate(t.Context(), nil, texts("a", 1), nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "rule compile error: compilation failed: the expression is too large") {
		t.Error(errs)
	}
}

// TestComparisonsAgree compares metered comparisons with the library's: sets and maps of a custom object are
// equal whatever their order.
func TestComparisonsAgree(t *testing.T) {
	const item = `{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"string"},"o":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	rules := []string{
		"self.set == oldSelf.set", "oldSelf.set != self.set", "self.map == oldSelf.map", "self.plain == oldSelf.plain", "self == oldSelf", "[self.set] == [oldSelf.set]",
		"self.set == ['b', 'a']", "['b', 'a'] == self.set", "self.set + ['c'] == ['c', 'b', 'a']", "self.map + oldSelf.map == oldSelf.map", "self.plain + ['c'] == ['a', 'b', 'c']",
		"['a'] + self.set == ['a', 'a', 'b']", "self.map[0] in oldSelf.map", "oldSelf.map.exists(x, x == self.map[0])", "'a' in self.set", "self.set in [['b', 'a']]",
		"sets.equivalent(self.set, oldSelf.set)", "self.others == oldSelf.others", "self.others == {'a': 'b'}", "self.set.indexOf('b') == 1", "self.plain.join(',') == 'a,b'",
		"self.map.map(x, x.k) == ['x', 'y']", "'%s'.format([self.set]) == '[a, b]'", "self.map == [self.map[1], self.map[0]]", "dyn(self.map) == dyn([{'k': 'x'}, {'k': 'y'}])",
	}
	list := make([]map[string]any, len(rules))
	for i, r := range rules {
		list[i] = map[string]any{"rule": r}
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	s := readSchema([]byte(`{"type":"object","x-kubernetes-validations":` + string(text) + `,"properties":{"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":` + item + `},"plain":{"type":"array","items":{"type":"string"}},"others":{"type":"object","additionalProperties":{"type":"string"}}}}`))
	if s == nil {
		t.Fatal("the schema is wrong")
	}
	library := cel.NewValidator(s.tree, true, celconfig.PerCallLimit)
	values := []string{
		`{"set":["a","b"],"map":[{"k":"x"},{"k":"y"}],"plain":["a","b"],"others":{"a":"b"}}`, `{"set":["b","a"],"map":[{"k":"y"},{"k":"x"}],"plain":["b","a"],"others":{"c":"b"}}`,
		`{"set":["a"],"map":[{"k":"x","v":"1","o":{"a":[1]}},{"k":"y"}],"plain":["a"],"others":{}}`, `{"set":["a","b"],"map":[{"k":"x","o":{"a":[2]}},{"k":"y"}],"plain":[],"others":{"a":"b","c":"d"}}`,
	}
	for _, obj := range values {
		for _, old := range values {
			compareRules(t, s, library, obj, old, celconfig.RuntimeCELCostBudget)
		}
	}
}

// TestComparingObjectsEnds: comparing ends with the request.
func TestComparingObjectsEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := &evaluation{ctx: ctx, left: celconfig.RuntimeCELCostBudget, work: maxWork}
	s := ruled(t, "self.all(x, [[x]] == [['a']])")
	cancel()
	s.rules().run(e, nil, texts("a", 5000), nil, counterpart{})
	if len(e.errs) != 1 || !strings.Contains(e.errs[0].Error(), context.Canceled.Error()) {
		t.Error(e.errs)
	}
}

// TestManyRulesOfALongValue: rules that do not hold for a value that was there before warn of its beginning only.
func TestManyRulesOfALongValue(t *testing.T) {
	s := failing(t, `"properties":{"l":{"type":"string","x-kubernetes-validations":%s}}`, 300)
	obj := map[string]any{"l": strings.Repeat("a", 1<<20)}
	warned, longest := 0, 0
	e := &evaluation{ctx: t.Context(), of: s.release, left: celconfig.RuntimeCELCostBudget, work: maxWork, warn: func(text string) {
		warned++
		longest = max(longest, len(text))
	}}
	s.rules().run(e, nil, obj, obj, counterpart{object: common.NewCorrelatedObject(obj, obj, s.celSchema())})
	if warned != 300 || longest > 20<<10 || len(e.errs) > 0 {
		t.Errorf("%d warnings of up to %d bytes, %d errors", warned, longest, len(e.errs))
	}
}

// TestManyRulesOfALongKey: when the paths of errors exceed the bound, no more rules are run.
func TestManyRulesOfALongKey(t *testing.T) {
	s := failing(t, `"properties":{"l":{"type":"object","maxProperties":2,"additionalProperties":{"type":"string","maxLength":2,"x-kubernetes-validations":%s}}}`, 300)
	e := &evaluation{ctx: t.Context(), of: s.release, left: celconfig.RuntimeCELCostBudget, work: maxWork}
	s.rules().run(e, nil, map[string]any{"l": map[string]any{strings.Repeat("a", 1<<20): "b"}}, nil, counterpart{})
	held := 0
	for _, err := range e.errs {
		held += len(err.Field)
	}
	if len(e.errs) == 0 || held > 20<<20 {
		t.Errorf("%d errors with paths of %d bytes", len(e.errs), held)
	}
}

// failing returns a schema of the newest release with rules that never hold.
func failing(t *testing.T, within string, rules int) *Schema {
	t.Helper()
	list := strings.Repeat(`{"rule":"false"},`, rules)
	v := &apiextensionsv1.CustomResourceDefinitionVersion{Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}}
	text := `{"type":"object",` + fmt.Sprintf(within, "["+strings.TrimSuffix(list, ",")+"]") + "}"
	if err := json.Unmarshal([]byte(text), v.Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	s, err := New(v, false, release.Newest)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
