package expr_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// made evaluates an expression of a mutation over an object, and shows what it makes as
// JSON, or the error.
func made(t *testing.T, text string, patch bool) string {
	t.Helper()
	c := expr.NewComposer(release.Default)
	gives := expr.Configuration
	if patch {
		gives = expr.Patch
	}
	p := c.Compile(expr.Source{Text: text, Offer: expr.Offer{Mutation: true}, Gives: gives})
	if err := p.Fault(); err != nil {
		return err.Error()
	}
	in := &expr.Input{Object: func() (any, error) {
		return map[string]any{"data": map[string]any{"a": "1"}, "list": []any{int64(1), map[string]any{"k": "v"}}}, nil
	}}
	r, err := expr.Evaluate(context.Background(), in, c, false, expr.Budget).Run(p)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return err.Error()
	}
	var out any
	if patch {
		out, err = expr.Operations(context.Background(), r.Value)
	} else {
		out, err = expr.Tree(context.Background(), r.Value)
	}
	if err != nil {
		return err.Error()
	}
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestConfigurations(t *testing.T) {
	for text, want := range map[string]string{
		`Object{}`: `{}`,
		`Object{metadata: Object.metadata{labels: {"a": object.data[?"b"].orValue("none")}}, n: 1, f: 1.5, b: true, x: null}`: `{"b":true,"f":1.5,"metadata":{"labels":{"a":"none"}},"n":1,"x":null}`,
		`Object{spec: Object.spec{containers: [Object.spec.containers{name: "c"}]}}`:                                          `{"spec":{"containers":[{"name":"c"}]}}`,
		`Object{a: object.list, t: timestamp("2024-01-01T00:00:00Z"), d: duration("90s"), y: b"ab"}`:                          `{"a":[1,{"k":"v"}],"d":"90s","t":"2024-01-01T00:00:00Z","y":"YWI="}`,
		`Object{?a: optional.none(), ?b: optional.of("x")}`:                                                                   `{"b":"x"}`,
		`Object{a: Object{x: "y"}.x == "y", b: has(Object{x: 1}.x), c: has(Object{x: 1}.y), d: Object{}.?z.orValue("z")}`:     `{"a":true,"b":true,"c":false,"d":"z"}`,
		`Object{a: Object{x: [1]} == Object{x: [1]}, b: Object{x: [1]} == Object{x: [2]}, c: Object{} == Object{x: 1}}`:       `{"a":true,"b":false,"c":false}`,
		`Object{spec: Object.other{}}`: `type mismatch: unexpected type name "Object.other", expected "Object.spec", which matches field name path from root Object type`,
		`Object{a: {1: "x"}}`:          `map key '\x01' is of type types.Int, not string`,
		`Object{a: 0.0/0.0}`:           `fail to convert field "a": NaN is no number of JSON`,
		`Object{a: quantity("1")}`:     `fail to convert field "a": unable to convert kubernetes.Quantity`,
		`1`:                            `must evaluate to Object but got int`,
		`Object.spec{}`:                `must evaluate to Object but got Object.spec`,
		`Nope{}`:                       `undeclared reference to 'Nope'`,
		`Object{a: object.data.nope}`:  `no such key: nope`,
	} {
		if got := made(t, text, false); got != want && !strings.Contains(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestPatches(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                        `must evaluate to list(JSONPatch) but got list(dyn)`,
		`true ? [] : [JSONPatch{}]`: `null`,
		`[JSONPatch{op: "add", path: "/a/" + jsonpatch.escapeKey("x/y~z"), value: Object.a{b: [1, 2]}}]`: `[{"Op":"add","Path":"/a/x~1y~0z","From":"","Value":{"b":[1,2]},"HasValue":true}]`,
		`[JSONPatch{op: "move", from: "/a", path: "/b"}, JSONPatch{op: "add", path: "/c", value: null}]`: `[{"Op":"move","Path":"/b","From":"/a","Value":null,"HasValue":false},{"Op":"add","Path":"/c","From":"","Value":null,"HasValue":true}]`,
		`[JSONPatch{op: "add", path: "/c", value: [dyn(Object.x{}), dyn({"a": Object.y{}})]}]`:           `"Value":[{},{"a":{}}]`,
		`[JSONPatch{op: "add", path: "/c", value: Object.x{y: Object.z{}}}]`:                             `unexpected type name "Object.z", expected "Object.x.y"`,
		`[JSONPatch{op: dyn(1)}]`: `unexpected type int64 for JSONPatchType 'op' field`,
		`[JSONPatch{op: "a"}].map(p, has(p.value) ? JSONPatch{op: "b"} : p)`: `"Op":"a"`,
		`[JSONPatch{op: 1}]`:     `expected type of field 'op' is 'string' but provided type is 'int'`,
		`[JSONPatch{nope: "x"}]`: `expected type of field 'nope' is '' but provided type is 'string'`,
		`"x"`:                    `must evaluate to list(JSONPatch) but got string`,
		`[JSONPatch{}.nope]`:     `must evaluate to list(JSONPatch)`,
		`[JSONPatch{op: "a", path: "", value: JSONPatch{}}]`: `unable to convert JSONPatch`,
	} {
		if got := made(t, text, true); !strings.Contains(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestSizeOfMade makes huge values with short expressions.
func TestSizeOfMade(t *testing.T) {
	doubled := `[["xxxxxxxxxx"]]` + strings.Repeat(`.map(x, [x, x])`, 60) + `[0]`
	for text, want := range map[string]string{
		`Object{a: ` + doubled + `}`: `the expression makes more than 3145728 bytes`,
		`Object{a: ` + doubled + `} == Object{a: ` + doubled + `} ? Object{} : Object{}`: `the values are too large to be compared or formatted`,
	} {
		if got := made(t, text, false); !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
	if got := made(t, `[JSONPatch{op: "add", path: "/a", value: `+doubled+`}]`, true); !strings.Contains(got, "more than 3145728 bytes") {
		t.Error(got)
	}
	if got := made(t, `[[JSONPatch{op: "add", path: "/a"}]]`+strings.Repeat(`.map(x, x + x)`, 20)+`[0]`, true); !strings.Contains(got, "maximum operations in a JSON patch is 10000, got 1048576") {
		t.Error(got)
	}
}
