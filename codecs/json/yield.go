package json

import "runtime"

// yieldBits makes the work on a value of several megabytes let other goroutines continue after each 64 KB of its text. Otherwise
// it would keep a processor for ten milliseconds at a time.
const yieldBits = 16

// yield lets other goroutines continue if a part of a text, from one index to another, crosses a limit of 64 KB.
func yield(from, to int) {
	if (from^to)>>yieldBits != 0 {
		runtime.Gosched()
	}
}
