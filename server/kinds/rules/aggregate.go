package rules

import (
	"fmt"
	"strings"
)

// maxAggregate bounds the bytes of errors that Aggregate includes, before one more error.
const maxAggregate = 256 << 10

// Aggregate makes one error of several, in the words of NewAggregate of k8s.io/apimachinery: each text once, in brackets
// where several differ; nil of none. Unlike the text of that one, whose cost grows with the square of
// their number, this one is made in one pass, and beyond a limit ends with the number of the remaining
// errors.
func Aggregate[E error](errs []E) error {
	if len(errs) == 0 {
		return nil
	}
	var text strings.Builder
	seen := Seen[string]{}
	for i, err := range errs {
		if text.Len() > maxAggregate {
			fmt.Fprintf(&text, ", %d more errors", len(errs)-i)
			break
		}
		one := err.Error()
		if seen.Again(one) {
			continue
		}
		if len(seen) > 1 {
			text.WriteString(", ")
		}
		text.WriteString(one)
	}
	if len(seen) == 1 {
		return aggregate(text.String())
	}
	return aggregate("[" + text.String() + "]")
}

// aggregate is the text of several errors.
type aggregate string

// Error implements error.
func (t aggregate) Error() string { return string(t) }
