package ownership_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/apply/ownership"
)

func TestReadTree(t *testing.T) {
	for body, want := range map[string]map[string]any{
		"":                          {},
		"null":                      {},
		"a: 2":                      {"a": int64(2)},
		`{"a": 2.0, "b": 2e0}`:      {"a": int64(2), "b": int64(2)}, // the way through YAML keeps no fraction of zero
		"a: 0x10\nb: 017\nc: 1_000": {"a": int64(16), "b": int64(15), "c": int64(1000)},
		"a: 9007199254740993":       {"a": int64(9007199254740993)},
		"a: -9223372036854775808":   {"a": int64(-9223372036854775808)},
		"a: 9223372036854775808":    {"a": 9223372036854775808.0},
		"a: [{b: 1}, .5, '3']":      {"a": []any{map[string]any{"b": int64(1)}, .5, "3"}},
	} {
		got, err := ownership.ReadTree([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", body, diff)
		}
	}
	for _, body := range []string{"a: [", "- a", "7"} {
		if _, err := ownership.ReadTree([]byte(body)); err == nil || !strings.HasPrefix(err.Error(), "error decoding YAML: ") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
