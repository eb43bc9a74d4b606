package expr

import (
	"fmt"
	"iter"
)

// Compiling takes up to thirty microseconds for each byte of an expression, and some time for
// the shortest. A stock server compiles whatever a body has room for, and keeps a processor
// busy for minutes that no deadline ends.
const (
	// MaxTexts is how many bytes the expressions of one definition, policy or configuration
	// of webhooks may have together: about a hundred times those of any in use.
	MaxTexts = 128 << 10
	// perText is what each of them counts besides.
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

// LongDetail is the error text about them.
func LongDetail() string {
	return fmt.Sprintf("too complex, the expressions of one object may have %d bytes together, and each counts for %d more", MaxTexts, perText)
}
