package rules

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/diff"
)

// maxCompared bounds the JSON that is compared line by line, whose cost grows with the square of the lines.
const maxCompared = 16 << 10

// DifferenceSince133 shows two values as releases after 1.32 do: their lines of JSON that differ. Large ones are
// shown as Difference does.
func DifferenceSince133(old, value any) string {
	before, after := Shown(old), Shown(value)
	for _, v := range []any{before, after} {
		if text, err := json.Marshal(v); err != nil || len(text) > maxCompared {
			return Difference(old, value)
		}
	}
	return diff.Diff(before, after)
}
