package expr

import (
	"fmt"
	"iter"
)

// Compiling takes up to thirty microseconds for each byte of an expression, and some time for the shortest. A
// stock server compiles everything that fits into a body, which keeps a processor busy for minutes without a
// deadline.
const (
	// MaxTexts bounds the bytes of all expressions of one definition, policy or webhook configuration: about
	// a hundred times those of any in use.
	MaxTexts = 128 << 10
	// perText is the additional cost of each of them.
	perText = 32
)

// TooLong reports whether compiling texts would take too long.
func TooLong(texts iter.Seq[string]) bool {
	sum := 0
	for text := range texts {
		if text != "" {
			if sum += perText + len(text); sum > MaxTexts {
				return true
			}
		}
	}
	return false
}

// LongDetail returns the error text about them.
func LongDetail() string {
	return fmt.Sprintf("too complex, the expressions of one object may have %d bytes together, and each counts for %d more", MaxTexts, perText)
}
