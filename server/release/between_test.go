package release_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

func TestBetween(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                               "1.32 1.33 1.34 1.35 1.36",
		`{"since":"1.34"}`:                 "1.34 1.35 1.36",
		`{"gone":"1.34"}`:                  "1.32 1.33",
		`{"since":"1.33","gone":"v1.36"}`:  "1.33 1.34 1.35",
		`{"since":"1.32","gone":"1.33"}`:   "1.32",
		`{"since":"1.36","other":"1.2.3"}`: "1.36",
	} {
		var b release.Between
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var has []string
		for _, v := range release.All() {
			if b.Has(v) {
				has = append(has, v.String())
			}
		}
		if got := strings.Join(has, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{`{"since":"1.31"}`, `{"gone":"1.37"}`, `{"gone":"x"}`, `{"since":"2.33"}`} {
		if err := json.Unmarshal([]byte(text), &release.Between{}); err == nil || !strings.Contains(err.Error(), "want one of 1.32, 1.33, 1.34, 1.35, 1.36") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
