package batch

import (
	"fmt"
	"strconv"
	"strings"
)

// interval is one part of a list of indexes such as "1,3-5,7".
type interval struct{ first, last int32 }

// parseInterval reads "3" or "3-5", all below completions.
func parseInterval(text string, completions int32) (interval, error) {
	parts := strings.Split(text, "-")
	if len(parts) > 2 {
		return interval{}, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", text)
	}
	var n [2]int32
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil {
			return interval{}, fmt.Errorf("cannot convert string to integer for index: %q", p)
		}
		if v >= int(completions) {
			return interval{}, fmt.Errorf("too large index: %q", p)
		}
		n[i] = int32(v)
	}
	if len(parts) == 1 {
		return interval{n[0], n[0]}, nil
	}
	if n[0] >= n[1] {
		return interval{}, fmt.Errorf("non-increasing order, previous: %d, current: %d", n[0], n[1])
	}
	return interval{n[0], n[1]}, nil
}

// countIndexes checks a list of indexes, and returns how many it names.
func countIndexes(text string, completions int32) (int32, error) {
	if text == "" {
		return 0, nil
	}
	var total, last int32
	for i, part := range strings.Split(text, ",") {
		v, err := parseInterval(part, completions)
		if err != nil {
			return 0, err
		}
		if i > 0 && last >= v.first {
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, v.first)
		}
		total += v.last - v.first + 1
		last = v.last
	}
	return total, nil
}

// intervals parses the valid parts of a list; faults are reported elsewhere.
func intervals(text string, completions int32) []interval {
	if text == "" {
		return nil
	}
	var out []interval
	for _, part := range strings.Split(text, ",") {
		if v, err := parseInterval(part, completions); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// overlap finds an index that is in both lists.
func overlap(completed, failed string, completions int32) error {
	c, f := intervals(completed, completions), intervals(failed, completions)
	for len(c) > 0 && len(f) > 0 {
		if c[0].first <= f[0].last && f[0].first <= c[0].last {
			return fmt.Errorf("failedIndexes and completedIndexes overlap at index: %d", max(c[0].first, f[0].first))
		}
		if c[0].first <= f[0].first {
			c = c[1:]
		} else {
			f = f[1:]
		}
	}
	return nil
}
