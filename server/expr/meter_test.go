package expr_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// deep are forty lists, each of which has the one before it twice: 2^40 values. (Their types
// are hidden, as compiling such types takes a while.)
func deep(leaf string) string {
	return "[dyn(" + leaf + ")]" + strings.Repeat(".map(x, dyn([x, x]))", 40)
}

// text evaluates an expression that gives a truth value.
func text(ctx context.Context, source string) string {
	p := expr.NewCompiler(release.Default).Compile(expr.Source{Text: source, Gives: expr.Bool})
	r, err := expr.Evaluate(ctx, input(), nil, false, expr.Budget).Run(p)
	switch {
	case err != nil:
		return err.Error()
	case r.Err != nil:
		return r.Err.Error()
	case r.Value.Value() == true:
		return "true"
	}
	return "false"
}

// TestSharedValues: a short expression that expands to a huge value ends, whatever it computes.
func TestSharedValues(t *testing.T) {
	maps := strings.ReplaceAll(deep("1"), "[x, x]", "{'a': x, 'b': x}")
	for _, source := range []string{
		deep("1") + " == " + deep("1"),
		deep("1") + " != " + deep("1"),
		maps + " == " + maps,
		"optional.of(" + deep("1") + ") == optional.of(" + deep("1") + ")",
		deep("1") + " in [" + deep("1") + "]",
		"dyn(" + deep("1") + ") in dyn([" + deep("1") + "])",
		deep("1") + ".indexOf(" + deep("1") + "[0]) == 0",
		deep("1") + ".lastIndexOf(" + deep("1") + "[0]) == 0",
		"sets.contains(" + deep("1") + ", " + deep("1") + ")",
		"dyn(" + deep("1") + ").isSorted() == true", "dyn(" + deep("1") + ").min() == 1", "dyn(" + deep("1") + ").sum() == 1",
		"sets.equivalent(" + deep("1") + ", " + deep("1") + ")",
		"sets.intersects(" + deep("1") + ", " + deep("1") + ")",
		"'%s'.format([" + deep("1") + "]) == ''",
		"'" + strings.Repeat("%.999999f", 3) + "'.format([1.0, 1.0, 1.0]) == ''",
		"['a']" + strings.Repeat(".map(x, '%s%s'.format([x, x]))", 40) + "[0] == ''",
		"['aaaaaaaaaa']" + strings.Repeat(".map(x, x.replace('', x))", 6) + "[0] == ''",
		"['aaaaaaaaaa']" + strings.Repeat(".map(x, x.replace('a', x, 9999999999))", 7) + "[0] == ''",
	} {
		if got := text(t.Context(), source); !strings.Contains(got, "the values are too large to be compared or formatted") {
			t.Errorf("%.60s: %s", source, got)
		}
	}
}

// TestMeasuredOperations: operations that are measured are what they were.
func TestMeasuredOperations(t *testing.T) {
	for _, source := range []string{
		"[[1], [2, 3]] == [[1], [2, 3]] && [[1]] != [[2]] && [[1]] != [[1], [1]] && dyn([1]) != dyn({'a': 1}) && [] == []",
		"{'a': dyn([1]), 'b': dyn({})} == {'b': dyn({}), 'a': dyn([1])} && {'a': 1} != {'b': 1} && {'a': 1} != {'a': 2} && {'a': null} != {'b': null} && {'a': [1]} != {'a': [2]}",
		"[dyn(1), dyn(2.0)] == [dyn(1.0), dyn(2)] && [null] == [null] && [null] != [dyn(1)] && [dyn('a')] != [dyn(1)]",
		"object == object && object.spec != object.list && dyn(object.list) != dyn('a')",
		"optional.of([1]) == optional.of([1]) && optional.none() == optional.none() && optional.of([1]) != optional.none() && optional.of([1]) != optional.of([2])",
		"[1] in [[2], [1]] && !([3] in [[2], [1]]) && 1 in [1, 2] && 'a' in {'a': 1} && !('b' in {'a': 1}) && object.n in [3] && 'a' in object.list",
		"[[1], [2], [1]].indexOf([1]) == 0 && [[1], [2], [1]].lastIndexOf([1]) == 2 && [[1]].indexOf([2]) == -1 && [1, 2].indexOf(2) == 1",
		"'abcabc'.indexOf('c') == 2 && 'abcabc'.indexOf('c', 3) == 5 && 'abcabc'.lastIndexOf('a') == 3 && 'abcabc'.lastIndexOf('a', 2) == 0",
		"sets.contains([[1], [2]], [[2]]) && !sets.contains([1], [2]) && sets.contains([1], []) && sets.contains([], [])",
		"sets.equivalent([1, 2], [2, 1, 1]) && !sets.equivalent([1, 2], [1]) && !sets.equivalent([1], [1, 2])",
		"sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.intersects([], [1]) && !sets.intersects([1], [])",
		"'%s-%d-%.2f-%s'.format(['a', 1, 1.5, [1, {'a': 'b'}]]) == 'a-1-1.50-[1, {\"a\":\"b\"}]'",
		"'banana'.replace('a', 'o') == 'bonono' && 'banana'.replace('a', 'o', 1) == 'bonana' && 'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('a', '') == 'b'",
		"'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
		"(object.nope == [1] || true) && (true || [1] == object.nope)",
	} {
		if got := text(t.Context(), source); got != "true" {
			t.Errorf("%s: %s", source, got)
		}
	}
	for source, want := range map[string]string{
		"object.nope == [1]":               "no such key: nope",
		"object.n.replace('a', 'b') == ''": "no such overload",
		"object.spec.format([1]) == ''":    "no such overload",
		"'%s %s'.format(['a']) == ''":      "index 1 out of range",
	} {
		if got := text(t.Context(), source); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

// TestComparingEndsWithTheRequest: the comparison stops with the request.
func TestComparingEndsWithTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// So few rounds that none of the macros notices it.
	many := "[" + strings.Repeat("1, ", 40) + "].map(x, [" + strings.Repeat("x, ", 40) + "])"
	if got := text(t.Context(), many+" == "+many); got != "true" {
		t.Fatal(got)
	}
	if got := text(ctx, many+" == "+many); got == "true" {
		t.Error("it was compared to its end")
	}
}
