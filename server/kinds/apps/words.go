package apps

import "strings"

// A stock server shows columns with the words of the version in which a kind was first shown so. Types of these
// are not linked for that: their words are those of apps/v1, but for what these functions change
// (TestFirstWords compares with the types).

// demand is the sentence about selectors that apps/v1 has and the first versions do not.
const demand = "It must match the pod template's labels."

// firstSelector makes the words of a selector: instead stands where the demand does, which goes, and before where
// labels are first spoken of.
func firstSelector(text, instead, before string) string {
	text = strings.Replace(strings.TrimSuffix(text, " "+demand), demand+" ", instead, 1)
	if before != "" {
		text = strings.Replace(text, "Label keys", before+"Label keys", 1)
	}
	return text
}

// firstReady makes the words of ready pods.
func firstReady(text string) string {
	text = strings.Replace(text, "numberReady is the number", "The number", 1)
	return strings.Replace(text, "with a Ready Condition", "and ready", 1)
}
