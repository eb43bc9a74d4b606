package expr_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// TestJoinedLists: joining a list with itself again and again ends, and does not change the lists.
func TestJoinedLists(t *testing.T) {
	for text, want := range map[string]string{
		"[[1]]" + strings.Repeat(".map(x, x + x)", 60) + "[0].size() > 0": "is too large",
		"([1, 2] + [3] + [] == [1, 2, 3]) && [object.n] + [2] != [2]":     "true",
		"[1, 2].map(x, x + 1) == [2, 3] && 'a' + 'b' == 'ab'":             "true",
	} {
		p := expr.NewCompiler(release.Default).Compile(expr.Source{Text: text, Gives: expr.Bool})
		r, err := expr.Evaluate(t.Context(), input(), nil, false, expr.Budget).Run(p)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case r.Err != nil:
			got = r.Err.Error()
		case r.Value.Value() == true:
			got = "true"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
}
