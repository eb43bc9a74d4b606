package structural

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"

	"github.com/rowlock/rowlock/server/request"
)

type recorded []string

func (r *recorded) AddWarning(_, text string) { *r = append(*r, text) }

// TestRulesAgree compares results of rules with those of the library.
func TestRulesAgree(t *testing.T) {
	const schema = `{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name != 'bad'"},{"rule":"oldSelf.hasValue() || self.n != 7","optionalOldSelf":true,"messageExpression":"'n is ' + string(self.n)"}],
"properties":{"n":{"type":"integer","maximum":100,"x-kubernetes-validations":[{"rule":"self >= oldSelf","message":" must not fall ","reason":"FieldValueForbidden"},{"rule":"10 / self > 0"}]},
"either":{"x-kubernetes-int-or-string":true,"x-kubernetes-validations":[{"rule":"self + 1 > 1","message":"a number"}]},
"o":{"type":"object","x-kubernetes-validations":[{"rule":"self.a != self.b","fieldPath":".b","reason":"FieldValueDuplicate"},{"rule":"self.a.size() < 3","messageExpression":"self.a + '\\n'"},{"rule":"self.b.size() < 3","reason":"FieldValueRequired","message":"b"}],"properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}}},
"atomic":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.k != 'no'"}]}},
"map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}},"x-kubernetes-validations":[{"rule":"!has(self.v) || self.v != 'no'"}]}},
"others":{"type":"object","additionalProperties":{"type":"string","x-kubernetes-validations":[{"rule":"self != 'no'"},{"rule":"self != oldSelf","optionalOldSelf":false}]}},
"resource":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[{"rule":"self.kind == 'Pod'","messageExpression":"self.kind + ' ' + self.apiVersion"}]},
"when":{"type":"string","format":"date-time","x-kubernetes-validations":[{"rule":"self > timestamp('2020-01-01T00:00:00Z')"}]},
"odd-name":{"type":"string","nullable":true,"x-kubernetes-validations":[{"rule":"self == 'x'"}]}}}`
	s := readSchema([]byte(schema))
	if s == nil {
		t.Fatal("the schema is wrong")
	}
	library := cel.NewValidator(s.tree, true, celconfig.PerCallLimit)
	values := []string{
		`{}`, `{"metadata":{"name":"bad"},"n":7}`, `{"metadata":{"name":"ok"},"n":0}`, `{"metadata":{"name":"ok"},"n":5,"either":"x"}`, `{"metadata":{"name":"ok"},"n":7,"either":1}`,
		`{"n":5,"o":{"a":"x","b":"x"}}`, `{"n":5,"o":{"a":"xxxx","b":"xxxx"}}`, `{"n":5,"o":{}}`, `{"n":5,"o":null}`,
		`{"n":1,"atomic":[{"k":"no"},{"k":"yes"},{}]}`, `{"n":1,"atomic":[{"k":"no"}],"map":[{"k":"a","v":"1"},{"k":"b","v":"no"}]}`, `{"n":1,"map":[{"k":"b","v":"no"},{"k":"a","v":"2"}]}`,
		`{"n":1,"others":{"a":"no","b":"yes"}}`, `{"n":1,"others":{"a":"no"}}`, `{"n":1,"resource":{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}}`, `{"n":1,"resource":{}}`,
		`{"n":1,"when":"2019-01-01T00:00:00Z","odd-name":"y"}`, `{"n":1,"when":"never","odd-name":null}`,
	}
	for _, obj := range values {
		for _, old := range append(values, "null") {
			for _, budget := range []int64{celconfig.RuntimeCELCostBudget, 5, 0} {
				compareRules(t, s, library, obj, old, budget)
			}
		}
	}
}

func compareRules(t *testing.T, s *Schema, library *cel.Validator, text, oldText string, budget int64) {
	t.Helper()
	var obj, old map[string]any
	if err := utiljson.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal([]byte(oldText), &old); err != nil {
		t.Fatal(err)
	}
	var before any
	var options []cel.Option
	own := counterpart{}
	if old != nil {
		before = old
		options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(obj, old, &model.Structural{Structural: s.tree})))
		own.object = common.NewCorrelatedObject(obj, old, s.celSchema())
	}
	var wantWarned, gotWarned recorded
	ctx := warning.WithWarningRecorder(context.Background(), &wantWarned)
	want, _ := library.Validate(ctx, nil, s.tree, obj, before, budget, options...)
	e := &evaluation{ctx: context.Background(), left: budget, work: maxWork, warn: func(text string) { gotWarned.AddWarning("", text) }}
	s.rules().run(e, nil, obj, before, own)
	if budget == 5 && (len(want) > 0) == (len(e.errs) > 0) { // it ends somewhere, for properties have no order
		return
	}
	if diff := cmp.Diff(fail(want, wantWarned), fail(e.errs, gotWarned)); diff != "" {
		t.Errorf("%s after %s with %d:\n%s", text, oldText, budget, diff)
	}
}

// selfType is the name of the type of self, which is another each time.
var selfType = regexp.MustCompile(`selfType\d+`)

// badValue is the value in the text of an error.
var badValue = regexp.MustCompile(`( value): ("[^"]*"|[0-9.]+|true|false)`)

func fail(errs field.ErrorList, warned []string) (all []string) {
	for _, err := range errs {
		// The value that an error is about is another one in newer releases of the library.
		all = append(all, selfType.ReplaceAllString(err.Field+": "+err.Type.String()+": "+err.Detail, "selfType"))
	}
	for _, w := range warned {
		all = append(all, "warning: "+badValue.ReplaceAllString(w, "$1"))
	}
	slices.Sort(all)
	return all
}

func TestSignOfQuantities(t *testing.T) {
	s := readSchema([]byte(`{"type":"object","properties":{"q":{"type":"string","x-kubernetes-validations":[{"rule":"quantity(self).sign() == 1 && sign(quantity(self)) == 1"}]}}}`))
	if errs := s.Validate(t.Context(), nil, map[string]any{"q": "1Gi"}, nil); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := s.Validate(t.Context(), nil, map[string]any{"q": "-1"}, nil); len(errs) != 1 {
		t.Error(errs)
	}
}

func TestRulesEndWithTheRequest(t *testing.T) {
	s := readSchema([]byte(`{"type":"object","properties":{"a":{"type":"string","x-kubernetes-validations":[{"rule":"self == 'x'"}]}}}`))
	ctx, cancel := context.WithCancel(request.With(t.Context(), request.NewScope(http.Header{}, time.Time{})))
	cancel()
	errs := s.Validate(ctx, nil, map[string]any{"a": "y"}, nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), context.Canceled.Error()) {
		t.Error(errs)
	}
}
