package meter_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/authx/meter"
)

// compilers are an environment without bounds, and the same with them; v is anything.
var compilers = sync.OnceValues(func() (plain, metered *cel.Env) {
	set, err := meter.Environment(version.MajorMinor(1, 32)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []cel.EnvOption{cel.Variable("v", cel.DynType)},
	})
	if err != nil {
		panic(err)
	}
	bounded, err := meter.Extend(set)
	if err != nil {
		panic(err)
	}
	return set.StoredExpressionsEnv(), bounded.StoredExpressionsEnv()
})

// run evaluates an expression: "true", "false", or its error.
func run(t *testing.T, env *cel.Env, text string, v any, m *meter.Meter) string {
	t.Helper()
	ast, issues := env.Compile(text)
	if issues != nil {
		t.Fatalf("%.80s: %s", text, issues)
	}
	program, err := env.Program(ast)
	if err != nil {
		return err.Error()
	}
	out, _, err := program.ContextEval(t.Context(), map[string]any{"v": v, meter.Name: m})
	switch {
	case err != nil:
		return err.Error()
	case out.Value() == true:
		return "true"
	}
	return "false"
}

func full(t *testing.T) *meter.Meter { return meter.New(t.Context(), meter.MaxSteps) }

const tooLarge = "the values are too large to be compared or formatted"

// TestOutliers: expressions whose price is low and whose work is large end.
func TestOutliers(t *testing.T) {
	_, env := compilers()
	long := strings.Repeat("a", 300_000)
	lists := make([]any, 400_000)
	for text, v := range map[string]any{
		"v.map(x, x.join('')).size() == 1":                                    []any{many(long, 10)},
		"v.map(x, x.join('aaaaaaaaaa')).size() == 1":                          []any{many("", 400_000)},
		"[1, 2, 3, 4, 5, 6, 7].map(x, v + v).size() == 1":                     lists,
		"v.matches('((a?){30}){30}b')":                                        long,
		"v.map(p, 'a'.matches(p)).size() == 1":                                many("((abcdefghij){900}){1}"+strings.Repeat("(abcdefghij){900}", 50), 2),
		"'a'.matches(v)":                                                      strings.Repeat(`(?i:\PL)`, 9000),
		"v.find('(((a?){9}){9}){9}b') == ''":                                  long,
		"v.map(x, x.findAll('a')).size() == 1":                                many(long, 30),
		"v.indexOf('" + strings.Repeat("a", 60) + "b') == 7 || v.size() == 1": strings.Repeat("a", 2_100_000),
		"v.map(x, x.charAt(3)).size() == 1":                                   many(long, 30),
		"quantity(v).isLessThan(quantity('1'))":                               "1e-10000000",
		"isQuantity(v)":                                                       strings.Repeat("1", 300_000),
		"v.map(x, (x in [x + 'b', x + 'c', x + 'd'])).size() == 0":            many(long, 200),
		"v.map(x, [x + 'b', x + 'c'].indexOf(x + 'd')).size() == 0":           many(long, 100),
		"v.map(x, int(x) == 1 || true).size() == 1":                           many(strings.Repeat("1", 300_000), 60),
		"v.map(x, url(x).getQuery()).size() == 1":                             many("http://a/?"+strings.Repeat("a=b&", 30_000), 20),
		"v.map(x, timestamp('2020-01-01T00:00:00Z').getHours(x)).size() == 1": many("Europe/Berlin", 10_001),
		"v.map(x, ['a'].map(y, x + x)).size() == 1":                           many(long, 30),
		"v.map(x, bytes(x) + bytes(x)).size() == 1":                           many(long, 30),
		"v.map(x, x.split('')).size() == 1":                                   many(long, 7),
		"v.map(x, x.replace('a', 'b')).size() == 1":                           many(long, 7),
		"v.map(x, strings.quote(x)).size() == 1":                              many(long, 7),
		"v.map(x, {'a': 1}[?x]).size() == 1":                                  many(long, 500),
		"v.map(x, {x: 1}.size()).size() == 1":                                 many(long, 500),
		"v.all(x, v.exists(y, true))":                                         numbered(10_000),
	} {
		if got := run(t, env, text, v, full(t)); !strings.Contains(got, "operation cancelled: actual cost limit exceeded") && !strings.Contains(got, tooLarge) {
			t.Errorf("%.60s: %.200s", text, got)
		}
	}
}

func many(text string, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = text
	}
	return out
}

