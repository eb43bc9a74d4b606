package batch

import (
	"strings"
	"testing"
)

func TestCountIndexes(t *testing.T) {
	for _, c := range []struct {
		text  string
		total int32
		fault string
	}{
		{"", 0, ""},
		{"1,3-5,7", 5, ""},
		{"0-9", 10, ""},
		{"1-2-3", 0, "at most two parts"},
		{"a", 0, "cannot convert"},
		{"3,x", 0, "cannot convert"},
		{"10", 0, "too large index"},
		{"1-10", 0, "too large index"},
		{"5-3", 0, "non-increasing order, previous: 5, current: 3"},
		{"3,3", 0, "non-increasing order, previous: 3, current: 3"},
		{"3-5,4", 0, "non-increasing order, previous: 5, current: 4"},
	} {
		total, err := countIndexes(c.text, 10)
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.fault)
		}
		if total != c.total {
			t.Errorf("%q: %d indexes, want %d", c.text, total, c.total)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct{ completed, failed, fault string }{
		{"", "1", ""},
		{"1,3-5", "2,6", ""},
		{"1,3-5", "5-7", "index: 5"},
		{"0-9", "4", "index: 4"},
		{"x,4", "4", "index: 4"},
	} {
		err := overlap(c.completed, c.failed, 10)
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.HasSuffix(err.Error(), c.fault)) {
			t.Errorf("%q and %q: %v, want %q", c.completed, c.failed, err, c.fault)
		}
	}
}

func FuzzCountIndexes(f *testing.F) {
	f.Add("1,3-5", int32(10))
	f.Add("-", int32(0))
	f.Fuzz(func(t *testing.T, text string, completions int32) {
		total, err := countIndexes(text, completions)
		if err == nil && total > 0 && int64(total) > int64(completions) && !strings.Contains(text, "-") {
			t.Errorf("%q names %d of %d indexes", text, total, completions)
		}
		_ = overlap(text, text, completions)
	})
}
