package apps

import "strings"

// A stock server describes columns with the texts of the version in which a kind was first served. The types
// of those versions are not linked for that: their texts are those of apps/v1 with the changes of these
// functions (TestFirstWords compares them with the types).

// demand is the sentence about selectors that apps/v1 has and the first versions do not.
const demand = "It must match the pod template's labels."

// firstSelector makes the text of a selector: instead replaces the requirement, and before is inserted where
// labels are first mentioned.
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
