package expr_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/expr"
)

func TestTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		long  bool
	}{
		"none": {nil, false}, "empty ones": {make([]string, 100_000), false}, "one": {[]string{strings.Repeat("x", expr.MaxTexts-32)}, false},
		"a byte more": {[]string{strings.Repeat("x", expr.MaxTexts-31)}, true}, "very many": {slices.Repeat([]string{"true"}, 4000), true}, "many": {slices.Repeat([]string{"true"}, 3000), false},
	} {
		if expr.TooLong(slices.Values(c.texts)) != c.long {
			t.Error(name)
		}
	}
}