// TestSameResults: metering does not change results.
func TestSameResults(t *testing.T) {
	plain, metered := compilers()
	long := strings.Repeat("é", 100)
	for _, text := range []string{
		"'abc'.matches('b') && !'abc'.matches('^b') && matches('abc', 'c$')",
		"'abc'.matches(v.bad) || true", "'abc'.matches(v.bad)", "'abc'.find(v.bad) == ''", "'abc'.findAll(v.bad) == []",
		"'a1b22'.find('[0-9]+') == '1' && 'a'.find('b') == ''",
		"'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'a'.findAll('b') == [] && 'abc'.findAll('b', 0) == []",
		"['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && v.list.join(',') == 'x,y'", "dyn([1, 2]).join() == ''", "v.join() == ''",
		"'héllo'.indexOf('l') == 2 && 'héllo'.lastIndexOf('l') == 3 && 'héllo'.indexOf('l', 3) == 3 && 'héllo'.indexOf('l', 9) == -1",
		"(v.long + 'x' + v.long).indexOf(v.long, 1) == 101", "(v.long + 'x' + v.long).lastIndexOf(v.long) == 101", "(v.long + 'x' + v.long).indexOf(v.long) == 0",
		"v.long.indexOf(v.long + 'x') == -1", "v.long.indexOf(v.long, 500) == -1", "v.long.indexOf(v.long, -1) == 0", "''.lastIndexOf(v.long) == -1", "v.long.lastIndexOf(v.long, 3) == 0",
		"quantity('1e3').isGreaterThan(quantity('100')) && isQuantity('1Gi') && !isQuantity('x') && quantity('1E').isGreaterThan(quantity('1'))", "quantity('x').isGreaterThan(quantity('1'))",
		"int('12') == 12 && double('1.5') == 1.5 && uint('3') == 3u && bool('true') && duration('1h') == duration('60m') && int(1.9) == 1", "int('x') == 1",
		"url('http://a/b?c=d').getQuery() == {'c': ['d']} && url('http://a/b%20c').getEscapedPath() == '/b%20c'",
		"timestamp('2020-01-01T00:00:00Z').getHours() == 0 && timestamp('2020-01-01T00:00:00Z').getHours('+02:00') == 2",
		"'hello'.charAt(1) == 'e'", "'hello'.charAt(9) == 'e'",
		"(v.long in [v.long]) && !(v.long in ['a']) && v.list.indexOf('y') == 1 && [v.list[0], v.long].indexOf(v.long) == 1",
		"'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2] && 1 + 2 == 3", "v.list + ['z'] == ['x', 'y', 'z']", "v + 1 == 2",
		"'a'.split('') == ['a'] && ''.split(',') == [''] && 'a,b'.split(',', 0) == []",
		"'héllo'.size() == 5 && size(v.long) == 100 && v.list.size() == 2 && size({'a': 1}) == 1 && b'abc'.size() == 3", "dyn(1).size() == 1",
		"v.long < v.long + 'a' && 'b' > 'a' && 1 <= 2 && 2.0 >= 1.0 && !(b'a' < b'a')", "dyn(1) < dyn('a')", "dyn([1]) < dyn([2])",
		"v.long == v.long && v.long != v.long + 'a' && bytes(v.long) == bytes(v.long) && [bytes(v.long)] == [bytes(v.long)]",
		"!(v.long in v) && ('long' in v) && (v.long in {v.long: 1}) && (bytes(v.long) in [bytes(v.long)]) && [bytes(v.long)].indexOf(bytes(v.long)) == 0",
		"[[1, 2], [3]].flatten() == [1, 2, 3] && [dyn(1), dyn([dyn(2), dyn([dyn(3), dyn([4])])])].flatten(2) == [dyn(1), dyn(2), dyn(3), dyn([4])]", "[[1]].flatten(-1) == []", "v.list.flatten() == v.list",
		"lists.range(3) == [0, 1, 2] && lists.range(-1) == [] && [1, 1, 2, 1].distinct() == [1, 2] && [dyn(1), dyn(1.0), dyn([1]), dyn([1])].distinct().size() == 2",
		"v['list'][0] == 'x' && v[?'none'].orValue(1) == 1 && v.?list[?1].orValue('') == 'y' && has(v.list) && !has(v.none)", "v[v.list[0]] == 1", "v.list[7] == ''", "v[v] == 1",
		"{v.long: {v.list[0]: 7}}[v.long][v.list[0]] == 7 && (true ? v : {})[true ? 'list' : 'none'][dyn(1)] == 'y' && {v.long: 1}[?(v.long + '')].value() == 1", "{'a': 1}[v.long] == 1", "{'a': 1}[v.none] == 1",
		"{dyn(1): 'a', dyn(2u): 'b', dyn(true): 'c'}[1] == 'a' && {'" + long + "': 1}['" + long + "'] == 1 && {dyn(v.list[0]): 1, dyn('y'): 2} == {dyn('x'): 1, dyn('y'): 2}", "{v.none: 1} == {}", "{?dyn(v.list[0]): v.?none, dyn('y'): dyn(1)} == {dyn('y'): dyn(1)}",
		"['a', 'b'].transformMap(i, x, x) == {0: 'a', 1: 'b'} && ['a'].transformMapEntry(i, x, {x: i}) == {'a': 0}", "['a', 'a'].transformMapEntry(i, x, {x: i}) == {}",
		"url('http://a/b') == url('http://a/b') && url('http://a/b') != url('http://a/c') && isURL('http://a') && !isURL('a b')",
		"semver('1.2.3').isGreaterThan(semver('1.2.3-a.1')) && semver('1.0.0-a') == semver('1.0.0-a') && semver('1.0.0').compareTo(semver('1.0.1')) == -1",
		"[optional.of(1)].unwrapOpt() == [1] && optional.unwrap([optional.of(1)]) == [1]",
		"[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && ['b', 'a', 'c'].sortBy(x, x == 'c' ? 0 : 1)[0] == 'c'", "[dyn(1), dyn('a')].map(x, x).sort() == []",
	} {
		v := map[string]any{"bad": "(", "list": []any{"x", "y"}, "long": long}
		want := run(t, plain, text, v, nil)
		if got := run(t, metered, text, v, full(t)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// custom returns a value of a custom object: a list of lists of lists, and so on, each of which has
// the next one very often, as an expression can join them.
func custom(deep, wide int) ref.Val {
	s, v := &structural.Structural{Generic: structural.Generic{Type: "string"}}, any("a")
	for range deep {
		s = &structural.Structural{Generic: structural.Generic{Type: "array"}, Items: s}
		v = slices.Repeat([]any{v}, wide)
	}
	return common.UnstructuredToVal(v, &model.Structural{Structural: s})
}

// numbered is a map of n entries.
func numbered(n int) map[string]any {
	out := make(map[string]any, n)
	for i := range n {
		out[strconv.Itoa(i)] = i
	}
	return out
}

// data is a custom object of lists of texts.
func data(listType string, v map[string]any) ref.Val {
	list := structural.Structural{
		Generic:    structural.Generic{Type: "array"},
		Items:      &structural.Structural{Generic: structural.Generic{Type: "string"}},
		Extensions: structural.Extensions{},
	}
	if listType != "" {
		list.XListType = &listType
	}
	s := &structural.Structural{Generic: structural.Generic{Type: "object"}, Properties: map[string]structural.Structural{}}
	for name := range v {
		s.Properties[name] = list
	}
	return common.UnstructuredToVal(v, &model.Structural{Structural: s})
}

// TestSharedParts: parts of a custom object that are in a list very often are counted as often.
func TestSharedParts(t *testing.T) {
	_, env := compilers()
	for _, text := range []string{"v == v", "'%s'.format([v]) == ''", "v.isSorted()"} {
		if got := run(t, env, text, custom(6, 1000), full(t)); !strings.Contains(got, tooLarge) {
			t.Errorf("%s: %s", text, got)
		}
		m := full(t)
		if got := run(t, env, text, custom(3, 10), m); strings.Contains(got, tooLarge) || m.Used() < 1000 {
			t.Errorf("%s: %s, %d steps", text, got, m.Used())
		}
	}
}

// TestUnpriced: work that the library does before it prices it, or for the price, takes steps.
func TestUnpriced(t *testing.T) {
	_, env := compilers()
	text, numbers := strings.Repeat("a", 64_000), make([]any, 500)
	for i := range numbers {
		numbers[i] = i * 7919 % 500
	}
	for _, tc := range []struct {
		text  string
		v     any
		least int
	}{
		{"v.size() == 64000", text, 1000}, {"size(v) == 64000", text, 1000},
		{"v != 'b'", text, 1000}, {"'b' != v", text, 1000}, {"v < 'b'", text, 1000}, {"'b' > v", text, 1000}, {"v <= 'b'", text, 1000}, {"'b' >= v", text, 1000},
		{"!(v in {'a': 1})", text, 1000},
		{"[bytes(v)] == [bytes(v)]", text, 1000}, {"bytes(v) in [bytes(v), b'']", text, 2000}, {"[b'', bytes(v)].indexOf(bytes(v)) == 1", text, 1000},
		{"{v: 1}[v] == 1 && {v: 1}[?v].hasValue()", text, 4000}, {"{'a': 1}[?dyn(v)] == optional.none()", text, 1000}, {"{'a': 1}[?v + 'a'] == optional.none()", text, 9000},
		{"{'a': [1]}[?(v == '' ? 'a' : v)] == optional.none()", text, 2000}, {"{v: 1, dyn(v + ''): 2}.size() == 1", text, 2000 + 8000},
		{"[v].transformMap(i, x, x).size() == 1 && [v].transformMapEntry(i, x, {x: 1}).size() == 1", text, 2000},
		{"v.exists(k, true) && v.exists(k, true)", numbered(16_000), 2000}, {"v.a.exists(k, true)", map[string]any{"a": numbered(16_000)}, 1000},
		{"[1].transformMapEntry(i, x, v).size() == 1000", numbered(1000), 2000},
		{"{v: {v: 1}} == {v: {v: 1}}", text, 6000}, {"v.a == v.b", data("", map[string]any{"a": []any{text}, "b": []any{text}}), 1000},
		{"(v.a + v.a).size() == 1", data("set", map[string]any{"a": []any{text}}), 1000},
		{"url('/' + v) == url('/' + v)", text, 2*8000 + 2000}, {"isURL('/' + v)", text, 8000 + 8000},
		{"semver(v) == semver(v) && semver(v).compareTo(semver(v)) == 0 && !semver(v).isLessThan(semver(v))", "1.0.0" + strings.Replace(strings.Repeat(".a", 1000), ".", "-", 1), 1500},
		{"v.map(x, optional.of(x)).unwrapOpt().size() == 500 && optional.unwrap(v.map(x, optional.of(x))).size() == 500", numbers, 2000},
		{"v.flatten().size() == 10000", slices.Repeat([]any{slices.Repeat([]any{1}, 100)}, 100), 10_000},
		{"v.flatten(2).size() == 1000", []any{slices.Repeat([]any{slices.Repeat([]any{1}, 100)}, 10)}, 3000},
		{"lists.range(v).size() == 1000", 1000, 1000},
		{"v.distinct().size() == 500", numbers, 500 * 499 / 2},
		{"v.sort()[1] == 1", numbers, 500 * 8}, {"v.sortBy(x, -x)[0] == 499", numbers, 500 * 8},
	} {
		m := full(t)
		if got := run(t, env, tc.text, tc.v, m); got != "true" || m.Used() < tc.least {
			t.Errorf("%s: %s, %d steps, want %d", tc.text, got, m.Used(), tc.least)
		}
		if got := run(t, env, tc.text, tc.v, meter.New(t.Context(), tc.least/2)); got != tooLarge {
			t.Errorf("%s with too few steps: %s", tc.text, got)
		}
	}
}

// TestPatternsAreCopied: of a text only the part is kept that was a pattern.
func TestPatternsAreCopied(t *testing.T) {
	_, env := compilers()
	var gone atomic.Bool
	func() {
		large := make([]byte, 1<<20)
		copy(large, "kept-by-nobody,")
		text := unsafe.String(&large[0], len(large))
		runtime.AddCleanup(&large[0], func(struct{}) { gone.Store(true) }, struct{}{})
		if got := run(t, env, "'kept-by-nobody'.matches(v.split(',')[0])", text, full(t)); got != "true" {
			t.Fatal(got)
		}
	}()
	for end := time.Now().Add(2 * time.Minute); !gone.Load(); runtime.GC() { // cleanups run soon after
		if time.Now().After(end) {
			t.Fatal("the text is kept with its part")
		}
	}
}

// TestSteps: a meter reports its use, and ends with its context.
func TestSteps(t *testing.T) {
	_, env := compilers()
	m := meter.New(t.Context(), 100)
	if got := run(t, env, "v == v", []any{"a", "b"}, m); got != "true" || m.Used() != 3 || m.Over() {
		t.Errorf("%s, %d steps", got, m.Used())
	}
	if got := run(t, env, "v == v", make([]any, 200), m); got != tooLarge || m.Used() != 100 || !m.Over() {
		t.Errorf("%s, %d steps", got, m.Used())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m := meter.New(ctx, meter.MaxSteps); run(t, env, "v == v", make([]any, 5000), m) != tooLarge || !m.Over() {
		t.Error("nobody waits, and it was compared to the end")
	}
	if got := run(t, env, "v == v", make([]any, 5000), nil); got != "true" {
		t.Errorf("without a meter: %s", got)
	}
}
