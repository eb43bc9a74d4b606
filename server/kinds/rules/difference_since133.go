package rules

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/diff"
)

// Bounds of the JSON that is compared line by line, whose cost can grow with the cube of the lines. Each line but a few
// ends with a comma.
const (
	maxCompared = 16 << 10
	maxCommas   = 512
)

// DifferenceSince133 shows two values as releases after 1.32 do: their lines of JSON that differ. Large ones are
// shown as Difference does.
func DifferenceSince133(old, value any) string {
	before, after := Shown(old), Shown(value)
	for _, v := range []any{before, after} {
		text, err := json.Marshal(v)
		if err != nil || len(text) > maxCompared || bytes.Count(text, []byte{','}) > maxCommas {
			return Difference(old, value)
		}
	}
	return diff.Diff(before, after)
}
